// gradcheck finds planted faults and says where they are.
#include "accrue/autograd/gradcheck.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <string>

using namespace accrue;

namespace {

/// x^2 whose gradient is off by `error` at element `element`, or NaN.
struct WrongSquare final : OpNode<1> {
  Tensor x;
  std::int64_t element = 0;
  double error = 0;

  const char* name() const override { return "WrongSquare"; }
  void backward(Backward& context) override {
    Tensor dx = Tensor::empty(x.shape(), DType::float64);
    for (std::int64_t i = 0; i < dx.numel(); ++i) {
      const double factor = 2 * x.data<double>()[i] + (i == element ? error : 0);
      dx.mutable_data<double>()[i] = context.dy().contiguous().data<double>()[i] * factor;
    }
    context.give(0, dx);
  }
};

auto wrong_square(std::int64_t element, double error) {
  return [=](std::span<const Variable> x) {
    const Variable square = x[0] * x[0];
    return record<WrongSquare>(
        square.value(),
        [&](WrongSquare& node) {
          node.x = x[0].value();
          node.element = element;
          node.error = error;
        },
        x[0]);
  };
}

Tensor numbers() { return Tensor::of<double>({1.5, -2, 3}); }

/// The message of the ValueError that gradcheck throws.
template <class Function>
std::string fault_of(const Function& function, const GradcheckOptions& options = {}) {
  const Tensor inputs[] = {numbers()};
  try {
    gradcheck(function, inputs, options);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("autograd.gradcheck: right gradients pass, and every derivative is counted") {
  const Tensor inputs[] = {numbers(), Tensor::of<double>({0.5})};
  CHECK(gradcheck([](std::span<const Variable> x) { return x[0] * x[1]; }, inputs) == 3 * (3 + 1));
  CHECK(fault_of(wrong_square(1, 0)) == "none");
}

TEST_CASE("autograd.gradcheck: a planted fault is found and located") {
  CHECK(fault_of(wrong_square(1, 0.5)) ==
        "[gradcheck] gradients must agree, got -3.5 from backward and -4 from differences for "
        "output element 1 and element 1 of input 0");
  CHECK(fault_of(wrong_square(2, 1e-6)) != "none");
  CHECK(fault_of(wrong_square(0, 1e-9)) == "none");  // within rtol 1e-8
  CHECK(fault_of(wrong_square(0, 1e-9), {.rtol = 1e-11, .atol = 0}) != "none");
  CHECK(fault_of(wrong_square(0, NAN)) != "none");
}

TEST_CASE("autograd.gradcheck: a gradient that does not arrive is found") {
  CHECK(fault_of([](std::span<const Variable> x) { return x[0] * x[0].detach(); }) != "none");
  const Tensor inputs[] = {numbers(), numbers()};
  CHECK_THROWS_AS(
      gradcheck([](std::span<const Variable> x) { return x[0] + exp(x[1].detach()); }, inputs),
      ValueError);
}

TEST_CASE("autograd.gradcheck: an unused input has gradient 0, a constant nothing to check") {
  const Tensor inputs[] = {numbers(), numbers()};
  CHECK(gradcheck([](std::span<const Variable> x) { return exp(x[0]); }, inputs) == 2 * 9);
  CHECK(gradcheck([](std::span<const Variable> x) { return x[0].detach(); }, inputs) == 0);
}

TEST_CASE("autograd.gradcheck: inputs must be float64 and stay as they are") {
  const Tensor single[] = {Tensor::of<float>({1})};
  CHECK_THROWS_WITH_AS(gradcheck([](std::span<const Variable> x) { return exp(x[0]); }, single),
                       "[gradcheck] inputs must be float64, got float32; convert with to()",
                       DTypeError);
  const Tensor inputs[] = {numbers()};
  const std::uint64_t version = inputs[0].version();
  gradcheck([](std::span<const Variable> x) { return exp(x[0]); }, inputs);
  CHECK(inputs[0].version() == version);
  CHECK(equal_bits(inputs[0], numbers()));
}
