// torch's CPU generator: engine, saved state and all draws but the normal ones. Fused multiply-adds
// stand where torch's AVX2 build has them.
#include "accrue/core/generator.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace accrue {
namespace {

constexpr int kShift = 397;  // distance of the recurrence

std::uint32_t twist(std::uint32_t u, std::uint32_t v) {
  const std::uint32_t mixed = (u & 0x80000000U) | (v & 0x7fffffffU);
  return (mixed >> 1) ^ ((v & 1U) ? 0x9908b0dfU : 0U);
}

std::uint32_t tempered(std::uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

template <class T>
void check_range(double from, double to) {
  constexpr double kMax = std::numeric_limits<T>::max();
  ACCRUE_CHECK(from <= to && to - from <= kMax && std::abs(from) <= kMax && std::abs(to) <= kMax,
               ValueError,
               "uniform",
               "needs from <= to with a finite distance, got from ",
               from,
               " and to ",
               to,
               "; swap or shrink the bounds");
}

// torch's saved state, field by field (the CPU build of torch 1.13 and 2.x).
struct SavedState {
  std::uint64_t seed;
  std::int32_t left;
  std::int32_t seeded;
  std::uint64_t next;
  std::uint64_t words[624];
  double normal_x;
  double normal_y;
  double normal_rho;
  std::int32_t normal_is_valid;
  std::int32_t padding;
  float float_normal;
  std::uint8_t float_normal_is_valid;
  std::uint8_t padding_end[3];
};
static_assert(sizeof(SavedState) == Generator::kStateBytes);
static_assert(std::endian::native == std::endian::little, "the saved state is little-endian");

void check_state(const SavedState& s) {
  const bool fresh = s.left == 1 && s.next == 0;
  const bool running =
      s.left >= 1 && s.left <= 624 && s.next == 625 - static_cast<unsigned>(s.left);
  ACCRUE_CHECK(s.seeded == 1 && (fresh || running),
               ValueError,
               "set_state",
               "needs a position that a generator can have, got seeded ",
               s.seeded,
               ", left ",
               s.left,
               ", next ",
               s.next,
               "; pass bytes from get_state()");
  ACCRUE_CHECK(
      std::all_of(std::begin(s.words), std::end(s.words), [](auto w) { return w >> 32 == 0; }),
      ValueError,
      "set_state",
      "needs words of 32 bits, got a larger one; pass bytes from get_state()");
  ACCRUE_CHECK((s.normal_is_valid | 1) == 1 && (s.float_normal_is_valid | 1) == 1,
               ValueError,
               "set_state",
               "needs flags 0 or 1, got ",
               s.normal_is_valid,
               " and ",
               int{s.float_normal_is_valid},
               "; pass bytes from get_state()");
}

}  // namespace

// ---- engine ----

void Generator::manual_seed(std::uint64_t seed) {
  seed_ = seed;
  words_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t j = 1; j < kWords; ++j) {
    words_[j] = 1812433253U * (words_[j - 1] ^ (words_[j - 1] >> 30)) + j;
  }
  left_ = 1;
  next_ = 0;
  spare_.reset();
  spare_float_.reset();
}

void Generator::refill() {
  std::uint32_t* const w = words_.data();
  constexpr int kWrapped = kWords - kShift;
  for (int i = 0; i < kWrapped; ++i) w[i] = w[i + kShift] ^ twist(w[i], w[i + 1]);
  for (int i = kWrapped; i < kWords - 1; ++i) w[i] = w[i - kWrapped] ^ twist(w[i], w[i + 1]);
  w[kWords - 1] = w[kShift - 1] ^ twist(w[kWords - 1], w[0]);
  left_ = kWords;
  next_ = 0;
}

std::uint32_t Generator::random() {
  if (--left_ == 0) refill();
  return tempered(words_[static_cast<std::size_t>(next_++)]);
}

void Generator::random(std::span<std::uint32_t> out) {
  while (!out.empty()) {
    if (left_ == 1) {
      refill();
      ++left_;  // the first word of a refill is still to be drawn
    }
    const auto count = std::min(out.size(), static_cast<std::size_t>(left_ - 1));
    const std::uint32_t* const words = words_.data() + next_;
    for (std::size_t i = 0; i < count; ++i) out[i] = tempered(words[i]);
    left_ -= static_cast<int>(count);
    next_ += static_cast<int>(count);
    out = out.subspan(count);
  }
}

std::uint64_t Generator::random64() {
  const std::uint64_t high = random();
  return high << 32 | random();
}

std::int64_t Generator::random_() {
  return static_cast<std::int64_t>(random64() & 0x7fffffffffffffffU);
}

// ---- saved state ----

std::vector<std::uint8_t> Generator::get_state() const {
  SavedState s{};
  s.seed = seed_;
  s.left = left_;
  s.seeded = 1;
  s.next = static_cast<std::uint64_t>(next_);
  std::copy(words_.begin(), words_.end(), s.words);
  s.normal_y = spare_.value_or(0.0);
  s.normal_is_valid = spare_.has_value();
  s.float_normal = spare_float_.value_or(0.0f);
  s.float_normal_is_valid = spare_float_.has_value();
  std::vector<std::uint8_t> bytes(sizeof s);
  std::memcpy(bytes.data(), &s, sizeof s);
  return bytes;
}

void Generator::set_state(std::span<const std::uint8_t> bytes) {
  ACCRUE_CHECK(bytes.size() == kStateBytes,
               ValueError,
               "set_state",
               "needs ",
               kStateBytes,
               " bytes, got ",
               bytes.size(),
               "; pass bytes from get_state()");
  SavedState s;
  std::memcpy(&s, bytes.data(), sizeof s);
  check_state(s);
  seed_ = s.seed;
  left_ = s.left;
  next_ = static_cast<int>(s.next);
  std::transform(std::begin(s.words), std::end(s.words), words_.begin(), [](std::uint64_t w) {
    return static_cast<std::uint32_t>(w);
  });
  spare_ = s.normal_is_valid ? std::optional(s.normal_y) : std::nullopt;
  spare_float_ = s.float_normal_is_valid ? std::optional(s.float_normal) : std::nullopt;
}

// ---- draws ----

float Generator::uniform_float() { return static_cast<float>(random() & 0xffffffU) * 0x1p-24f; }

double Generator::uniform_double() {
  return static_cast<double>(random64() & 0x1fffffffffffffU) * 0x1p-53;
}

void Generator::uniform_doubles(std::span<double> out) {
  std::uint32_t words[2 * kChunk];
  random(std::span(words, 2 * out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t bits = std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
    out[i] = static_cast<double>(static_cast<std::int64_t>(bits & 0x1fffffffffffffU)) * 0x1p-53;
  }
}

void Generator::uniform(std::span<float> out, double from, double to) {
  check_range<float>(from, to);
  const float start = static_cast<float>(from);
  const float width = static_cast<float>(to) - start;
  for (float& value : out) value = std::fma(uniform_float(), width, start);
}

void Generator::uniform(std::span<double> out, double from, double to) {
  check_range<double>(from, to);
  for (double& value : out) value = std::fma(uniform_double(), to - from, from);
}

void Generator::check_probability(double p) {
  ACCRUE_CHECK(p >= 0.0 && p <= 1.0,
               ValueError,
               "bernoulli",
               "p must lie in [0, 1], got ",
               p,
               "; pass a probability");
}

void Generator::bernoulli(std::span<float> out, std::span<const float> p) {
  ACCRUE_CHECK(out.size() == p.size(),
               ShapeError,
               "bernoulli",
               "needs one p per element, got ",
               p.size(),
               " for ",
               out.size(),
               " elements; pass equal sizes");
  for (const float value : p) check_probability(value);
  for (std::size_t i = 0; i < p.size(); ++i) out[i] = uniform_float() < p[i] ? 1.0f : 0.0f;
}

void Generator::randint(std::span<std::int64_t> out, std::int64_t low, std::int64_t high) {
  ACCRUE_CHECK(low < high,
               ValueError,
               "randint",
               "needs low < high, got low ",
               low,
               " and high ",
               high,
               "; widen the range");
  const std::uint64_t base = static_cast<std::uint64_t>(low);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - base;
  for (std::int64_t& value : out) {
    const std::uint64_t draw = range >> 32 == 0 ? random() : random64();
    value = static_cast<std::int64_t>(draw % range + base);
  }
}

std::vector<std::int64_t> Generator::randperm(std::int64_t n) {
  ACCRUE_CHECK(n >= 0, ValueError, "randperm", "n must be >= 0, got ", n, "; pass a count");
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto size = static_cast<std::uint64_t>(n);
  // Above this size the remainder of 32 bits would be visibly uneven; torch walks inside out then.
  if (size < UINT32_MAX / 20) {
    for (std::uint64_t i = 0; i + 1 < size; ++i) {
      std::swap(order[i], order[i + random() % (size - i)]);
    }
  } else {
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t z = random64() % (i + 1);
      order[i] = order[z];
      order[z] = static_cast<std::int64_t>(i);
    }
  }
  return order;
}

Generator& default_generator() {
  static thread_local Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace accrue
