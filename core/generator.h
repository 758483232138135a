// Generator: torch's CPU generator to the bit (profile torch_fma), for initial weights and orders.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace accrue {

/// Mersenne Twister with torch's draws: same seed and calls, same bits as torch on a CPU with FMA.
///
/// A value type: copies continue independently. Not synchronised; give each thread its own.
/// Every fill draws in element order. An argument error (ValueError) leaves the state unchanged.
class Generator {
 public:
  static constexpr std::uint64_t kDefaultSeed = 67280421310721U;  ///< of a new torch.Generator
  static constexpr std::size_t kStateBytes = 5056;

  explicit Generator(std::uint64_t seed = kDefaultSeed) { manual_seed(seed); }

  /// Restarts the stream and drops cached normals. Only the low 32 bits choose the stream, as in
  /// torch; initial_seed() keeps all 64.
  void manual_seed(std::uint64_t seed);
  std::uint64_t initial_seed() const { return seed_; }

  /// torch's 5,056-byte state: a byte tensor from torch.get_rng_state() fits and vice versa.
  std::vector<std::uint8_t> get_state() const;
  /// Errors: ValueError (size, or content that no generator can have); the state is unchanged then.
  void set_state(std::span<const std::uint8_t> bytes);

  std::uint32_t random();    ///< the next 32 bits
  std::uint64_t random64();  ///< two draws, the first is the high word
  std::int64_t random_();    ///< 63 bits: what random_() writes into an int64 tensor

  /// Uniform on [from, to): fma(u, to - from, from) in the element type.
  void uniform(std::span<float> out, double from = 0, double to = 1);
  void uniform(std::span<double> out, double from = 0, double to = 1);

  /// Normal numbers. Fewer than 16 elements come from normal(mean, std) one by one, more from
  /// blocks of 16 by another formula: the two share no values.
  void normal(std::span<float> out, double mean = 0, double std = 1);
  void normal(std::span<double> out, double mean = 0, double std = 1);
  /// One normal number in double. Numbers come in pairs; the second of a pair waits for the next
  /// call and is part of the state. torch fills tensors that are not contiguous this way.
  double normal(double mean, double std);

  /// 1 with probability p, else 0; one double uniform per element. T: bool, uint8, int32, int64,
  /// float or double.
  template <class T>
  void bernoulli(std::span<T> out, double p) {
    check_probability(p);
    double numbers[kChunk];
    while (!out.empty()) {
      const std::span<T> part = out.first(out.size() < kChunk ? out.size() : kChunk);
      uniform_doubles(std::span(numbers, part.size()));
      for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<T>(numbers[i] < p);
      out = out.subspan(part.size());
    }
  }
  /// 1 with probability p[i]; one float uniform per element. Sizes must agree (ShapeError).
  void bernoulli(std::span<float> out, std::span<const float> p);

  /// Integers in [low, high), by remainder as in torch.
  void randint(std::span<std::int64_t> out, std::int64_t low, std::int64_t high);
  /// A random order of 0 .. n-1.
  std::vector<std::int64_t> randperm(std::int64_t n);

 private:
  static constexpr int kWords = 624;
  static constexpr std::size_t kChunk = 256;  // numbers drawn at once

  static void check_probability(double p);
  float uniform_float();
  double uniform_double();
  void uniform_doubles(std::span<double> out);  ///< at most kChunk
  void random(std::span<std::uint32_t> out);    ///< one random() each
  void refill();

  std::uint64_t seed_ = 0;
  std::array<std::uint32_t, kWords> words_{};
  int left_ = 1;                      // draws until the next refill, plus one
  int next_ = 0;                      // index of the next word
  std::optional<double> spare_;       // second normal of a pair
  std::optional<float> spare_float_;  // kept for states that other torch builds wrote
};

/// The generator of the calling thread (ranks may be threads). It starts from kDefaultSeed, so a
/// program that never seeds repeats itself.
Generator& default_generator();

/// default_generator().manual_seed(seed).
void manual_seed(std::uint64_t seed);

}  // namespace accrue
