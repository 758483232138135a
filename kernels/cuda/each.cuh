// launch_each: a body for every element of a result, whose operands have any layouts and types.
#pragma once

#include "accrue/kernels/cuda/layouts.cuh"
#include "accrue/kernels/cuda/quad.cuh"

namespace accrue::kernels::cuda {

/// Calls body(i) for this thread's elements of `count`: neighbours belong to neighbouring threads.
template <class Body>
ACCRUE_DEVICE void for_own_elements(std::int64_t count, const Body& body) {
  for (int c = 0; c < kQuad; ++c) {
    const std::int64_t i = (std::int64_t{block_x()} * kQuad + c) * kQuadThreads + thread_index();
    if (i < count) body(i);
  }
}

template <class Body>
ACCRUE_KERNEL(kQuadThreads)
void each_kernel(ACCRUE_PARAMETER Body body, std::int64_t count) {
  for_own_elements(count, body);
}

/// Calls body(i) for all i in [0, count).
template <class Body>
void launch_each(const char* name, std::int64_t count, const Body& body, Stream stream) {
  if (count == 0) return;
  launch(quad_launch(name, count, stream), each_kernel<Body>, body, count);
}

/// Element i of an array of elements of `size` bytes: 1, 2, 4 or 8.
ACCRUE_DEVICE std::uint64_t load_word(const void* data, std::int64_t i, std::int64_t size) {
  if (size == 4) return static_cast<const std::uint32_t*>(data)[i];
  if (size == 8) return static_cast<const std::uint64_t*>(data)[i];
  if (size == 2) return static_cast<const std::uint16_t*>(data)[i];
  return static_cast<const std::uint8_t*>(data)[i];
}

ACCRUE_DEVICE void store_word(void* data, std::int64_t i, std::int64_t size, std::uint64_t word) {
  if (size == 4) {
    static_cast<std::uint32_t*>(data)[i] = static_cast<std::uint32_t>(word);
  } else if (size == 8) {
    static_cast<std::uint64_t*>(data)[i] = word;
  } else if (size == 2) {
    static_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(word);
  } else {
    static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(word);
  }
}

}  // namespace accrue::kernels::cuda
