// Squared-error kernels: exact bits against the header's formulas, values, edges, errors.
#include "accrue/kernels/mse.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;

namespace {

template <class T>
Matrix<const T> view(const std::vector<T>& data, std::int64_t rows, std::int64_t cols) {
  return row_major<const T>(data.data(), rows, cols);
}

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(static_cast<double>(engine()) / 0x1p30 - 2);
  return x;
}

template <class T>
std::vector<T> losses(const std::vector<T>& x, const std::vector<T>& y, std::int64_t cols) {
  const auto rows = cols == 0 ? 2 : static_cast<std::int64_t>(x.size()) / cols;
  std::vector<T> loss(static_cast<std::size_t>(rows), std::numeric_limits<T>::quiet_NaN());
  launch_cpu(MseForward<T>{view(x, rows, cols), view(y, rows, cols), loss.data()});
  return loss;
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.mse: bits equal the literal formulas", T, float, double) {
  int num_paths = 0;
  for (const auto& [rows, cols] : {std::pair{1, 1}, {5, 3}, {9, 40}, {500, 65}, {20, 2100}}) {
    const auto x = numbers<T>(rows * cols, 1), y = numbers<T>(rows * cols, 2);
    const auto dloss = numbers<T>(rows, 3);
    std::vector<T> loss, dx, dy;
    for (std::int64_t n = 0; n < rows; ++n) {
      const auto d = [&](std::int64_t c) {
        const auto i = static_cast<std::size_t>(n * cols + c);
        return x[i] - y[i];
      };
      loss.push_back(test::literal_accumulate<T>(
          cols, [&](T acc, std::int64_t c) { return std::fma(d(c), d(c), acc); }));
      for (std::int64_t c = 0; c < cols; ++c) {
        dx.push_back(2 * d(c) * dloss[static_cast<std::size_t>(n)]);
        dy.push_back(-dx.back());
      }
    }
    CAPTURE(cols);
    num_paths += test::for_each_cpu_path([&] {
      CHECK(losses(x, y, cols) == loss);
      std::vector<T> got_dx(x.size()), got_dy(x.size());
      MseBackward<T> backward{view(x, rows, cols),
                              view(y, rows, cols),
                              dloss.data(),
                              1,
                              row_major(got_dx.data(), rows, cols),
                              row_major(got_dy.data(), rows, cols)};
      launch_cpu(backward);
      CHECK(got_dx == dx);
      CHECK(got_dy == dy);
      backward.dx.data = nullptr;
      got_dx.assign(x.size(), T(7));
      launch_cpu(backward);
      CHECK(got_dx == std::vector<T>(x.size(), T(7)));
    });
  }
  MESSAGE("swept 5 shapes, ", num_paths, " runs");
}

TEST_CASE("kernels.mse: one upstream value serves all rows with stride 0") {
  const std::vector<float> x{1, 2, 3}, y{0, 0, 5};
  const float dloss = 0.5f;
  std::vector<float> dx(3);
  launch_cpu(
      MseBackward<float>{view(x, 3, 1), view(y, 3, 1), &dloss, 0, row_major(dx.data(), 3, 1), {}});
  CHECK(dx == std::vector<float>{1, 2, -2});
}

TEST_CASE("kernels.mse: empty rows, infinities and overflow") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK(hex8(losses<float>({}, {}, 0)[1]) == "00000000");
  CHECK(std::isnan(losses<float>({kInf}, {kInf}, 1)[0]));
  CHECK(losses<float>({1e20f}, {-1e20f}, 1)[0] == kInf);
  CHECK(losses<float>({3, 1}, {1, 1}, 2)[0] == 4);
}

TEST_CASE("kernels.mse: operands of different shape or without unit stride are refused") {
  const std::vector<float> x(12);
  MseForward<float> args{view(x, 3, 2), view(x, 3, 4), nullptr};
  CHECK_THROWS_WITH_AS(launch_cpu(args),
                       "[mse] operands must have one shape, got [3, 2] and [3, 4]; reshape or "
                       "expand one",
                       ShapeError);
  args.y = view(x, 2, 3).transposed();
  CHECK_THROWS_WITH_AS(
      launch_cpu(args), "[mse] rows must have stride 1, got 3; pass a contiguous copy", ShapeError);
}
