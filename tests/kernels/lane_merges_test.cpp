// Programs of merges against the reference interpreter.
#include "accrue/kernels/lane_merges.h"

#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::test;

namespace {

/// Elements whose bits differ from the reference after `program`, run on `count` elements.
std::int64_t count_faults(const Program& program, std::size_t count, Dice& dice) {
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(program.num_buffers));
  std::vector<float*> pointers;
  for (auto& buffer : buffers) {
    buffer.resize(count);
    for (float& x : buffer) x = dice.value();
    pointers.push_back(buffer.data());
  }
  const auto before = buffers;
  launch_cpu(
      kernels::LaneMerges<float>{program.view(), pointers, static_cast<std::int64_t>(count)});
  std::int64_t faults = 0;
  const auto none = [](std::int64_t) { return 0.0f; };
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> slots(static_cast<std::size_t>(program.num_buffers + program.num_scratch));
    for (std::size_t b = 0; b < buffers.size(); ++b) slots[b] = before[b][i];
    run_reference(program.instructions, {}, none, none, slots);
    for (std::size_t b = 0; b < buffers.size(); ++b)
      faults += bits_of(buffers[b][i]) != bits_of(slots[b]);
  }
  return faults;
}

}  // namespace

TEST_CASE("kernels.lane_merges: every program gives the bits of its instructions") {
  Dice dice{std::mt19937(7)};
  int programs = 0;
  for (const std::size_t count : {0, 1, 511, 512, 513, 1500}) {
    for (int i = 0; i < 40; ++i, ++programs)
      CHECK(count_faults(random_program(0, dice), count, dice) == 0);
  }
  MESSAGE(programs << " random programs without rows");
}
