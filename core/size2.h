// Size2: a height and a width, what options of images are made of.
#pragma once

#include "accrue/core/host_device.h"

#include <cstdint>
#include <ostream>

namespace accrue {

/// A height and a width; one number stands for both.
struct Size2 {
  std::int64_t h = 0, w = 0;

  constexpr Size2() = default;
  constexpr Size2(std::int64_t both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Size2(std::int64_t height, std::int64_t width) : h(height), w(width) {}

  constexpr std::int64_t area() const { return h * w; }
  bool operator==(const Size2&) const = default;
};

/// As a Python tuple: `(3, 3)`.
inline std::ostream& operator<<(std::ostream& out, const Size2& size) {
  return out << '(' << size.h << ", " << size.w << ')';
}

}  // namespace accrue
