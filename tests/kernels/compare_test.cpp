// Comparisons and choices: every dtype, layout and CPU path against plain loops.
#include "accrue/kernels/compare.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/layouts.h"

#include <cmath>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr CompareOp kOps[] = {
    CompareOp::eq, CompareOp::ne, CompareOp::lt, CompareOp::le, CompareOp::gt, CompareOp::ge};
constexpr DType kDTypes[] = {
    DType::float32, DType::float64, DType::int64, DType::int32, DType::uint8, DType::boolean};

template <class T>
bool expected(CompareOp op, T a, T b) {
  switch (op) {
    case CompareOp::eq:
      return a == b;
    case CompareOp::ne:
      return a != b;
    case CompareOp::lt:
      return a < b;
    case CompareOp::le:
      return a <= b;
    case CompareOp::gt:
      return a > b;
    case CompareOp::ge:
      return a >= b;
  }
  return false;
}

/// Few values, so that many are equal; for floats NaN, infinities and both zeros too.
Tensor few_values(const Shape& shape, DType dtype, std::mt19937_64& random) {
  constexpr double kValues[] = {0, 1, 1, 2, -0.0, NAN, HUGE_VAL, -1};
  Tensor x = Tensor::empty(shape, DType::float64);
  double* out = x.mutable_data<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    out[i] = kValues[random() % (is_floating(dtype) ? 8 : 4)];
  }
  return x.to(dtype);
}

}  // namespace

TEST_CASE("kernels.compare: six comparisons are exact for every dtype, layout and CPU path") {
  std::mt19937_64 random(1);
  int num_runs = 0;
  for_each_cpu_path([&] {
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{7}, Shape{5, 7}, Shape{300, 3}, Shape{70001}}) {
      for (const DType dtype : kDTypes) {
        for (const Layout layout : {Layout::contiguous, Layout::transposed, Layout::expanded}) {
          const Tensor a = with_layout(few_values(shape, dtype, random), layout);
          const Tensor b = few_values(shape, dtype, random);
          const Tensor one = Tensor::ones({}, dtype).expand(shape);
          Tensor y = Tensor::empty(shape, DType::boolean);
          for (const CompareOp op : kOps) {
            for (const Tensor& other : {b, one}) {
              launch_cpu(Compare{op, a, other, y});
              int wrong = 0;
              visit_dtype(dtype, [&]<class T>(T) {
                if constexpr (std::is_arithmetic_v<T>) {
                  const std::vector<T> as = a.to_vector<T>(), bs = other.to_vector<T>();
                  const std::vector<bool> ys = y.to_vector<bool>();
                  for (std::size_t i = 0; i < ys.size(); ++i) {
                    wrong += ys[i] != expected<T>(op, as[i], bs[i]);
                  }
                }
              });
              CAPTURE(name_of(op));
              CHECK(wrong == 0);
              ++num_runs;
            }
          }
        }
      }
    }
  });
  MESSAGE(num_runs << " comparisons of tensors");
}

TEST_CASE("kernels.compare: where keeps every bit of the chosen element") {
  std::mt19937_64 random(2);
  for_each_cpu_path([&] {
    for (const Layout layout : kLayouts) {
      for (const Shape& shape : {Shape{}, Shape{5, 7}, Shape{300, 3}, Shape{70001}}) {
        const Tensor a = with_layout(random_tensor<float>(shape, random, true), layout);
        const Tensor b = with_layout(random_tensor<float>(shape, random, true), Layout::transposed);
        const Tensor zero = Tensor::zeros({}).expand(shape);
        Tensor condition = Tensor::empty(shape, DType::boolean), y = Tensor::empty(shape);
        launch_cpu(Compare{CompareOp::gt, a, zero, condition});
        for (const Tensor& no : {b, zero}) {
          launch_cpu(Where{condition, a, no, y});
          const std::vector<bool> c = condition.to_vector<bool>();
          const std::vector<float> as = a.to_vector<float>(), bs = no.to_vector<float>();
          const std::vector<float> ys = y.to_vector<float>();
          int wrong = 0;
          for (std::size_t i = 0; i < c.size(); ++i) {
            wrong += canonical_bits(ys[i]) != canonical_bits(c[i] ? as[i] : bs[i]);
          }
          CHECK(wrong == 0);
        }
      }
    }
  });
  Tensor words = Tensor::empty({2}, DType::int64);
  launch_cpu(Where{Tensor::of<bool>({true, false}),
                   Tensor::of<std::int64_t>({1, 2}),
                   Tensor::of<std::int64_t>({3, 4}),
                   words});
  CHECK(words.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 4});
}

TEST_CASE("kernels.compare: a comparison writes a bool tensor of the operands' shape or throws") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3});
  Tensor y = Tensor::empty({2, 3}, DType::boolean), f = Tensor::empty({2, 3});
  CHECK_THROWS_WITH_AS(launch_cpu(Compare{CompareOp::lt, a, b, y}),
                       "[lt] operands must have the result's shape [2, 3], got [3]; expand them "
                       "first",
                       ShapeError);
  CHECK_THROWS_WITH_AS(launch_cpu(Compare{CompareOp::lt, a, a, f}),
                       "[lt] operands must have dtype bool, got float32; convert with to()",
                       DTypeError);
}
