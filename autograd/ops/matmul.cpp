#include "accrue/autograd/ops/matmul.h"

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/batched_matmul.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

Tensor multiply(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  shape[shape.rank() - 1] = b.shape().back();
  const Device device = common_device("matmul", a, b);
  Tensor c = Tensor::empty(shape, a.dtype(), device);
  kernels::launch(device, kernels::BatchedMatmul{a, b, c, matmul_precision()});
  return c;
}

struct MatmulNode final : OpNode<2> {
  SavedTensor a, b;  ///< expanded to the leading dimensions of the result
  Shape shapes[2];

  const char* name() const override { return "matmul"; }
  void backward(Backward& context) override {
    const Tensor& dy = context.dy();
    if (context.needs(0)) {
      context.give(0, sum_to_shape(multiply(dy, b.get(name()).transpose(-2, -1)), shapes[0]));
    }
    if (context.needs(1)) {
      context.give(1, sum_to_shape(multiply(a.get(name()).transpose(-2, -1), dy), shapes[1]));
    }
  }
  void forget_saved() override {
    a.reset();
    b.reset();
  }
};

/// The dimensions but the last two.
Shape leading(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 2)));
}

Tensor with_leading(const Tensor& x, const Shape& dims) {
  Shape shape = dims;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return x.expand(shape);
}

void check_matmul(const Variable& a, const Variable& b) {
  ACCRUE_CHECK(a.rank() >= 2 && b.rank() >= 2 && a.size(-1) == b.size(-2),
               ShapeError,
               "matmul",
               "operands must be [..., M, K] and [..., K, N], got ",
               a.shape(),
               " and ",
               b.shape());
  ACCRUE_CHECK(a.dtype() == b.dtype(),
               DTypeError,
               "matmul",
               "operands must have one dtype, got ",
               a.dtype(),
               " and ",
               b.dtype(),
               "; convert with to()");
}

/// The sample dimension of x among `rank` dimensions, its own aligned on the right.
SampleAxis aligned(const Tensor& x, int rank) {
  SampleAxis axis = x.sample_axis();
  if (axis.known()) axis.dim += rank - x.rank();
  return axis;
}

/// The size of x in dimension `dim` of `rank`, its own aligned on the right.
std::int64_t aligned_size(const Tensor& x, int dim, int rank) {
  const int own = dim - (rank - x.rank());
  return own < 0 ? 1 : x.shape()[own];
}

/// The sample dimension of the result; throws in a window where samples would mix.
SampleAxis joint_axis(const Tensor& a, const Tensor& b, int rank) {
  const SampleAxis left = aligned(a, rank), right = aligned(b, rank);
  const auto size = [rank](const Tensor& x, int dim) { return aligned_size(x, dim, rank); };
  bool keeps = true;
  if (left.known() && left == right) {
    keeps = left.dim < rank - 2 && size(a, left.dim) == size(b, left.dim);
  } else if (left.known()) {
    const bool is_shared = left.dim == rank - 2 || (left.dim < rank - 2 && size(b, left.dim) == 1);
    keeps = !right.known() && is_shared;
  } else if (right.known()) {
    keeps = right.dim < rank - 2 && size(a, right.dim) == 1;
  }
  check_keeps_samples(
      keeps, "matmul", "a sum over samples or a right operand that depends on samples");
  if (!keeps) return {};
  return left.known() ? left : right;
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b) {
  if (const auto half = autocast_dtype()) {
    const Autocast off(*half, false);
    return autocast_operand(matmul(autocast_operand(a, *half), autocast_operand(b, *half)), *half);
  }
  check_matmul(a, b);
  const Shape dims = broadcast_shapes(leading(a.shape()), leading(b.shape()), "matmul");
  const SampleAxis axis = joint_axis(a.value(), b.value(), dims.rank() + 2);
  const Tensor left = with_leading(a.value(), dims), right = with_leading(b.value(), dims);
  const Tensor c = multiply(left, right).with_sample_axis(axis);
  return record<MatmulNode>(
      c,
      [&](MatmulNode& node) {
        node.a = SavedTensor(left);
        node.b = SavedTensor(right);
        node.shapes[0] = a.shape();
        node.shapes[1] = b.shape();
      },
      a,
      b);
}

}  // namespace accrue
