#include "accrue/autograd/variable.h"

#include "accrue/autograd/engine.h"
#include "accrue/core/print.h"
#include "accrue/core/same_device.h"

#include <string_view>

namespace accrue {
namespace {

void check_floating(DType dtype, const char* operation) {
  ACCRUE_CHECK(is_floating(dtype),
               DTypeError,
               operation,
               "only float32 and float64 have gradients, got ",
               dtype,
               "; convert with to()");
}

/// `LogSoftmaxBackward0` for log_softmax, as torch prints it.
std::string grad_fn(const Node& node) {
  std::string result;
  bool starts_word = true;
  for (const char c : std::string_view(node.name())) {
    const bool is_lower = c >= 'a' && c <= 'z';
    if (c != '_') result += starts_word && is_lower ? static_cast<char>(c - 'a' + 'A') : c;
    starts_word = c == '_';
  }
  return result + "Backward0";
}

/// The starting gradient: `gradient` if given, else one for a single element.
Tensor checked_start(const Variable& output, const Tensor& gradient) {
  ACCRUE_CHECK(output.defined() && output.requires_grad(),
               StateError,
               "backward",
               "the variable must come from recorded operations on variables that require grad, "
               "got one without a graph; check no_grad and detach");
  if (!gradient.defined()) {
    ACCRUE_CHECK(output.numel() == 1,
                 StateError,
                 "backward",
                 "a gradient must be given unless the variable has one element, got shape ",
                 output.shape());
    return Tensor::ones(output.shape(), output.dtype(), output.device());
  }
  ACCRUE_CHECK(gradient.shape() == output.shape(),
               ShapeError,
               "backward",
               "gradient must have the variable's shape ",
               output.shape(),
               ", got ",
               gradient.shape());
  ACCRUE_CHECK(gradient.dtype() == output.dtype(),
               DTypeError,
               "backward",
               "gradient must be ",
               output.dtype(),
               " like the variable, got ",
               gradient.dtype());
  check_device("backward", output.device(), gradient);
  return gradient;
}

}  // namespace

Variable Variable::leaf(Tensor value) {
  check_floating(value.dtype(), "leaf");
  if (value.sample_axis().is_mixed()) value = value.clone().with_sample_axis({});
  Ref<Leaf> leaf(new Leaf(value));
  return Variable(std::move(value), Ref<Node>(leaf.get()));
}

bool Variable::requires_grad() const {
  if (!node_) return false;
  const Leaf* leaf = node_->as_leaf();
  return !leaf || leaf->requires_grad();
}

void Variable::set_requires_grad(bool requires_grad) {
  ACCRUE_CHECK(is_leaf(),
               StateError,
               "set_requires_grad",
               "only leaves can change, got the result of ",
               node_->name(),
               "; use detach()");
  if (!node_ && requires_grad) *this = leaf(value_);
  if (node_) node_->as_leaf()->set_requires_grad(requires_grad);
}

bool Variable::is_leaf() const { return !node_ || node_->as_leaf(); }

Leaf* Variable::wanted_leaf() const { return requires_grad() ? node_->as_leaf() : nullptr; }

Tensor Variable::grad() const {
  if (!node_) return {};
  const Leaf* leaf = node_->as_leaf();
  return leaf ? leaf->grad() : node_->retained_gradient();
}

void Variable::set_grad(const Tensor& grad) {
  ACCRUE_CHECK(node_ && node_->as_leaf(),
               StateError,
               "set_grad",
               "only leaves that require grad hold a gradient");
  node_->as_leaf()->set_grad(grad);
}

void Variable::zero_grad() {
  if (node_ && node_->as_leaf()) node_->as_leaf()->zero_grad();
}

void Variable::retain_grad() {
  if (!is_leaf()) node_->retain_gradient();
}

void Variable::register_hook(GradientHook hook) const {
  ACCRUE_CHECK(requires_grad(),
               StateError,
               "register_hook",
               "the variable must require grad, got one that does not");
  ACCRUE_CHECK(hook, ValueError, "register_hook", "the hook must hold a function, got none");
  if (Leaf* leaf = node_->as_leaf()) {
    leaf->add_final_hook(std::move(hook));
  } else {
    node_->add_hook(std::move(hook));
  }
}

void Variable::backward(const Tensor& gradient, BackwardOptions options) const {
  Tensor start = checked_start(*this, gradient);
  ACCRUE_CHECK(!MicroBatch::current(),
               StateError,
               "backward",
               "inside accumulate() gradients must go through Accelerator::backward(loss)");
  Engine(options).run(*this, std::move(start));
}

std::string Variable::str() const {
  if (is_leaf()) return to_string(value_, requires_grad() ? "requires_grad=True" : "");
  return to_string(value_, text("grad_fn=<", grad_fn(*node_), ">"));
}

std::vector<Tensor> grad(const Variable& output,
                         std::span<const Variable> inputs,
                         const Tensor& gradient,
                         BackwardOptions options,
                         bool allow_unused) {
  std::vector<Tensor> result =
      Engine(options).capture(output, inputs, checked_start(output, gradient));
  for (std::size_t i = 0; i < result.size(); ++i) {
    ACCRUE_CHECK(result[i].defined() || allow_unused,
                 StateError,
                 "grad",
                 "the output must depend on every input, got input ",
                 i,
                 " unused; set allow_unused");
  }
  return result;
}

}  // namespace accrue
