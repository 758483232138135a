// Softmax kernels: exact bits against the header's formulas, torch's values, edges.
#include "accrue/kernels/softmax.h"

#include "accrue/core/error.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/literal_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;

namespace {

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(static_cast<double>(engine()) / 0x1p29 - 4);
  return x;
}

template <class T>
std::vector<T> forward(SoftmaxKind kind, const std::vector<T>& x, std::int64_t cols) {
  const auto rows = static_cast<std::int64_t>(x.size()) / std::max<std::int64_t>(cols, 1);
  std::vector<T> y(x.size(), T(7));
  launch_cpu(
      SoftmaxForward<T>{kind, row_major(x.data(), rows, cols), row_major(y.data(), rows, cols)});
  return y;
}

template <class T>
std::vector<T> backward(SoftmaxKind kind,
                        const std::vector<T>& y,
                        std::vector<T> dy,
                        std::int64_t cols) {
  const auto rows = static_cast<std::int64_t>(y.size()) / cols;
  const auto in_place = row_major(dy.data(), rows, cols);
  launch_cpu(SoftmaxBackward<T>{kind, row_major(y.data(), rows, cols), in_place, in_place});
  return dy;
}

template <class T>
std::vector<T> literal_forward(SoftmaxKind kind, const T* x, std::int64_t cols) {
  const T m = *std::max_element(x, x + cols);
  const auto e = [&](std::int64_t c) { return scalar::exp(x[c] - m); };
  const T s = test::literal_sum<T>(cols, e);
  std::vector<T> y;
  for (std::int64_t c = 0; c < cols; ++c) {
    y.push_back(kind == SoftmaxKind::plain ? e(c) / s : (x[c] - m) - scalar::log(s));
  }
  return y;
}

template <class T>
std::vector<T> literal_backward(SoftmaxKind kind, const T* y, const T* dy, std::int64_t cols) {
  const bool plain = kind == SoftmaxKind::plain;
  const T k = test::literal_accumulate<T>(cols, [&](T acc, std::int64_t c) {
    return plain ? std::fma(dy[c], y[c], acc) : acc + dy[c];
  });
  std::vector<T> dx;
  for (std::int64_t c = 0; c < cols; ++c) {
    dx.push_back(plain ? y[c] * (dy[c] - k) : std::fma(-scalar::exp(y[c]), k, dy[c]));
  }
  return dx;
}

void check_near(const std::vector<float>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(static_cast<double>(got[i]) == doctest::Approx(want[i]).epsilon(2e-6));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.softmax: bits equal the literal formulas", T, float, double) {
  int num_paths = 0;
  for (const SoftmaxKind kind : {SoftmaxKind::plain, SoftmaxKind::log}) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {5, 10}, {300, 65}, {12, 2100}}) {
      const auto x = numbers<T>(rows * cols, 1), dy = numbers<T>(rows * cols, 2);
      std::vector<T> y, dx;
      for (std::int64_t begin = 0; begin < rows * cols; begin += cols) {
        const auto y_row = literal_forward(kind, x.data() + begin, cols);
        const auto dx_row = literal_backward(kind, y_row.data(), dy.data() + begin, cols);
        y.insert(y.end(), y_row.begin(), y_row.end());
        dx.insert(dx.end(), dx_row.begin(), dx_row.end());
      }
      CAPTURE(cols);
      num_paths += test::for_each_cpu_path([&] {
        CHECK(forward(kind, x, cols) == y);
        CHECK(backward(kind, y, dy, cols) == dx);
      });
    }
  }
  MESSAGE("swept 8 problems, ", num_paths, " runs");
}

TEST_CASE("kernels.softmax: values equal torch's") {
  const std::vector<float> x{0.5f, -1.25f, 2, 3, 0.1f, -0.7f}, dy{1, 2, 3, -1, 0.5f, 0.25f};
  const auto plain = forward(SoftmaxKind::plain, x, 3), log = forward(SoftmaxKind::log, x, 3);
  check_near(plain, {0.1768202, 0.03072674, 0.7924531, 0.9261431, 0.05095937, 0.02289752});
  check_near(backward(SoftmaxKind::plain, plain, dy, 3),
             {-0.2856765, -0.0189164, 0.3045928, -0.09730146, 0.07108521, 0.02621627});
  check_near(log, {-1.732622, -3.482622, -0.232622, -0.0767265, -2.976727, -3.776726});
  check_near(backward(SoftmaxKind::log, log, dy, 3),
             {-0.06092104, 1.815639, -1.754718, -0.7684642, 0.5127398, 0.2557244});
}

TEST_CASE("kernels.softmax: huge, infinite and empty rows") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto plain = [](std::vector<float> x) {
    return forward(SoftmaxKind::plain, x, static_cast<std::int64_t>(x.size()));
  };
  CHECK(plain({3e38f, 3e38f}) == std::vector<float>{0.5f, 0.5f});
  CHECK(plain({-kInf, 1}) == std::vector<float>{0, 1});
  CHECK(forward(SoftmaxKind::log, std::vector{-kInf, 1.0f}, 2) == std::vector<float>{-kInf, 0});
  for (const auto& x : {std::vector{-kInf, -kInf}, {kInf, 1.0f}, {std::nanf(""), 1.0f}}) {
    for (const float value : plain(x)) CHECK(std::isnan(value));
  }
  CHECK(plain({}).empty());
}

TEST_CASE("kernels.softmax: operands of different shape are refused") {
  float x[6] = {};
  const SoftmaxForward<float> args{
      SoftmaxKind::plain, row_major<const float>(x, 2, 3), row_major(x, 3, 2)};
  CHECK_THROWS_WITH_AS(launch_cpu(args),
                       "[softmax] operands must have one shape, got [2, 3] and [3, 2]; reshape or "
                       "expand one",
                       ShapeError);
}
