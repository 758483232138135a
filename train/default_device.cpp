#include "accrue/train/default_device.h"

#include "accrue/core/error.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace accrue::train {
namespace {

constexpr const char* kVariable = "ACCELERATE_TORCH_DEVICE";

/// The digits of `text`, or -1.
int index_of(std::string_view text) {
  int index = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, index);
  return error == std::errc() && stop == end ? index : -1;
}

}  // namespace

Device default_device() {
  const char* const given = std::getenv(kVariable);
  const std::string_view name = given ? given : "cpu";
  if (name == "cpu") return Device::cpu();
  constexpr std::string_view kPrefix = "cuda:";
  const bool has_index = name.starts_with(kPrefix);
  const int index = has_index ? index_of(name.substr(kPrefix.size())) : name == "cuda" ? 0 : -1;
  ACCRUE_CHECK(index >= 0,
               ValueError,
               "accelerator",
               kVariable,
               " must be cpu, cuda or cuda:N, got '",
               name,
               "'; unset it, or give device");
  return Device::cuda(index);
}

}  // namespace accrue::train
