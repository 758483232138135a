// CounterGenerator: random numbers addressed by where they are used, for dropout and augmentation
// (contract 17).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace accrue {

/// Philox4x32-10 of Random123: a bijection of the counter for each key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// The stream of the `use`-th draw that a module makes in one forward pass: FNV-1a (64 bits) of the
/// path's bytes, plus use.
std::uint64_t stream_of(std::string_view module_path, std::uint64_t use);

/// The numbers of one sample in one stream. A pure value: every number depends only on the address,
/// never on what was drawn before, on the batch, or on sizes.
///
/// 64-bit values enter as (low word, high word). The state s is four words:
///   s = philox(counter (window, position), key seed)
///   s = philox(counter s, key stream)
///   s = philox(counter s, key x) for each coordinate x but the innermost, outermost first
/// Innermost coordinate j takes word j mod 4 of philox(counter (j / 4, s[2], s[3]), key (s[0],
/// s[1])). A sample [T, H] reads at(t).uniform(h): the same number however far T and H are padded.
class CounterGenerator {
 public:
  CounterGenerator(std::uint64_t seed,
                   std::uint64_t window,
                   std::uint64_t position,
                   std::uint64_t stream);

  /// The numbers below one coordinate.
  CounterGenerator at(std::uint64_t coordinate) const;

  /// The number at innermost coordinate j: a multiple of 2^-24 in [0, 1), the word's high 24 bits.
  float uniform(std::uint64_t j) const;
  /// out[i] = uniform(first + i).
  void uniform(std::span<float> out, std::uint64_t first = 0) const;

  /// out[i] = uniform(first + i) < p.
  ///
  /// Errors:  ValueError (p outside [0, 1] or NaN).
  void bernoulli(std::span<bool> out, double p, std::uint64_t first = 0) const;

 private:
  using Words = std::array<std::uint32_t, 4>;

  explicit CounterGenerator(Words state) : state_(state) {}
  Words block(std::uint64_t number) const;
  template <class T, class F>
  void fill(std::span<T> out, std::uint64_t first, F convert) const;

  Words state_;
};

}  // namespace accrue
