// Cross-entropy kernels: exact bits against the header's formulas, torch's values, the edges.
#include "accrue/kernels/cross_entropy.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"
#include "accrue/tests/support/literal_sum.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One problem with its own memory: rows lie `gap` elements apart, and NaN fills the gaps.
template <class T>
struct Problem {
  std::int64_t rows = 0, cols = 0, gap = 0;
  std::vector<T> logits, weights, dloss;
  std::vector<std::int64_t> target;
  double smoothing = 0;
  std::int64_t ignore_index = -100;

  CrossEntropyInputs<T> inputs() const {
    return {.logits = {logits.data(), rows, cols, cols + gap, 1},
            .target = target.data(),
            .class_weights = weights.empty() ? nullptr : weights.data(),
            .ignore_index = ignore_index,
            .label_smoothing = smoothing};
  }
  const T* row(std::size_t n) const {
    return logits.data() + static_cast<std::int64_t>(n) * (cols + gap);
  }
};

template <class T>
struct Result {
  std::vector<T> loss, dlogits;
  std::uint64_t hash() const { return hash_bits(std::span(dlogits), hash_bits(std::span(loss))); }
};

template <class T>
Result<T> run(const Problem<T>& p, bool in_place = false) {
  const auto n = static_cast<std::size_t>(p.rows);
  const T poison = std::numeric_limits<T>::quiet_NaN();
  Result<T> r{std::vector<T>(n, poison), {}};
  std::vector<T> max(n, poison), sum(n, poison);
  launch_cpu(CrossEntropyForward<T>{p.inputs(), r.loss.data(), max.data(), sum.data()});
  r.dlogits.assign(n * static_cast<std::size_t>(p.cols), poison);
  auto in = p.inputs();
  if (in_place) {
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(p.row(i), p.cols, r.dlogits.data() + static_cast<std::int64_t>(i) * p.cols);
    }
    in.logits = row_major<const T>(r.dlogits.data(), p.rows, p.cols);
  }
  launch_cpu(CrossEntropyBackward<T>{.in = in,
                                     .row_max = max.data(),
                                     .row_sum = sum.data(),
                                     .dloss = p.dloss.data(),
                                     .dloss_stride = p.dloss.size() == 1 ? 0 : 1,
                                     .dlogits = row_major(r.dlogits.data(), p.rows, p.cols)});
  return r;
}

// The header's formulas, one row at a time.
template <class T>
Result<T> literal(const Problem<T>& p) {
  Result<T> r;
  const std::int64_t cols = p.cols;
  const T a = static_cast<T>(1 - p.smoothing);
  const T b = static_cast<T>(p.smoothing / static_cast<double>(cols));
  const auto w = [&](std::int64_t c) {
    return p.weights.empty() ? T(1) : p.weights[static_cast<std::size_t>(c)];
  };
  const T sum_w = test::literal_sum<T>(cols, w);
  for (std::size_t n = 0; n < p.target.size(); ++n) {
    const std::int64_t t = p.target[n];
    const T* x = p.row(n);
    const T dloss = p.dloss[p.dloss.size() == 1 ? 0 : n];
    if (t == p.ignore_index || (a * w(t) == 0 && b == 0)) {
      r.loss.push_back(0);
      r.dlogits.insert(r.dlogits.end(), static_cast<std::size_t>(cols), T(0));
      continue;
    }
    T m = x[0];
    for (std::int64_t c = 0; c < cols; ++c) m = x[c] > m || std::isnan(x[c]) ? x[c] : m;
    m = m + 0;
    const auto e = [&](std::int64_t c) { return scalar::exp(x[c] - m); };
    const T s = test::literal_sum<T>(cols, e);
    const auto nll = [&](std::int64_t c) { return scalar::log(s) - (x[c] - m); };
    T loss = a * w(t) == 0 ? T(0) : a * w(t) * nll(t);
    if (b != 0) {
      const auto term = [&](std::int64_t c) { return w(c) == 0 ? T(0) : w(c) * nll(c); };
      loss = std::fma(b, test::literal_sum<T>(cols, term), loss);
    }
    r.loss.push_back(loss);
    for (std::int64_t c = 0; c < cols; ++c) {
      const T prob = e(c) / s;
      T u = (prob - (c == t ? T(1) : T(0))) * (a * w(t));
      if (b != 0) u = std::fma(b, std::fma(prob, sum_w, -w(c)), u);
      r.dlogits.push_back(u * dloss);
    }
  }
  return r;
}

template <class T>
Problem<T> random_problem(std::int64_t rows, std::int64_t cols, int variant) {
  std::mt19937 engine(static_cast<unsigned>(rows * 131 + cols * 7 + variant));
  const auto number = [&] { return static_cast<T>(static_cast<double>(engine()) / 0x1p29 - 4); };
  Problem<T> p{rows, cols, variant % 2 == 0 ? 0 : 3, {}, {}, {}, {}, 0, -100};
  p.logits.assign(static_cast<std::size_t>(rows * (cols + p.gap)), T(kNan));
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t c = 0; c < cols; ++c) {
      p.logits[static_cast<std::size_t>(n * (cols + p.gap) + c)] = number();
    }
    p.target.push_back(static_cast<std::int64_t>(engine()) % cols);
    if (n % 5 == 2) p.target.back() = -100;
    if (p.dloss.empty() || variant % 3 != 0) p.dloss.push_back(number());
  }
  if (variant & 1) p.ignore_index = 0;
  if (variant & 1) std::replace(p.target.begin(), p.target.end(), std::int64_t{-100}, 0L);
  if (variant & 2) p.smoothing = variant & 8 ? 1.0 : 0.1;
  if (variant & 4) {
    for (std::int64_t c = 0; c < cols; ++c) p.weights.push_back(c % 4 == 1 ? T(0) : number());
  }
  return p;
}

template <class T>
Problem<T> one_row(std::vector<T> logits, std::int64_t target) {
  const auto cols = static_cast<std::int64_t>(logits.size());
  return {1, cols, 0, std::move(logits), {}, {T(1)}, {target}, 0, -100};
}

// Relative to values of size 1 and more, absolute below.
void check_near(const std::vector<float>& got, const std::vector<float>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(std::abs(got[i] - want[i]) <= 5e-7f * std::max(1.0f, std::abs(want[i])));
  }
}

// Losses and gradients of one row; NaN stands for any NaN.
void check_row(std::vector<float> logits,
               std::int64_t target,
               float loss,
               const std::vector<float>& dlogits) {
  const auto r = run(one_row(std::move(logits), target));
  CHECK(canonical_bits(r.loss[0]) == canonical_bits(loss));
  CHECK(hash_bits(std::span(r.dlogits)) == hash_bits(std::span(dlogits)));
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.cross_entropy: bits equal the literal formulas", T, float, double) {
  int num_problems = 0, num_paths = 0;
  for (const auto& [rows, cols] :
       {std::pair{1, 1}, {3, 2}, {5, 10}, {36, 7}, {64, 33}, {700, 100}, {20, 1500}, {2, 5000}}) {
    for (int variant = 0; variant < 16; ++variant, ++num_problems) {
      const auto p = random_problem<T>(rows, cols, variant);
      const std::uint64_t expected = literal(p).hash();
      CAPTURE(rows);
      CAPTURE(cols);
      CAPTURE(variant);
      num_paths += test::for_each_cpu_path([&] {
        CHECK(run(p).hash() == expected);
        CHECK(run(p, true).hash() == expected);
      });
    }
  }
  MESSAGE("swept ", num_problems, " problems, ", num_paths, " runs");
}

TEST_CASE("kernels.cross_entropy: values equal torch's") {
  std::ifstream file(accrue::tests::golden_path("torch_cross_entropy.txt"));
  REQUIRE(file);
  const auto read = [&](auto& values, std::int64_t count) {
    values.resize(static_cast<std::size_t>(count));
    for (auto& value : values) file >> value;
  };
  int num_cases = 0;
  Problem<float> p;
  for (std::int64_t num_weights = 0; file >> p.rows >> p.cols >> p.smoothing >> num_weights;) {
    std::vector<float> loss, dlogits;
    read(p.logits, p.rows * p.cols);
    read(p.target, p.rows);
    read(p.weights, num_weights);
    read(p.dloss, p.rows);
    read(loss, p.rows);
    read(dlogits, p.rows * p.cols);
    CAPTURE(num_cases);
    const auto r = run(p);
    check_near(r.loss, loss);
    check_near(r.dlogits, dlogits);
    ++num_cases;
  }
  CHECK(num_cases == 18);
}

TEST_CASE("kernels.cross_entropy: rows at the edge of the number range") {
  const auto inf = static_cast<float>(kInf), nan = static_cast<float>(kNan);
  check_row({5}, 0, 0, {0});                      // one class
  check_row({1e38f, -1e38f}, 1, 2e38f, {1, -1});  // no overflow
  check_row({3e38f, 3e38f}, 0, 0x1.62e430p-1f, {-0.5f, 0.5f});
  check_row({2, -inf, -inf}, 0, 0, {0, 0, 0});  // all the others -inf
  check_row({2, -inf}, 1, inf, {1, -1});        // target -inf
  check_row({inf, 1}, 0, nan, {nan, nan});      // target +inf
  check_row({-inf, -inf}, 0, nan, {nan, nan});
  check_row({nan, 1}, 1, nan, {nan, nan});
}

TEST_CASE("kernels.cross_entropy: a common offset does not change the loss") {
  for (const float offset : {100.0f, 1e4f, -1e4f}) {
    const auto r = run(one_row<float>({offset, offset + 1, offset + 2}, 1));
    CHECK(hex8(r.loss[0]) == hex8(run(one_row<float>({0, 1, 2}, 1)).loss[0]));
  }
  CHECK(run(one_row<float>({1e30f, 1e30f}, 1)).loss[0] == doctest::Approx(std::log(2.0)));
}

TEST_CASE("kernels.cross_entropy: an ignored row is +0 whatever it holds") {
  const auto inf = static_cast<float>(kInf), nan = static_cast<float>(kNan);
  for (const double smoothing : {0.0, 0.1}) {
    Problem<float> p{3, 2, 0, {nan, inf, 0, 1, -inf, -inf}, {}, {nan}, {-1, 1, -1}, smoothing, -1};
    auto r = run(p);
    CHECK(hex8(r.loss[0]) == "00000000");
    CHECK(hex8(r.loss[2]) == "00000000");
    for (const std::size_t i : {0U, 1U, 4U, 5U}) CHECK(hex8(r.dlogits[i]) == "00000000");
    p.target = {-1, -1, -1};
    for (const float loss : run(p).loss) CHECK(hex8(loss) == "00000000");
  }
}

TEST_CASE("kernels.cross_entropy: weight 0 leaves a term out, so 0 * inf never arises") {
  const auto inf = static_cast<float>(kInf);
  auto p = one_row<float>({1, -inf}, 1);
  p.weights = {1, 0};
  CHECK(hex8(run(p).loss[0]) == "00000000");
  p.target = {0};
  p.smoothing = 0.1;
  CHECK(hex8(run(p).loss[0]) == "00000000");
  p.weights = {1, 1};
  CHECK(run(p).loss[0] == inf);  // with smoothing, an impossible class costs without bound
  p.smoothing = 0;
  CHECK(run(p).loss[0] == 0);
}

TEST_CASE("kernels.cross_entropy: targets are checked before other memory is touched") {
  const std::int64_t bad[] = {10, -1, std::numeric_limits<std::int64_t>::min(), 12};
  for (const std::int64_t value : bad) {
    const std::int64_t target[] = {0, -100, 9, value};
    const CrossEntropyInputs<float> in{.logits = {nullptr, 4, 10, 10, 1}, .target = target};
    CHECK_THROWS_AS(launch_cpu(CrossEntropyForward<float>{.in = in}), IndexError);
    CHECK_THROWS_AS(
        launch_cpu(CrossEntropyBackward<float>{.in = in, .dlogits = {nullptr, 4, 10, 10, 1}}),
        IndexError);
  }
  const std::int64_t target[] = {0, -100, 9, 12};
  CHECK_THROWS_WITH_AS(check_targets(target, 4, 10, -100),
                       "[cross_entropy] target must lie in [0, 10), got 12 at index 3; check the "
                       "label encoding or set ignore_index (now -100)",
                       IndexError);
  CHECK_NOTHROW(check_targets(target, 3, 10, -100));
  const std::int64_t with_ignored[] = {0, 12, 9};
  CHECK_NOTHROW(check_targets(with_ignored, 3, 10, 12));
}

TEST_CASE("kernels.cross_entropy: layouts and options outside the contract are refused") {
  const std::int64_t target[] = {0, 0};
  CrossEntropyInputs<float> in{.logits = {nullptr, 2, 0, 0, 1}, .target = target};
  CHECK_THROWS_WITH_AS(launch_cpu(CrossEntropyForward<float>{.in = in}),
                       "[cross_entropy] logits must have at least one class, got [2, 0]; check the "
                       "last layer",
                       ShapeError);
  in.logits = {nullptr, 0, 0, 0, 1};
  CHECK_NOTHROW(launch_cpu(CrossEntropyForward<float>{.in = in}));
  in.logits = {nullptr, 2, 3, 1, 2};
  CHECK_THROWS_WITH_AS(launch_cpu(CrossEntropyForward<float>{.in = in}),
                       "[cross_entropy] rows must have stride 1, got 2; pass a contiguous copy",
                       ShapeError);
  in.logits = {nullptr, 2, 3, 3, 1};
  CHECK_THROWS_WITH_AS(
      launch_cpu(CrossEntropyBackward<float>{.in = in, .dlogits = {nullptr, 2, 4, 4, 1}}),
      "[cross_entropy] operands must have one shape, got [2, 3] and [2, 4]; "
      "reshape or expand one",
      ShapeError);
  for (const double smoothing : {-0.1, 1.1, kNan}) {
    in.label_smoothing = smoothing;
    CHECK_THROWS_AS(launch_cpu(CrossEntropyForward<float>{.in = in}), ValueError);
  }
  in.label_smoothing = 1.1;
  CHECK_THROWS_WITH_AS(launch_cpu(CrossEntropyForward<float>{.in = in}),
                       "[cross_entropy] label_smoothing must lie in [0, 1], got 1.1; pass a share "
                       "such as 0.1",
                       ValueError);
}
