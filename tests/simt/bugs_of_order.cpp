// Planted bugs of barriers and warps, and races.
#include "accrue/kernels/cuda/platform.h"
#include "accrue/tests/simt/planted_bugs.h"
#include "accrue/tests/support/simt_check.h"

namespace accrue::test {
namespace {

using namespace kernels::cuda;

constexpr int kThreads = 64;

using Kernel = void (*)(const float*, float*, int);

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

/// Runs a kernel on `count` inputs and outputs.
std::string examine_kernel(
    const char* name, Kernel kernel, int blocks = 1, int count = kThreads, int threads = kThreads) {
  DeviceFloats x(ramp(static_cast<std::size_t>(count)));
  DeviceFloats y(DeviceFloats::unwritten(static_cast<std::size_t>(count)));
  return examine({{"y", &y}}, [&] {
    launch({.name = name, .grid_x = blocks, .threads = threads}, kernel, x.data(), y.data(), count);
  });
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void read_before_written(const float* x, float* y, int) {
  ACCRUE_SHARED(float, tile, kThreads);
  const int t = thread_index();
  tile[t] = x[t];
  if constexpr (!kBug) sync_block();
  y[t] = tile[kThreads - 1 - t];
}

/// Ends with a read that no barrier follows: the next block on the same memory comes later.
template <bool kBug>
ACCRUE_KERNEL(kThreads)
void written_before_read(const float* x, float* y, int) {
  ACCRUE_SHARED(float, tile, kThreads);
  const int t = thread_index(), i = block_x() * kThreads + t;
  tile[t] = x[i];
  sync_block();
  const float mirrored = tile[kThreads - 1 - t];
  if constexpr (!kBug) sync_block();
  tile[t] = 2 * mirrored;
  sync_block();
  y[i] = tile[kThreads - 1 - t];
}

/// Two values through one buffer, as softmax kernels do with maximum and sum.
template <bool kBug>
ACCRUE_KERNEL(kThreads)
void buffer_used_twice(const float* x, float* y, int) {
  ACCRUE_SHARED(float, total, 2);
  const int t = thread_index();
  if (t == 0) total[0] = x[0];
  sync_block();
  const float first = total[0];
  if constexpr (!kBug) sync_block();
  if (t == kThreads - 1) total[0] = x[t];
  sync_block();
  y[t] = first + 100 * total[0];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void divergent_barrier(const float* x, float* y, int) {
  const int t = thread_index();
  if (kBug && t < 32) {
    sync_block();
  } else {
    sync_block();
  }
  y[t] = x[t];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void barrier_in_branch(const float* x, float* y, int) {
  const int t = thread_index();
  if (!kBug || t < 32) sync_block();
  y[t] = x[t];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void early_return(const float* x, float* y, int count) {
  ACCRUE_SHARED(float, tile, kThreads);
  const int t = thread_index(), i = block_x() * kThreads + t;
  if (kBug && i >= count) return;
  tile[t] = i < count ? x[i] : 0.0f;
  sync_block();
  if (i < count) y[i] = tile[t];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void absent_lanes(const float* x, float* y, int) {
  const int t = thread_index();
  float value = x[t];
  if (!kBug || t % 32 < 16) value += shuffle_xor(value, 1);
  y[t] = value;
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void lane_outside_mask(const float* x, float* y, int) {
  const int t = thread_index();
  y[t] = any_lane(x[t] > 5, kBug ? 0xffffU : kAllLanes) ? 1.0f : 0.0f;
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void source_outside_mask(const float* x, float* y, int) {
  const int t = thread_index();
  float value = x[t];
  if (t < 16) value = shuffle(value, kBug ? 20 : 10, 0xffffU);
  y[t] = value;
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void half_warp(const float* x, float* y, int) {
  const int t = thread_index();
  const unsigned lanes = !kBug && t >= 32 ? 0xffffU : kAllLanes;
  y[t] = x[t] + static_cast<float>(warp_sum(t, lanes));
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void shuffle_as_barrier(const float* x, float* y, int) {
  ACCRUE_SHARED(float, tile, kThreads);
  const int t = thread_index();
  tile[t] = x[t];
  if constexpr (kBug) {
    (void)shuffle(t, 0);
  } else {
    sync_warp();
  }
  y[t] = tile[t ^ 1];
}

/// Block b owns 64 elements; with the bug it also writes the first of the next block.
template <bool kBug>
ACCRUE_KERNEL(kThreads)
void blocks_share_an_element(const float* x, float* y, int count) {
  const int i = block_x() * kThreads + thread_index();
  y[i] = x[i] + static_cast<float>(block_x());
  const int next = (block_x() + 1) * kThreads;
  if (kBug && thread_index() == 0 && next < count) y[next] = x[next];
}

}  // namespace

#define ACCRUE_EXAMINE(kernel, ...)                                                     \
  [](bool has_bug) {                                                                    \
    return has_bug ? examine_kernel(#kernel, kernel<true> __VA_OPT__(, ) __VA_ARGS__)   \
                   : examine_kernel(#kernel, kernel<false> __VA_OPT__(, ) __VA_ARGS__); \
  }

std::vector<PlantedBug> bugs_of_order() {
  constexpr const char *kSchedule = "depends on the schedule", *kRace = "data race";
  const auto fault = [](const char* name, auto examine, const char* report) {
    return PlantedBug{name, examine, report, report, report};
  };
  return {
      {"read before written", ACCRUE_EXAMINE(read_before_written), kSchedule, kSchedule, kRace},
      {"written before read",
       ACCRUE_EXAMINE(written_before_read, 5, 5 * kThreads),
       kSchedule,
       kSchedule,
       kRace},
      {"buffer used twice", ACCRUE_EXAMINE(buffer_used_twice), kSchedule, kSchedule, kRace},
      {"a shuffle as barrier", ACCRUE_EXAMINE(shuffle_as_barrier), nullptr, nullptr, kRace},
      {"blocks share an element",
       ACCRUE_EXAMINE(blocks_share_an_element, 2, 2 * kThreads),
       kSchedule,
       kSchedule,
       kRace},
      fault("divergent barrier", ACCRUE_EXAMINE(divergent_barrier), "waits at the barrier"),
      fault("barrier in a branch", ACCRUE_EXAMINE(barrier_in_branch), "has returned"),
      fault("early return", ACCRUE_EXAMINE(early_return, 2, 100), "has returned"),
      fault("absent lanes", ACCRUE_EXAMINE(absent_lanes), "waits for lane 16 in vain"),
      fault("lane outside its mask", ACCRUE_EXAMINE(lane_outside_mask), "is not in the mask ffff"),
      fault("source outside the mask", ACCRUE_EXAMINE(source_outside_mask), "reads lane 20"),
      fault("half a warp", ACCRUE_EXAMINE(half_warp, 1, 48, 48), "only 48 threads"),
  };
}

}  // namespace accrue::test
