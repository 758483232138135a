// The names of platform.h for g++ and the simulator. Each call knows its place in the source.
#pragma once

#include "accrue/core/host_device.h"
#include "accrue/kernels/simt/simt.h"
#include "accrue/kernels/simt/streams.h"

#include <tuple>
#include <type_traits>
#include <utility>

#define ACCRUE_KERNEL(threads) inline
#define ACCRUE_DEVICE inline
#define ACCRUE_PARAMETER const
#define ACCRUE_UNROLL
#define ACCRUE_UNROLL_BY(n)
#define ACCRUE_NO_UNROLL
#define ACCRUE_SHARED(T, name, count)                           \
  static_assert(std::is_trivially_copyable_v<T>);               \
  T* const name = static_cast<T*>(::accrue::simt::shared_array( \
      [] {                                                      \
        static const char key = 0;                              \
        return &key;                                            \
      }(),                                                      \
      #name,                                                    \
      sizeof(T) * static_cast<std::size_t>(count),              \
      ::accrue::simt::Site::current()))

namespace accrue::kernels::cuda {

using simt::Site;
using simt::WarpOp;

inline int thread_index() { return static_cast<int>(simt::current_thread->thread.x); }
inline int num_threads() { return static_cast<int>(simt::current_thread->block_size.x); }
inline int block_x() { return static_cast<int>(simt::current_thread->block.x); }
inline int block_y() { return static_cast<int>(simt::current_thread->block.y); }
inline int num_blocks_x() { return static_cast<int>(simt::current_thread->grid.x); }

template <class T>
T* dynamic_shared(Site site = Site::current()) {
  return static_cast<T*>(simt::dynamic_shared_array(site));
}

inline void sync_block(Site site = Site::current()) { simt::sync_block(site); }
inline void sync_warp(unsigned lanes = kAllLanes, Site site = Site::current()) {
  simt::meet_warp(WarpOp::sync, lanes, 0, 0, kWarpSize, site);
}

template <class T>
T shuffle(T value,
          int lane,
          unsigned lanes = kAllLanes,
          int width = kWarpSize,
          Site site = Site::current()) {
  return simt::shuffle(WarpOp::shuffle, lanes, value, lane, width, site);
}
template <class T>
T shuffle_up(T value,
             int distance,
             unsigned lanes = kAllLanes,
             int width = kWarpSize,
             Site site = Site::current()) {
  return simt::shuffle(WarpOp::shuffle_up, lanes, value, distance, width, site);
}
template <class T>
T shuffle_down(T value,
               int distance,
               unsigned lanes = kAllLanes,
               int width = kWarpSize,
               Site site = Site::current()) {
  return simt::shuffle(WarpOp::shuffle_down, lanes, value, distance, width, site);
}
template <class T>
T shuffle_xor(T value,
              int mask,
              unsigned lanes = kAllLanes,
              int width = kWarpSize,
              Site site = Site::current()) {
  return simt::shuffle(WarpOp::shuffle_xor, lanes, value, mask, width, site);
}

inline unsigned ballot(bool vote, unsigned lanes = kAllLanes, Site site = Site::current()) {
  return static_cast<unsigned>(
      simt::meet_warp(WarpOp::ballot, lanes, vote ? 1 : 0, 0, kWarpSize, site));
}
inline bool any_lane(bool vote, unsigned lanes = kAllLanes, Site site = Site::current()) {
  return ballot(vote, lanes, site) != 0;
}
inline bool all_lanes(bool vote, unsigned lanes = kAllLanes, Site site = Site::current()) {
  return ballot(vote, lanes, site) == lanes;
}

inline int reduce_warp(WarpOp op, int value, unsigned lanes, Site site) {
  const auto wide = static_cast<std::uint64_t>(std::int64_t{value});
  return static_cast<int>(simt::meet_warp(op, lanes, wide, 0, kWarpSize, site));
}
inline int warp_sum(int value, unsigned lanes = kAllLanes, Site site = Site::current()) {
  return reduce_warp(WarpOp::add, value, lanes, site);
}
inline int warp_min(int value, unsigned lanes = kAllLanes, Site site = Site::current()) {
  return reduce_warp(WarpOp::smallest, value, lanes, site);
}
inline int warp_max(int value, unsigned lanes = kAllLanes, Site site = Site::current()) {
  return reduce_warp(WarpOp::largest, value, lanes, site);
}

inline bool is_aligned4(const float* p) { return std::bit_cast<std::uintptr_t>(p) % 16 == 0; }
inline Float4 load4(const float* p, Site site = Site::current()) {
  simt::check_aligned(p, site);
  return {{p[0], p[1], p[2], p[3]}};
}
inline void store4(float* p, Float4 value, Site site = Site::current()) {
  simt::check_aligned(p, site);
  for (int i = 0; i < 4; ++i) p[i] = value.v[i];
}
inline void stream4(float* p, Float4 value, Site site = Site::current()) { store4(p, value, site); }

inline int atomic_add(int* p, int value) { return __atomic_fetch_add(p, value, __ATOMIC_RELAXED); }
inline int atomic_max(int* p, int value) {
  int seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (seen < value &&
         !__atomic_compare_exchange_n(p, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}
void atomic_add(float*, float) = delete;
void atomic_add(double*, double) = delete;
void atomic_max(float*, float) = delete;
void atomic_max(double*, double) = delete;

inline std::size_t max_shared_bytes() { return simt::kMaxShared; }

/// Queues kernel(args...) on the stream, to run under the options that hold now.
///
/// Errors:  simt::KernelFault, here or where somebody waits for the stream.
template <class... Parameters, class... Args>
void launch(const Launch& how, void (*kernel)(Parameters...), const Args&... args) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernels take plain values");
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "CUDA passes at most 4 KB to a kernel");
  const auto narrow = [](std::int64_t size) {
    return size < 0 || size > 0xffffffffLL ? 0xffffffffU : static_cast<unsigned>(size);
  };
  const simt::LaunchShape shape{how.name,
                                {narrow(how.grid_x), narrow(how.grid_y), 1},
                                {static_cast<unsigned>(how.threads), 1, 1},
                                how.dynamic_shared};
  auto run = [=, parameters = std::tuple<Parameters...>(args...), options = simt::run_options()] {
    auto call = [&] { std::apply(kernel, parameters); };
    const simt::OptionsScope scope(options);
    simt::run_grid(
        shape, [](void* it) { (*static_cast<decltype(call)*>(it))(); }, &call);
  };
  simt::enqueue(static_cast<simt::Stream*>(how.stream.handle), std::move(run));
}

}  // namespace accrue::kernels::cuda
