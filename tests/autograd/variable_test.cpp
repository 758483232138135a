// Variables: leaves, copies, printing.
#include "accrue/autograd/variable.h"

#include "accrue/autograd/autograd.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using accrue::test::There;

namespace {

Variable leaf(std::initializer_list<float> values) {
  return Variable::leaf(There::of<float>(values));
}

}  // namespace

TEST_CASE("autograd.variable: printing says requires_grad or the operation, as torch does") {
  const Variable x = leaf({1, 2.5});
  CHECK(x.str() == "tensor([1.0000, 2.5000], requires_grad=True)");
  CHECK(Variable(There::of<float>({1})).str() == "tensor([1.])");
  CHECK(x.detach().str() == "tensor([1.0000, 2.5000])");
  CHECK((x * 2.0).str() == "tensor([2., 5.], grad_fn=<MulBackward0>)");
  Variable frozen = leaf({1});
  frozen.set_requires_grad(false);
  CHECK(frozen.str() == "tensor([1.])");
}

TEST_CASE("autograd.variable: every operation prints its name in grad_fn") {
  const Variable x = Variable::leaf(There::ones({1, 1}));
  const Variable pair[] = {x, x};
  const Tensor target = There::of<std::int64_t>({0});
  const std::pair<Variable, const char*> rows[] = {{x + x, "Add"},
                                                   {x - x, "Sub"},
                                                   {x * x, "Mul"},
                                                   {x / x, "Div"},
                                                   {x + 1.0, "Add"},
                                                   {neg(x), "Neg"},
                                                   {exp(x), "Exp"},
                                                   {log(x), "Log"},
                                                   {relu(x), "Relu"},
                                                   {linear(x, x), "Linear"},
                                                   {matmul(x, x), "Matmul"},
                                                   {sum(x), "Sum"},
                                                   {softmax(x), "Softmax"},
                                                   {log_softmax(x), "LogSoftmax"},
                                                   {cross_entropy_rows(x, target), "CrossEntropy"},
                                                   {mse_rows(x, x), "Mse"},
                                                   {reshape(x, {1}), "Reshape"},
                                                   {permute(x, {1, 0}), "Permute"},
                                                   {transpose(x, 0, 1), "Transpose"},
                                                   {expand(x, {1, 1, 1}), "Expand"},
                                                   {select(x, 0, 0), "Select"},
                                                   {narrow(x, 0, 0, 1), "Narrow"},
                                                   {slice(x, 0, 0, 1), "Slice"},
                                                   {cat(pair), "Cat"}};
  for (const auto& [y, name] : rows) {
    CHECK(y.str().find(text(", grad_fn=<", name, "Backward0>)")) != std::string::npos);
    CHECK(!y.is_leaf());
  }
}

TEST_CASE("autograd.variable: copies are the same variable, detached ones are not") {
  const Variable x = leaf({1});
  Variable copy = x;
  (x * 3.0).backward();
  CHECK(copy.grad().item<float>() == 3);
  copy.zero_grad();
  CHECK(!x.grad().defined());
  CHECK(!x.detach().requires_grad());
  CHECK(x.detach().value().shares_storage(x.value()));
}

TEST_CASE("autograd.variable: a tensor becomes a leaf by set_requires_grad") {
  Variable x(There::of<float>({2}));
  CHECK(x.is_leaf());
  CHECK(!x.requires_grad());
  x.set_requires_grad(true);
  (x * x).backward();
  CHECK(x.grad().item<float>() == 4);
  x.set_requires_grad(false);
  CHECK(!(x * x).requires_grad());
  Variable integers(There::arange(2));
  CHECK_THROWS_AS(integers.set_requires_grad(true), DTypeError);
  CHECK(!integers.requires_grad());
}

TEST_CASE("autograd.variable: results have gradients after retain_grad only, constants never") {
  const Variable x = leaf({2});
  Variable kept = x * 2.0;
  const Variable other = x * 2.0;
  kept.retain_grad();
  (kept * other).backward();
  CHECK(kept.grad().item<float>() == 4);
  CHECK(!other.grad().defined());
  CHECK(!Variable(There::of<float>({1})).grad().defined());
  CHECK_THROWS_WITH_AS(Variable(There::of<float>({1})).set_grad(There::of<float>({1})),
                       "[set_grad] only leaves that require grad hold a gradient",
                       StateError);
  CHECK_THROWS_WITH_AS(x.detach().register_hook([](const Tensor& g) { return g; }),
                       "[register_hook] the variable must require grad, got one that does not",
                       StateError);
}
