#include "accrue/core/device_name.h"

#include <charconv>

namespace accrue {

std::optional<Device> device_named(std::string_view name) {
  if (name == "cpu") return Device::cpu();
  if (name == "cuda") return Device::cuda();
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int index = -1;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, index);
  if (error != std::errc() || stop != end || index < 0) return std::nullopt;
  return Device::cuda(index);
}

}  // namespace accrue
