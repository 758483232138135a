#include "accrue/autograd/ops/binary.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/kernels/broadcast_grad.h"
#include "accrue/kernels/elementwise.h"

#include <algorithm>

namespace accrue {
namespace {

using kernels::BinaryOp;

Tensor apply(BinaryOp op, const Tensor& a, const Tensor& b) {
  Tensor y = Tensor::empty(a.shape(), a.dtype(), a.device());
  kernels::launch_cpu(kernels::BinaryForward{op, a, b, y});
  return y;
}

Tensor number(double value, const Tensor& like) {
  return Tensor::full({}, value, like.dtype()).expand(like.shape());
}

/// What dy is multiplied with for the gradient of operand `i`; undefined for 1.
///
/// add: 1, 1.  sub: 1, -1.  mul: b, a.  div: 1 / b, -(y / b).
struct BinaryNode final : OpNode<2> {
  BinaryOp op{};
  SavedTensor a, b, y;  ///< expanded to the result's shape; only what factor() reads
  Shape shapes[2];
  std::int64_t rows_per_sample = 1;
  bool rows_are_elements = false;  ///< the last dimension counts samples

  const char* name() const override { return kernels::name_of(op); }
  void backward(Backward& context) override {
    for (std::size_t i = 0; i < 2; ++i) {
      if (context.needs(i)) give(context, i, factor(i, context.dy()));
    }
  }
  void forget_saved() override {
    a.reset();
    b.reset();
    y.reset();
  }

 private:
  Tensor factor(std::size_t i, const Tensor& dy) {
    switch (op) {
      case BinaryOp::add:
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
    kernels::launch_cpu(kernels::UnaryForward{kernels::UnaryOp::neg, ratio, ratio});
    return ratio;
  }

  void give(Backward& context, std::size_t i, const Tensor& factor) {
    const Tensor& dy = context.dy();
    if (!inputs[i].node->as_leaf()) {
      const Tensor whole = factor.defined() ? apply(BinaryOp::mul, dy, factor) : dy;
      context.give(i, sum_to_shape(whole, shapes[i]));
      return;
    }
    const int rank = dy.rank();
    const int row_dims = rows_are_elements ? rank : std::max(rank - 1, 0);
    context.give_rows(i,
                      Tensor::empty(shapes[i], dy.dtype()),
                      product(dy.shape(), 0, row_dims),
                      rows_per_sample,
                      [&](LaneTarget& target) {
                        visit_floating(dy.dtype(), name(), [&]<class T>(T) {
                          const std::vector<T*> buffers = target.pointers<T>();
                          kernels::launch_cpu(kernels::BroadcastGrad<T>{
                              dy, factor, row_dims, shapes[i], target.program(), buffers});
                        });
                      });
  }
};

/// The sample axis of the result; throws in a window when the operands disagree about samples.
SampleAxis joint_axis(const Tensor& a, const Tensor& b, const Shape& result, const char* op) {
  const auto aligned = [&](const Tensor& x) {
    SampleAxis axis = x.sample_axis();
    if (axis.known()) axis.dim += result.rank() - x.rank();
    return axis;
  };
  const SampleAxis left = aligned(a);
  const SampleAxis right = aligned(b);
  const SampleAxis axis = left.known() ? left : right;
  if (!axis.known()) return {};
  const Tensor& carrier = left.known() ? a : b;
  const bool agree = !left.known() || !right.known() || left == right;
  const bool whole = carrier.sample_axis().known() &&
                     carrier.shape()[carrier.sample_axis().dim] == result[axis.dim];
  check_keeps_samples(agree && whole, op, "arithmetic across different sample dimensions");
  return agree && whole ? axis : SampleAxis{};
}

/// In a window: an operand that wants a gradient and lacks the samples must be a parameter that
/// has the same value for all of them.
void check_operand(const Variable& x, const Tensor& y, const char* op) {
  if (!x.requires_grad() || !grad_enabled() || !MicroBatch::current()) return;
  const SampleAxis axis = y.sample_axis();
  const int dim = axis.dim - (y.rank() - x.rank());
  const bool is_shared = axis.known() && (dim < 0 || x.shape()[dim] == 1);
  check_keeps_samples(x.is_leaf() ? is_shared : x.value().sample_axis().known() || !axis.known(),
                      op,
                      "an operand stretched along, or indexed by, samples");
}

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
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), name);
  const Tensor left = a.value().expand(shape);
  const Tensor right = b.value().expand(shape);
  const SampleAxis axis = joint_axis(a.value(), b.value(), shape, name);
  Tensor y = apply(op, left, right).with_sample_axis(axis);
  check_operand(a, y, name);
  check_operand(b, y, name);
  return record<BinaryNode>(
      y,
      [&](BinaryNode& node) {
        node.op = op;
        node.shapes[0] = a.shape();
        node.shapes[1] = b.shape();
        node.rows_are_elements = axis.known() && axis.dim == y.rank() - 1;
        if (a.wanted_leaf() || b.wanted_leaf()) {
          node.rows_per_sample =
              rows_per_sample(y, node.rows_are_elements ? 0 : 1, name, "the result");
        }
        if (op == BinaryOp::mul && b.requires_grad()) node.a = SavedTensor(left);
        if (op == BinaryOp::mul && a.requires_grad()) node.b = SavedTensor(right);
        if (op == BinaryOp::div) node.b = SavedTensor(right);
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
    Tensor dx = Tensor::empty(context.dy().shape(), context.dy().dtype());
    kernels::launch_cpu(kernels::ScalarForward{op, context.dy(), number, dx});
    context.give(0, std::move(dx));
  }
};

Variable with_number(BinaryOp op, const Variable& a, double b) {
  Tensor y = Tensor::empty(a.shape(), a.dtype());
  kernels::launch_cpu(kernels::ScalarForward{op, a.value(), b, y});
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
Variable operator+(const Variable& a, double b) { return with_number(BinaryOp::add, a, b); }
Variable operator-(const Variable& a, double b) { return with_number(BinaryOp::sub, a, b); }
Variable operator*(const Variable& a, double b) { return with_number(BinaryOp::mul, a, b); }
Variable operator/(const Variable& a, double b) { return with_number(BinaryOp::div, a, b); }

}  // namespace accrue
