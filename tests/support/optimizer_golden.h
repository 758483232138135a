// Replays golden runs of torch's optimizers.
#pragma once

#include "accrue/core/bits.h"
#include "accrue/core/generator.h"
#include "accrue/optim/optimizer.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace accrue::tests {

/// Options of one run, in the order of the file.
class GoldenOptions {
 public:
  explicit GoldenOptions(std::vector<std::string> values) : values_(std::move(values)) {}

  double number() { return std::stod(values_.at(next_++)); }
  bool flag() { return number() != 0; }

 private:
  std::vector<std::string> values_;
  std::size_t next_ = 0;
};

inline Variable uniform_leaf(std::int64_t n, Generator& generator) {
  std::vector<float> values(static_cast<std::size_t>(n));
  generator.uniform(std::span<float>(values), -1, 1);
  return Variable::leaf(test::there(Tensor::from(values, {n})));
}

/// The hash of a parameter after `steps` steps, every third of them without gradient.
/// make(parameter) returns the optimizer.
template <class Make>
std::string replay(std::uint64_t seed, std::int64_t n, int steps, const Make& make) {
  Generator generator(seed);
  Variable p = uniform_leaf(n, generator);
  auto optimizer = make(p);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    if (step % 3 != 2) p.set_grad(uniform_leaf(n, generator).value());
    optimizer.step();
  }
  const std::vector<float> values = p.value().to_vector<float>();
  return hex16(hash_bits(std::span(values)));
}

/// Checks every run of `name` in torch_optimizers.txt (made by make_optimizers.py) and returns
/// their number. make(parameter, options) returns the optimizer.
template <class Make>
int check_golden_runs(const std::string& name, const Make& make) {
  std::ifstream file(golden_path("torch_optimizers.txt"));
  REQUIRE(file);
  int num_runs = 0;
  std::string kind, rest;
  while (file >> kind && std::getline(file, rest)) {
    if (kind != name) continue;
    std::istringstream words(rest);
    std::uint64_t seed = 0;
    std::int64_t n = 0;
    int steps = 0;
    words >> seed >> n >> steps;
    std::vector<std::string> values{std::istream_iterator<std::string>(words), {}};
    const std::string expected = values.back();
    values.pop_back();
    CAPTURE(rest);
    CHECK(replay(seed, n, steps, [&](const Variable& p) {
            GoldenOptions options(values);
            return make(p, options);
          }) == expected);
    ++num_runs;
  }
  MESSAGE("replayed ", num_runs, " runs of ", name);
  return num_runs;
}

}  // namespace accrue::tests
