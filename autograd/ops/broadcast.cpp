#include "accrue/autograd/ops/broadcast.h"

#include "accrue/autograd/ops/reduce.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/broadcast_grad.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

#include <algorithm>

namespace accrue {

Shape joint_shape(std::span<const Variable* const> operands, const char* operation) {
  Shape shape = operands.front()->shape();
  for (const Variable* x : operands.subspan(1)) {
    check_device(operation, operands.front()->device(), x->value());
    shape = broadcast_shapes(shape, x->shape(), operation);
  }
  return shape;
}

SampleAxis joint_axis(std::span<const Variable* const> operands,
                      const Shape& result,
                      const char* operation) {
  SampleAxis axis;
  bool agree = true, mixed = false;
  for (const Variable* x : operands) {
    SampleAxis aligned = x->value().sample_axis();
    mixed |= aligned.is_mixed();
    if (!aligned.known()) continue;
    const std::int64_t size = x->shape()[aligned.dim];
    aligned.dim += result.rank() - x->rank();
    if (!axis.known()) axis = aligned;
    agree &= aligned == axis && size == result[axis.dim];
  }
  check_keeps_samples(agree, operation, "arithmetic across different sample dimensions");
  return mixed || !agree ? SampleAxis::mixed() : axis;
}

void check_stretched(const Variable& x, const Tensor& y, const char* operation) {
  if (!x.requires_grad() || !grad_enabled() || !MicroBatch::current()) return;
  const SampleAxis axis = y.sample_axis();
  check_not_mixed(axis, operation);
  const int dim = axis.dim - (y.rank() - x.rank());
  const bool is_shared = axis.known() && (dim < 0 || x.shape()[dim] == 1);
  check_keeps_samples(x.is_leaf() ? is_shared : x.value().sample_axis().known() || !axis.known(),
                      operation,
                      "an operand stretched along, or indexed by, samples");
}

BroadcastRows broadcast_rows(const Tensor& y, bool wanted, const char* operation) {
  BroadcastRows rows;
  const SampleAxis axis = y.sample_axis();
  rows.rows_are_elements = axis.known() && axis.dim == y.rank() - 1;
  if (wanted) {
    const int inner_dims = rows.rows_are_elements ? 0 : 1;
    rows.rows_per_sample = rows_per_sample(y, inner_dims, operation, "the result");
  }
  return rows;
}

void give_broadcast(Backward& context,
                    std::size_t i,
                    const Tensor& dy,
                    const Tensor& factor,
                    const Shape& shape,
                    bool is_leaf,
                    const BroadcastRows& rows) {
  if (!is_leaf) {
    Tensor whole = dy;
    if (factor.defined()) {
      whole = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
      kernels::launch(dy.device(),
                      kernels::BinaryForward{kernels::BinaryOp::mul, dy, factor, whole});
    }
    return context.give(i, sum_to_shape(whole, shape));
  }
  const int rank = dy.rank();
  const int row_dims = rows.rows_are_elements ? rank : std::max(rank - 1, 0);
  context.give_rows(
      i,
      Tensor::empty(shape, dy.dtype(), dy.device()),
      product(dy.shape(), 0, row_dims),
      rows.rows_per_sample,
      [&](LaneTarget& target) {
        visit_floating(dy.dtype(), "broadcast", [&]<class T>(T) {
          const std::vector<T*> buffers = target.pointers<T>();
          kernels::launch(
              dy.device(),
              kernels::BroadcastGrad<T>{dy, factor, row_dims, shape, target.program(), buffers});
        });
      });
}

}  // namespace accrue
