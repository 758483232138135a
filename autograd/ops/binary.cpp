#include "accrue/autograd/ops/binary.h"

#include "accrue/autograd/ops/broadcast.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

using kernels::BinaryOp;

Tensor apply(BinaryOp op, const Tensor& a, const Tensor& b) {
  Tensor y = Tensor::empty(a.shape(), a.dtype(), a.device());
  kernels::launch(y.device(), kernels::BinaryForward{op, a, b, y});
  return y;
}

Tensor number(double value, const Tensor& like) {
  return Tensor::full({}, value, like.dtype(), like.device()).expand(like.shape());
}

/// What the gradient of operand `i` is made of: dy * factor, or what goes to the larger operand.
///
/// add: 1, 1.  sub: 1, -1.  mul: b, a.  div: 1 / b, -(y / b).
struct BinaryNode final : OpNode<2> {
  BinaryOp op{};
  SavedTensor a, b, y;  ///< expanded to the result's shape; only what the gradients read
  Shape shapes[2];
  BroadcastRows rows;

  const char* name() const override { return kernels::name_of(op); }
  void backward(Backward& context) override {
    for (std::size_t i = 0; i < 2; ++i) {
      if (!context.needs(i)) continue;
      const bool is_leaf = inputs[i].node->as_leaf() != nullptr;
      const Tensor dy = picks_one() ? picked(i, context.dy()) : context.dy();
      give_broadcast(context, i, dy, factor(i, dy), shapes[i], is_leaf, rows);
    }
  }
  void forget_saved() override {
    a.reset();
    b.reset();
    y.reset();
  }

 private:
  bool picks_one() const { return op == BinaryOp::maximum || op == BinaryOp::minimum; }

  Tensor picked(std::size_t i, const Tensor& dy) {
    Tensor dx = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
    const bool a_first = (op == BinaryOp::maximum) == (i == 0);
    const Tensor& larger = a_first ? a.get(name()) : b.get(name());
    const Tensor& smaller = a_first ? b.get(name()) : a.get(name());
    kernels::launch(dx.device(), kernels::LargerBackward{larger, smaller, dy, dx});
    return dx;
  }

  Tensor factor(std::size_t i, const Tensor& dy) {
    switch (op) {
      case BinaryOp::add:
      case BinaryOp::maximum:
      case BinaryOp::minimum:
        return {};
      case BinaryOp::sub:
        return i == 0 ? Tensor() : number(-1, dy);
      case BinaryOp::mul:
        return i == 0 ? b.get(name()) : a.get(name());
      case BinaryOp::div:
        break;
    }
    const Tensor& divisor = b.get(name());
    if (i == 0) return apply(BinaryOp::div, number(1, dy), divisor);
    Tensor ratio = apply(BinaryOp::div, y.get(name()), divisor);
    kernels::launch(ratio.device(), kernels::UnaryForward{kernels::UnaryOp::neg, ratio, ratio});
    return ratio;
  }
};

Variable binary(BinaryOp op, const Variable& a, const Variable& b) {
  const char* name = kernels::name_of(op);
  ACCRUE_CHECK(a.dtype() == b.dtype(),
               DTypeError,
               name,
               "operands must have one dtype, got ",
               a.dtype(),
               " and ",
               b.dtype(),
               "; convert with to()");
  const Variable* const operands[] = {&a, &b};
  const Shape shape = joint_shape(operands, name);
  const Tensor left = a.value().expand(shape);
  const Tensor right = b.value().expand(shape);
  const SampleAxis axis = joint_axis(operands, shape, name);
  Tensor y = apply(op, left, right).with_sample_axis(axis);
  check_stretched(a, y, name);
  check_stretched(b, y, name);
  return record<BinaryNode>(
      y,
      [&](BinaryNode& node) {
        node.op = op;
        node.shapes[0] = a.shape();
        node.shapes[1] = b.shape();
        node.rows = broadcast_rows(y, a.wanted_leaf() || b.wanted_leaf(), name);
        const bool picks_one = op == BinaryOp::maximum || op == BinaryOp::minimum;
        if (picks_one || (op == BinaryOp::mul && b.requires_grad())) node.a = SavedTensor(left);
        if (picks_one || op == BinaryOp::div || (op == BinaryOp::mul && a.requires_grad())) {
          node.b = SavedTensor(right);
        }
        if (op == BinaryOp::div && b.requires_grad()) node.y = SavedTensor(y);
      },
      a,
      b);
}

// ---- with numbers ----

struct ScalarNode final : OpNode<1> {
  BinaryOp op{};
  double number = 0;

  const char* name() const override { return kernels::name_of(op); }
  void backward(Backward& context) override {
    if (op == BinaryOp::add || op == BinaryOp::sub) return context.give(0, context.dy());
    Tensor dx = Tensor::empty(context.dy().shape(), context.dy().dtype(), context.dy().device());
    kernels::launch(dx.device(), kernels::ScalarForward{op, context.dy(), number, dx});
    context.give(0, std::move(dx));
  }
};

Variable with_number(BinaryOp op, const Variable& a, double b) {
  Tensor y = Tensor::empty(a.shape(), a.dtype(), a.device());
  kernels::launch(y.device(), kernels::ScalarForward{op, a.value(), b, y});
  return record<ScalarNode>(
      y.with_sample_axis(a.value().sample_axis()),
      [&](ScalarNode& node) {
        node.op = op;
        node.number = b;
      },
      a);
}

}  // namespace

Variable operator+(const Variable& a, const Variable& b) { return binary(BinaryOp::add, a, b); }
Variable operator-(const Variable& a, const Variable& b) { return binary(BinaryOp::sub, a, b); }
Variable operator*(const Variable& a, const Variable& b) { return binary(BinaryOp::mul, a, b); }
Variable operator/(const Variable& a, const Variable& b) { return binary(BinaryOp::div, a, b); }
Variable maximum(const Variable& a, const Variable& b) { return binary(BinaryOp::maximum, a, b); }
Variable minimum(const Variable& a, const Variable& b) { return binary(BinaryOp::minimum, a, b); }
Variable operator+(const Variable& a, double b) { return with_number(BinaryOp::add, a, b); }
Variable operator-(const Variable& a, double b) { return with_number(BinaryOp::sub, a, b); }
Variable operator*(const Variable& a, double b) { return with_number(BinaryOp::mul, a, b); }
Variable operator/(const Variable& a, double b) { return with_number(BinaryOp::div, a, b); }

}  // namespace accrue
