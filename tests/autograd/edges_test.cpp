// Values and gradients at zeros, infinities, NaN and ties, where difference quotients cannot look.
#include "accrue/autograd/autograd.h"
#include "accrue/core/bits.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

using namespace accrue;
using accrue::test::There;

namespace {

constexpr float kInf = HUGE_VALF;

bool same(const Tensor& got, std::vector<float> wanted) {
  return equal_bits(got, There::from(wanted, got.shape()));
}

/// The gradient of the sum of op(x).
template <class Op>
Tensor gradient(const Op& op, const Tensor& values) {
  const Variable x = Variable::leaf(values);
  sum(op(x)).backward();
  return x.grad();
}

}  // namespace

TEST_CASE("autograd.edges: gradients of functions at zeros, infinities and NaN") {
  const Tensor x = There::of<float>({-kInf, -0.0f, 0.0f, kInf, NAN});
  const auto of = [&](auto op) { return gradient(op, x); };
  CHECK(same(of([](auto& v) { return abs(v); }), {-1, 0, 0, 1, 0}));
  CHECK(same(of([](auto& v) { return tanh(v); }), {0, 1, 1, 0, NAN}));
  CHECK(same(of([](auto& v) { return sigmoid(v); }), {0, 0.25, 0.25, 0, NAN}));
  CHECK(same(of([](auto& v) { return sqrt(v); }), {NAN, -kInf, kInf, 0, NAN}));
  CHECK(same(of([](auto& v) { return leaky_relu(v, 0.5); }), {0.5, 0.5, 0.5, 1, 0.5}));
  CHECK(same(of([](auto& v) { return clamp(v, 0, 1); }), {0, 1, 1, 0, 0}));
  CHECK(same(of([](auto& v) { return pow(v, 0); }), {0, 0, 0, 0, 0}));
  CHECK(same(of([](auto& v) { return pow(v, 1); }), {1, 1, 1, 1, 1}));
  CHECK(same(of([](auto& v) { return pow(v, 2); }), {-kInf, -0.0f, 0, kInf, NAN}));
  CHECK(same(of([](auto& v) { return pow(v, 0.5); }), {0, kInf, kInf, 0, NAN}));
  for (const auto& slope : {of([](auto& v) { return silu(v); }),
                            of([](auto& v) { return gelu(v); }),
                            of([](auto& v) { return gelu_tanh(v); })}) {
    const std::vector<float> got = slope.to_vector<float>();
    CHECK(got[0] == 0.0f);
    CHECK(got[1] == 0.5f);
    CHECK(got[3] == 1.0f);
    CHECK(std::isnan(got[4]));
  }
}

TEST_CASE("autograd.edges: clamp keeps NaN and signed zeros, and takes infinite bounds") {
  const Variable x(There::of<float>({NAN, -0.0f, 0.0f, -kInf, kInf, 3.0f}));
  CHECK(same(clamp(x, 0, 1).value(), {NAN, -0.0f, 0, 0, 1, 1}));
  CHECK(same(clamp(x, -kInf, kInf).value(), {NAN, -0.0f, 0, -kInf, kInf, 3}));
  CHECK(same(clamp(x, 2, 2).value(), {NAN, 2, 2, 2, 2, 2}));
}

TEST_CASE("autograd.edges: maximum shares the gradient at ties and gives it to both at NaN") {
  const Variable a = Variable::leaf(There::of<float>({1, 2, NAN, 1, -0.0f, 0, 1}));
  const Variable b = Variable::leaf(There::of<float>({1, 1, 1, NAN, 0, -0.0f, 2}));
  const Variable y = maximum(a, b);
  CHECK(same(y.value(), {1, 2, NAN, NAN, -0.0f, 0, 2}));
  sum(y).backward();
  CHECK(same(a.grad(), {0.5, 1, 1, 1, 0.5, 0.5, 0}));
  CHECK(same(b.grad(), {0.5, 0, 1, 1, 0.5, 0.5, 1}));
  const Variable c = Variable::leaf(a.value()), d = Variable::leaf(b.value());
  const Variable z = minimum(c, d);
  CHECK(same(z.value(), {1, 1, NAN, NAN, -0.0f, 0, 1}));
  z.backward(There::of<float>({1, kInf, 1, 1, 1, 1, NAN}));
  CHECK(same(c.grad(), {0.5, 0, 1, 1, 0.5, 0.5, NAN}));
  CHECK(same(d.grad(), {0.5, kInf, 1, 1, 0.5, 0.5, 0}));
}

TEST_CASE("autograd.edges: where hides values, but not the infinite slope behind them") {
  const Tensor x = There::of<float>({0, 4});
  const Tensor positive = gt(x, 0);
  const Variable one(There::ones({2}));
  const auto late = [&](auto& v) { return where(positive, sqrt(v), one); };
  const auto early = [&](auto& v) { return where(positive, sqrt(where(positive, v, one)), one); };
  CHECK(same(gradient(late, x), {NAN, 0.25}));  // 0 / (2 * 0): the trap
  CHECK(same(gradient(early, x), {0, 0.25}));
  const auto plain = [&](auto& v) { return where(positive, v, one); };
  CHECK(same(gradient(plain, There::of<float>({NAN, kInf})), {0, 1}));
}

TEST_CASE("autograd.edges: comparisons with NaN are false, but ne is true, and keep the samples") {
  const Tensor x = There::of<float>({1, NAN, -0.0f});
  CHECK(eq(x, x).to_vector<bool>() == std::vector<bool>{true, false, true});
  CHECK(ne(x, x).to_vector<bool>() == std::vector<bool>{false, true, false});
  CHECK(ge(x, 0).to_vector<bool>() == std::vector<bool>{true, false, true});
  CHECK(lt(x, 0.5).to_vector<bool>() == std::vector<bool>{false, false, true});
  CHECK(gt(There::arange(3), 1).to_vector<bool>() == std::vector<bool>{false, false, true});
  CHECK(le(x.with_sample_axis({0, 1}), 2).sample_axis() == SampleAxis{0, 1});
}

TEST_CASE("autograd.edges: a NaN wins every extremum, and the first of equal elements is taken") {
  const Tensor x = There::of<float>(
      {{1, NAN, NAN}, {3, 3, 1}, {-0.0f, 0, -0.0f}, {-kInf, -kInf, -kInf}, {kInf, 2, kInf}});
  const ValuesAndIndices largest = max(x, 1), smallest = min(x, -1);
  CHECK(same(largest.values.value(), {NAN, 3, -0.0f, -kInf, kInf}));
  CHECK(largest.indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 0, 0, 0});
  CHECK(same(smallest.values.value(), {NAN, 1, -0.0f, -kInf, 2}));
  CHECK(smallest.indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2, 0, 0, 1});
  CHECK(equal_bits(argmax(x, 1), largest.indices));
  CHECK(equal_bits(argmin(x, 1, true), smallest.indices.unsqueeze(1)));
  CHECK(max(There::zeros({0, 3}), 1).values.shape() == Shape{0});
  CHECK(argmax(There::scalar(2.0f), -1).item<std::int64_t>() == 0);
  // Beyond a block of 64 and a tail.
  Tensor row = There::zeros({1, 1000});
  row.select(1, 997).fill(1);
  CHECK(argmax(row, 1).item<std::int64_t>() == 997);
}

TEST_CASE("autograd.edges: the gradient of a norm is 0 where the norm is 0") {
  const auto rows = [](const Variable& x) { return norm(x, {1}); };
  CHECK(same(gradient(rows, There::of<float>({{0, -0.0f}, {3, 4}})), {0, -0.0f, 0.6f, 0.8f}));
  CHECK(norm(There::of<float>({3e30f, 4e30f})).item<float>() == kInf);
  CHECK(norm(There::zeros({0})).item<float>() == 0);
}

TEST_CASE("autograd.edges: stored halves are picked and moved, but arithmetic refuses them") {
  const Tensor values = There::of<float>({1.5f, -2, 3});
  const Tensor condition = There::of<bool>({true, false, true});
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Variable x(values.to(dtype));
    const auto message = [&](const char* operation) {
      return text("[", operation, "] needs float32 or float64, got ", dtype, "; convert with to()");
    };
    CHECK_THROWS_WITH_AS(x + x, message("add").c_str(), DTypeError);
    CHECK_THROWS_WITH_AS(relu(x), message("relu").c_str(), DTypeError);
    CHECK_THROWS_WITH_AS(sum(x), message("sum").c_str(), DTypeError);
    CHECK_THROWS_WITH_AS(max(x, 0), message("max").c_str(), DTypeError);
    CHECK_THROWS_AS(Variable::leaf(x.value()), DTypeError);
    CHECK_THROWS_WITH_AS(
        lt(x, x),
        text("[lt] compares no stored halves, got ", dtype, "; convert with to()").c_str(),
        DTypeError);
    const Variable chosen = where(condition, x, Variable(There::zeros({3}, dtype)));
    CHECK(same(chosen.value().to(DType::float32), {1.5, 0, 3}));
    const Variable picked = index_select(x, 0, There::of<std::int64_t>({2, 2, 1}));
    CHECK(same(picked.value().to(DType::float32), {3, 3, -2}));
  }
}
