// Which outputs see the image at a tap, against looking at every output.
#include "accrue/kernels/sliding.h"

#include "accrue/tests/support/doctest.h"

using namespace accrue::kernels;

namespace {

/// Whether `range` lies in [begin, end] and holds exactly the outputs in it that see an input.
bool is_right(const SlidingAxis& axis,
              std::int64_t tap,
              SlidingAxis::Range range,
              std::int64_t begin,
              std::int64_t end) {
  if (begin > range.begin || range.begin > range.end || range.end > end) return false;
  for (std::int64_t output = begin; output < end; ++output) {
    const std::int64_t input = output * axis.stride - axis.padding + tap * axis.dilation;
    const bool sees = input >= 0 && input < axis.in;
    if (sees != (output >= range.begin && output < range.end)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("kernels.sliding: the outputs that see the image at a tap are a range of those asked") {
  std::int64_t ranges = 0, faults = 0;
  for (std::int64_t code = 0; code < 5 * 5 * 3 * 6 * 4; ++code) {
    SlidingAxis axis;
    axis.in = code % 5;
    axis.size = 1 + code / 5 % 5;
    axis.stride = 1 + code / 25 % 3;
    axis.padding = code / 75 % 6;
    axis.dilation = 1 + code / 450;
    const std::int64_t room = axis.in + 2 * axis.padding - axis.dilation * (axis.size - 1) - 1;
    axis.out = room < 0 ? 0 : room / axis.stride + 1;
    for (std::int64_t tap = 0; tap < axis.size; ++tap) {
      for (std::int64_t begin = 0; begin < axis.out; ++begin) {
        for (std::int64_t end = begin; end <= axis.out; ++end) {
          faults += !is_right(axis, tap, axis.outputs_of(tap, begin, end), begin, end);
          ++ranges;
        }
      }
    }
  }
  CHECK(faults == 0);
  MESSAGE(ranges, " ranges");
}
