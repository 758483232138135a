// Elementwise kernels: exact bits over layouts and CPU paths, edge values, errors.
#include "accrue/kernels/elementwise.h"

#include "accrue/core/bits.h"
#include "accrue/kernels/scalar/unary.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/layouts.h"

#include <cmath>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr UnaryOp kUnaryOps[] = {
#define ACCRUE_UNARY_OP(name, Formula) UnaryOp::name,
#include "accrue/kernels/unary_ops.def"
};
constexpr BinaryOp kBinaryOps[] = {BinaryOp::add,
                                   BinaryOp::sub,
                                   BinaryOp::mul,
                                   BinaryOp::div,
                                   BinaryOp::maximum,
                                   BinaryOp::minimum};

const Shape kShapes[] = {{}, {0}, {1}, {7}, {600}, {5, 7}, {3, 0, 2}, {2, 3, 4}, {300, 3}, {70001}};

constexpr UnaryParameters kParameters{0.3, 0.7};

// What scalar/unary.h says, element by element; the rows of tests/autograd check the formulas.
template <class T>
T forward(UnaryOp op, T x) {
  [[maybe_unused]] const scalar::Parameters<T> p{T(kParameters.first), T(kParameters.second)};
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return scalar::forward<scalar::Formula>(x, p);
#include "accrue/kernels/unary_ops.def"
  }
  return x;
}

template <class T>
T backward(UnaryOp op, T x, T dy) {
  [[maybe_unused]] const scalar::Parameters<T> p{T(kParameters.first), T(kParameters.second)};
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return scalar::backward<scalar::Formula>(x, forward(op, x), dy, p);
#include "accrue/kernels/unary_ops.def"
  }
  return x;
}

template <class T>
T binary(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::maximum:
      return std::isnan(a) || a >= b ? a : b;
    case BinaryOp::minimum:
      return std::isnan(a) || a <= b ? a : b;
  }
  return a;
}

// The number of elements of `y` whose bits differ from expected(i), i in row-major order.
template <class T, class Expected>
int num_wrong(const Tensor& y, const Expected& expected) {
  const std::vector<T> values = y.to_vector<T>();
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    wrong += canonical_bits(values[i]) != canonical_bits(expected(i));
  }
  return wrong;
}

// Calls body(shape, layout of operands, result tensor in some layout) for all of them.
template <class T, class Body>
void for_each_layout(std::mt19937_64& random, const Body& body) {
  for (const Shape& shape : kShapes) {
    for (const Layout in : kLayouts) {
      for (const Layout out : kWritableLayouts) {
        Tensor y = with_layout(random_tensor<T>(shape, random), out);
        CAPTURE(shape);
        CAPTURE(static_cast<int>(in));
        CAPTURE(static_cast<int>(out));
        body(shape, in, y);
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("kernels.elementwise: unary results are exact in every layout on every path",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(1);
  int num_runs = 0;
  for_each_cpu_path([&] {
    for_each_layout<T>(random, [&](const Shape& shape, Layout layout, Tensor& y) {
      const Tensor x = with_layout(random_tensor<T>(shape, random, true), layout);
      const std::vector<T> xs = x.to_vector<T>();
      for (const UnaryOp op : kUnaryOps) {
        CAPTURE(name_of(op));
        launch_cpu(UnaryForward{op, x, y, kParameters});
        CHECK(num_wrong<T>(y, [&](std::size_t i) { return forward(op, xs[i]); }) == 0);
        ++num_runs;
      }
    });
  });
  MESSAGE(num_runs << " unary runs");
}

TEST_CASE_TEMPLATE("kernels.elementwise: unary gradients are exact in every layout on every path",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(2);
  int num_runs = 0;
  for_each_cpu_path([&] {
    for_each_layout<T>(random, [&](const Shape& shape, Layout layout, Tensor& dx) {
      const Tensor x = with_layout(random_tensor<T>(shape, random, true), layout);
      const Tensor dy = with_layout(random_tensor<T>(shape, random, true), Layout::interleaved);
      const std::vector<T> xs = x.to_vector<T>(), dys = dy.to_vector<T>();
      Tensor y = Tensor::empty(shape, dtype_of<T>);
      for (const UnaryOp op : kUnaryOps) {
        CAPTURE(name_of(op));
        launch_cpu(UnaryForward{op, x, y, kParameters});
        const Tensor undefined;
        launch_cpu(UnaryBackward{op,
                                 backward_reads_x(op) ? x : undefined,
                                 backward_reads_y(op) ? y : undefined,
                                 dy,
                                 dx,
                                 kParameters});
        CHECK(num_wrong<T>(dx, [&](std::size_t i) { return backward(op, xs[i], dys[i]); }) == 0);
        ++num_runs;
      }
    });
  });
  MESSAGE(num_runs << " gradient runs");
}

TEST_CASE_TEMPLATE("kernels.elementwise: a op b is exact in every layout on every path",
                   T,
                   float,
                   double) {
  std::mt19937_64 random(3);
  int num_runs = 0;
  for_each_cpu_path([&] {
    for_each_layout<T>(random, [&](const Shape& shape, Layout layout, Tensor& y) {
      const Tensor a = with_layout(random_tensor<T>(shape, random, true), layout);
      const Tensor b = random_tensor<T>({}, random).expand(shape);
      const Tensor c = with_layout(random_tensor<T>(shape, random, true), Layout::transposed);
      const std::vector<T> as = a.to_vector<T>(), cs = c.to_vector<T>();
      const T number = b.numel() == 0 ? T(3) : b.flatten()[0].template item<T>();
      for (const BinaryOp op : kBinaryOps) {
        CAPTURE(name_of(op));
        launch_cpu(BinaryForward{op, a, c, y});
        CHECK(num_wrong<T>(y, [&](std::size_t i) { return binary(op, as[i], cs[i]); }) == 0);
        launch_cpu(BinaryForward{op, a, b, y});
        CHECK(num_wrong<T>(y, [&](std::size_t i) { return binary(op, as[i], number); }) == 0);
        launch_cpu(ScalarForward{op, a, static_cast<double>(number), y});
        CHECK(num_wrong<T>(y, [&](std::size_t i) { return binary(op, as[i], number); }) == 0);
        ++num_runs;
      }
      y.copy_from(c);
      launch_cpu(AddScaled{static_cast<double>(number), a, y});
      CHECK(num_wrong<T>(y, [&](std::size_t i) { return std::fma(number, as[i], cs[i]); }) == 0);
    });
  });
  MESSAGE(num_runs << " binary runs");
}

TEST_CASE("kernels.elementwise: a result may be an operand in any layout") {
  std::mt19937_64 random(4);
  for_each_cpu_path([&] {
    for (const Layout layout : kWritableLayouts) {
      Tensor x = with_layout(random_tensor<float>({300, 7}, random, true), layout);
      const std::vector<float> xs = x.to_vector<float>();
      launch_cpu(BinaryForward{BinaryOp::add, x, x, x});
      launch_cpu(UnaryForward{UnaryOp::relu, x, x});
      CHECK(num_wrong<float>(
                x, [&](std::size_t i) { return forward(UnaryOp::relu, xs[i] + xs[i]); }) == 0);
    }
  });
}

TEST_CASE("kernels.elementwise: elements between those of a result stay as they are") {
  Tensor base = Tensor::full({4, 600}, 5.0);
  Tensor y = base.slice(1, 0, 600, 2);
  const Tensor x = Tensor::ones({4, 300});
  for_each_cpu_path([&] {
    launch_cpu(UnaryForward{UnaryOp::neg, x, y});
    CHECK(num_wrong<float>(base, [](std::size_t i) { return i % 2 == 0 ? -1.0f : 5.0f; }) == 0);
  });
}

TEST_CASE("kernels.elementwise: relu keeps NaN and -0, and its gradient is 1 at NaN and 0 at 0") {
  const Tensor x = Tensor::of<float>({NAN, -0.0f, 0.0f, -1.0f, 2.0f, HUGE_VALF, -HUGE_VALF});
  const Tensor dy = Tensor::full({7}, 3.0);
  Tensor y = Tensor::empty({7}), dx = Tensor::empty({7});
  for_each_cpu_path([&] {
    launch_cpu(UnaryForward{UnaryOp::relu, x, y});
    launch_cpu(UnaryBackward{UnaryOp::relu, x, y, dy, dx});
    const float values[] = {NAN, -0.0f, 0.0f, 0.0f, 2.0f, HUGE_VALF, 0.0f};
    const float gradients[] = {3, 0, 0, 0, 3, 3, 0};
    CHECK(num_wrong<float>(y, [&](std::size_t i) { return values[i]; }) == 0);
    CHECK(num_wrong<float>(dx, [&](std::size_t i) { return gradients[i]; }) == 0);
  });
}

TEST_CASE("kernels.elementwise: division by a number is a true division") {
  // 5 * (1 / 49) rounds to another float.
  const Tensor x = Tensor::of<float>({5.0f});
  Tensor y = Tensor::empty({1});
  REQUIRE(5.0f * (1.0f / 49.0f) != 5.0f / 49.0f);
  launch_cpu(ScalarForward{BinaryOp::div, x, 49.0, y});
  CHECK(y.item<float>() == 5.0f / 49.0f);
}

TEST_CASE("kernels.elementwise: operands that do not fit are refused") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3}), i = Tensor::arange(3);
  Tensor y = Tensor::zeros({2, 3}), d = Tensor::zeros({2, 3}, DType::float64);
  CHECK_THROWS_WITH_AS(launch_cpu(BinaryForward{BinaryOp::add, a, b, y}),
                       "[add] operands must have the result's shape [2, 3], got [3]; "
                       "expand them first",
                       ShapeError);
  CHECK_THROWS_WITH_AS(launch_cpu(UnaryForward{UnaryOp::exp, a, d}),
                       "[exp] operands must have dtype float64, got float32; "
                       "convert with to()",
                       DTypeError);
  Tensor integers = Tensor::arange(3);
  CHECK_THROWS_WITH_AS(launch_cpu(UnaryForward{UnaryOp::neg, i, integers}),
                       "[neg] needs float32 or float64, got int64; convert with to()",
                       DTypeError);
  CHECK_THROWS_AS(launch_cpu(ScalarForward{BinaryOp::mul, i, 0.5, integers}), DTypeError);
  Tensor repeated = b.expand({2, 3});
  CHECK_THROWS_AS(launch_cpu(UnaryForward{UnaryOp::neg, a, repeated}), StateError);
}
