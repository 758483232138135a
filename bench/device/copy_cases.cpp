// Cases of kernels that move and make elements: copies, fills, picks by index, masks.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/dropout.h"
#include "accrue/kernels/index.h"

#include <functional>

namespace accrue::bench {
namespace {

Work transpose(const Sizes& s, Device device) {
  const Tensor x = numbers({s[1], s[0]}, device, 1).transpose(0, 1);
  Tensor y = unwritten({s[0], s[1]}, device);
  return {[=]() mutable { y.copy_from(x); }, {y}};
}

constexpr DType kDTypes[] = {DType::float32,
                             DType::float64,
                             DType::int64,
                             DType::int32,
                             DType::uint8,
                             DType::boolean,
                             DType::bfloat16,
                             DType::float16};

/// From every type.
Work convert(DType to, const Sizes& s, Device device) {
  std::vector<Tensor> from, results;
  for (const DType dtype : kDTypes) {
    const bool is_signed = dtype != DType::uint8 && to != DType::uint8;
    const Tensor x = numbers({s[0]}, Device::cpu(), 1, is_signed ? -100 : 0, 100);
    from.push_back(x.to(dtype).to(device));
    results.push_back(unwritten({s[0]}, device, to));
  }
  return {[=]() mutable {
            for (std::size_t i = 0; i < from.size(); ++i) results[i].copy_from(from[i].to(to));
          },
          results};
}

/// Of every size, and between elements that stay.
Work fill(const Sizes& s, Device device) {
  std::vector<Tensor> results = {numbers({s[0], s[1]}, device, 1)};
  for (const DType dtype : kDTypes) results.push_back(unwritten({s[0]}, device, dtype));
  return {[=]() mutable {
            results[0].slice(1, 0, s[1], 2).fill(-2.5);
            for (std::size_t i = 1; i < results.size(); ++i) results[i].fill(7);
          },
          results};
}

/// Places along a dimension, many of them more than once.
Tensor places(int dim, const Sizes& s, Device device) {
  return indices(s[0] * s[1], s[static_cast<std::size_t>(dim)], device).view({s[0], s[1]});
}

Work gather(int dim, const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1), index = places(dim, s, device);
  Tensor y = unwritten({s[0], s[1]}, device);
  return {[=]() mutable { launch(device, kernels::Gather{"gather", x, dim, index, y}); }, {y}};
}

Work scatter_add(int dim, const Sizes& s, Device device) {
  const Tensor dy = numbers({s[0], s[1]}, device, 1), index = places(dim, s, device);
  Tensor dx = numbers({s[0], s[1]}, device, 2);
  return {[=]() mutable {
            launch(device, kernels::ScatterAdd{"gather", dy, dim, index, dx});
          },
          {dx}};
}

Work dropout_mask(const Sizes& s, Device device) {
  const kernels::DropoutMask args{.p = 0.1, .seed = 1, .mask = unwritten({s[0], s[1]}, device)};
  return {[=] { launch(device, args); }, {args.mask}};
}

}  // namespace

std::vector<KernelCase> copy_cases() {
  using enum Counted;
  const std::vector<Sizes> wide = {{16384, 16384}};
  const Sizes ragged = {37, 70};
  std::vector<KernelCase> cases = {
      {"transpose", bytes, wide, ragged, passes<2>, transpose},
      {"dropout_mask", bytes, wide, ragged, passes<1>, dropout_mask},
      // An index, an element, a result.
      {"gather", bytes, {{65536, 1024}}, ragged, passes<4>, std::bind_front(gather, 1)},
      bits_alone("gather_rows", ragged, std::bind_front(gather, 0)),
      bits_alone("scatter_add", ragged, std::bind_front(scatter_add, 1)),
      bits_alone("scatter_add_rows", ragged, std::bind_front(scatter_add, 0)),
      bits_alone("fill", ragged, fill),
  };
  for (const DType dtype : kDTypes)
    cases.push_back(bits_alone(text("to_", dtype), {1031}, std::bind_front(convert, dtype)));
  return cases;
}

}  // namespace accrue::bench
