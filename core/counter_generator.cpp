// Random numbers by address: words from Random123's Philox.
#include "accrue/core/counter_generator.h"

#include "accrue/core/error.h"
#include "accrue/core/philox/counter_words.h"

namespace accrue {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  return philox_words(counter, key[0], key[1]);
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
    : state_(counter_state(seed, window, position, stream)) {}

CounterGenerator CounterGenerator::at(std::uint64_t coordinate) const {
  return CounterGenerator(counter_state_at(state_, coordinate));
}

CounterGenerator::Words CounterGenerator::block(std::uint64_t number) const {
  return counter_block(state_, number);
}

float CounterGenerator::uniform(std::uint64_t j) const { return counter_unit(block(j / 4)[j % 4]); }

template <class T, class F>
void CounterGenerator::fill(std::span<T> out, std::uint64_t first, F convert) const {
  Words words{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t j = first + i;
    if (i == 0 || j % 4 == 0) words = block(j / 4);
    out[i] = convert(counter_unit(words[j % 4]));
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
