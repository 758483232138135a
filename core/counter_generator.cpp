// Random numbers by address: words from Random123's Philox.
#include "accrue/core/counter_generator.h"

#include "accrue/core/error.h"

#include <Random123/philox.h>

namespace accrue {
namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

float unit(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  const r123::Philox4x32::ctr_type c{{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32::key_type k{{key[0], key[1]}};
  const auto words = r123::Philox4x32()(c, k);
  return {words[0], words[1], words[2], words[3]};
}

std::uint64_t stream_of(std::string_view module_path, std::uint64_t use) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : module_path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash + use;
}

CounterGenerator::CounterGenerator(std::uint64_t seed,
                                   std::uint64_t window,
                                   std::uint64_t position,
                                   std::uint64_t stream)
    : state_(philox({low(window), high(window), low(position), high(position)},
                    {low(seed), high(seed)})) {
  state_ = at(stream).state_;
}

CounterGenerator CounterGenerator::at(std::uint64_t coordinate) const {
  return CounterGenerator(philox(state_, {low(coordinate), high(coordinate)}));
}

CounterGenerator::Words CounterGenerator::block(std::uint64_t number) const {
  return philox({low(number), high(number), state_[2], state_[3]}, {state_[0], state_[1]});
}

float CounterGenerator::uniform(std::uint64_t j) const { return unit(block(j / 4)[j % 4]); }

template <class T, class F>
void CounterGenerator::fill(std::span<T> out, std::uint64_t first, F convert) const {
  Words words{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t j = first + i;
    if (i == 0 || j % 4 == 0) words = block(j / 4);
    out[i] = convert(unit(words[j % 4]));
  }
}

void CounterGenerator::uniform(std::span<float> out, std::uint64_t first) const {
  fill(out, first, [](float u) { return u; });
}

void CounterGenerator::bernoulli(std::span<bool> out, double p, std::uint64_t first) const {
  ACCRUE_CHECK(p >= 0.0 && p <= 1.0,
               ValueError,
               "bernoulli",
               "p must lie in [0, 1], got ",
               p,
               "; pass a probability");
  fill(out, first, [p](float u) { return static_cast<double>(u) < p; });
}

}  // namespace accrue
