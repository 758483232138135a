// The words behind CounterGenerator, for hosts and CUDA devices. Not installed: Random123 is not.
#pragma once

#include "accrue/core/host_device.h"

#include <Random123/philox.h>

#include <array>
#include <cstdint>

namespace accrue {

using CounterWords = std::array<std::uint32_t, 4>;

ACCRUE_HD std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
ACCRUE_HD std::uint32_t high_word(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

/// Philox4x32-10 of Random123.
ACCRUE_HD CounterWords philox_words(const CounterWords& counter,
                                    std::uint32_t key_low,
                                    std::uint32_t key_high) {
  const r123::Philox4x32::ctr_type c{{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32::key_type key{{key_low, key_high}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32()(c, key);
  return {words.v[0], words.v[1], words.v[2], words.v[3]};
}

/// The state below a coordinate.
ACCRUE_HD CounterWords counter_state_at(const CounterWords& state, std::uint64_t coordinate) {
  return philox_words(state, low_word(coordinate), high_word(coordinate));
}

/// The state of a sample in a stream.
ACCRUE_HD CounterWords counter_state(std::uint64_t seed,
                                     std::uint64_t window,
                                     std::uint64_t position,
                                     std::uint64_t stream) {
  const CounterWords counter = {
      low_word(window), high_word(window), low_word(position), high_word(position)};
  return counter_state_at(counter_state_at(counter, seed), stream);
}

/// The words of innermost coordinates [4 * number, 4 * number + 4).
ACCRUE_HD CounterWords counter_block(const CounterWords& state, std::uint64_t number) {
  return philox_words(
      {low_word(number), high_word(number), state[2], state[3]}, state[0], state[1]);
}

/// A multiple of 2^-24 in [0, 1).
ACCRUE_HD float counter_unit(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace accrue
