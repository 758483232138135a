#include "accrue/nn/conv2d.h"

#include "accrue/core/error.h"

namespace accrue::nn {
namespace {

void check_sizes(std::int64_t in, std::int64_t out, Size2 kernel, std::int64_t groups) {
  ACCRUE_CHECK(in >= 0 && out >= 0,
               ValueError,
               "Conv2d",
               "channels must be >= 0, got in ",
               in,
               " and out ",
               out);
  ACCRUE_CHECK(kernel.h >= 1 && kernel.w >= 1,
               ValueError,
               "Conv2d",
               "kernel_size must be at least 1, got ",
               kernel);
  ACCRUE_CHECK(groups >= 1 && in % groups == 0 && out % groups == 0,
               ValueError,
               "Conv2d",
               "groups must divide both numbers of channels, got groups ",
               groups,
               " for in ",
               in,
               " and out ",
               out);
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels,
               std::int64_t out_channels,
               Size2 kernel_size,
               const Conv2dOptions& options,
               bool bias,
               Generator& generator)
    : options_(options) {
  check_sizes(in_channels, out_channels, kernel_size, options.groups);
  const std::int64_t group_in = in_channels / options.groups;
  const Shape weight{out_channels, group_in, kernel_size.h, kernel_size.w};
  make_parameters(weight, bias, generator);
}

Conv2d::Conv2d(const Variable& weight, const Variable& bias, const Conv2dOptions& options)
    : options_(options) {
  adopt_parameters("Conv2d", "[out, in / groups, KH, KW]", 4, weight, bias);
}

std::string Conv2d::options_str() const {
  const auto& [stride, padding, dilation, groups] = options_;
  const Shape shape = weight().shape();  // weight() is a copy
  std::string out = text(shape[1] * groups, ", ", shape[0]);
  out += text(", kernel_size=", Size2(shape[2], shape[3]), ", stride=", stride);
  if (padding != 0) out += text(", padding=", padding);
  if (dilation != 1) out += text(", dilation=", dilation);
  if (groups != 1) out += text(", groups=", groups);
  return bias().defined() ? out : out + ", bias=False";
}

}  // namespace accrue::nn
