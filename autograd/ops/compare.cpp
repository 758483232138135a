#include "accrue/autograd/ops/compare.h"

#include "accrue/autograd/ops/broadcast.h"
#include "accrue/kernels/compare.h"
#include "accrue/kernels/launch.h"

#include <cmath>

namespace accrue {
namespace {

using kernels::CompareOp;

void check_one_dtype(const Variable& a, const Variable& b, const char* operation) {
  ACCRUE_CHECK(a.dtype() == b.dtype(),
               DTypeError,
               operation,
               "operands must have one dtype, got ",
               a.dtype(),
               " and ",
               b.dtype(),
               "; convert with to()");
}

Tensor compare(CompareOp op, const Variable& a, const Variable& b) {
  const char* name = kernels::name_of(op);
  check_one_dtype(a, b, name);
  const Variable* const operands[] = {&a, &b};
  const Shape shape = joint_shape(operands, name);
  const SampleAxis axis = joint_axis(operands, shape, name);
  Tensor y = Tensor::empty(shape, DType::boolean, a.device());
  kernels::launch(y.device(),
                  kernels::Compare{op, a.value().expand(shape), b.value().expand(shape), y});
  return y.with_sample_axis(axis);
}

Tensor compare(CompareOp op, const Variable& a, double b) {
  ACCRUE_CHECK(is_floating(a.dtype()) || b == std::trunc(b),
               ValueError,
               kernels::name_of(op),
               "a number compared with ",
               a.dtype(),
               " must be whole, got ",
               b,
               "; convert with to()");
  return compare(op, a, Tensor::full({}, b, a.dtype(), a.device()));
}

struct WhereNode final : OpNode<2> {
  SavedTensor condition;  ///< expanded to the result's shape
  Shape shapes[2];
  BroadcastRows rows;

  const char* name() const override { return "where"; }
  void backward(Backward& context) override {
    const Tensor& dy = context.dy();
    const Tensor& chosen = condition.get(name());
    const Tensor zero = Tensor::zeros({}, dy.dtype(), dy.device()).expand(dy.shape());
    for (std::size_t i = 0; i < 2; ++i) {
      if (!context.needs(i)) continue;
      Tensor part = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
      kernels::launch(dy.device(),
                      kernels::Where{chosen, i == 0 ? dy : zero, i == 0 ? zero : dy, part});
      const bool is_leaf = inputs[i].node->as_leaf() != nullptr;
      give_broadcast(context, i, part, {}, shapes[i], is_leaf, rows);
    }
  }
  void forget_saved() override { condition.reset(); }
};

}  // namespace

Variable where(const Tensor& condition, const Variable& a, const Variable& b) {
  constexpr const char* kName = kernels::Where::kName;
  check_one_dtype(a, b, kName);
  const Variable selector(condition);
  const Variable* const operands[] = {&selector, &a, &b};
  const Shape shape = joint_shape(operands, kName);
  const SampleAxis axis = joint_axis(operands, shape, kName);
  const Tensor chosen = condition.expand(shape);
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  kernels::launch(y.device(),
                  kernels::Where{chosen, a.value().expand(shape), b.value().expand(shape), y});
  y = y.with_sample_axis(axis);
  check_stretched(a, y, kName);
  check_stretched(b, y, kName);
  return record<WhereNode>(
      y,
      [&](WhereNode& node) {
        node.condition = SavedTensor(chosen);
        node.shapes[0] = a.shape();
        node.shapes[1] = b.shape();
        node.rows = broadcast_rows(y, a.wanted_leaf() || b.wanted_leaf(), kName);
      },
      a,
      b);
}

Tensor eq(const Variable& a, const Variable& b) { return compare(CompareOp::eq, a, b); }
Tensor ne(const Variable& a, const Variable& b) { return compare(CompareOp::ne, a, b); }
Tensor lt(const Variable& a, const Variable& b) { return compare(CompareOp::lt, a, b); }
Tensor le(const Variable& a, const Variable& b) { return compare(CompareOp::le, a, b); }
Tensor gt(const Variable& a, const Variable& b) { return compare(CompareOp::gt, a, b); }
Tensor ge(const Variable& a, const Variable& b) { return compare(CompareOp::ge, a, b); }
Tensor eq(const Variable& a, double b) { return compare(CompareOp::eq, a, b); }
Tensor ne(const Variable& a, double b) { return compare(CompareOp::ne, a, b); }
Tensor lt(const Variable& a, double b) { return compare(CompareOp::lt, a, b); }
Tensor le(const Variable& a, double b) { return compare(CompareOp::le, a, b); }
Tensor gt(const Variable& a, double b) { return compare(CompareOp::gt, a, b); }
Tensor ge(const Variable& a, double b) { return compare(CompareOp::ge, a, b); }

}  // namespace accrue
