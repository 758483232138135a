#include "accrue/autograd/ops/reduce.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/kernels/compare.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/reduce.h"

namespace accrue {
namespace {

/// `shape` without the dimensions in `mask`, or with size 1 in their place.
Shape reduced(const Shape& shape, unsigned mask, bool keep_dims) {
  Shape result;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool is_summed = mask & (1U << d);
    if (!is_summed || keep_dims) result.push_back(is_summed ? 1 : shape[d]);
  }
  return result;
}

Tensor sum_dims(const Tensor& x, unsigned mask, bool squares = false) {
  Tensor y = Tensor::empty(reduced(x.shape(), mask, false), x.dtype(), x.device());
  kernels::launch(y.device(), kernels::SumDims{x, mask, y, squares});
  return y;
}

unsigned dims_mask(const Variable& x, std::span<const int> dims, const char* op) {
  unsigned mask = 0;
  for (int dim : dims) {
    const int d = normalize_dim(dim, x.rank(), op);
    ACCRUE_CHECK(!(mask & (1U << d)),
                 ShapeError,
                 op,
                 "dims must name each dimension once, got ",
                 d,
                 " twice");
    mask |= 1U << d;
  }
  return dims.empty() ? (1U << x.rank()) - 1 : mask;
}

struct SumNode final : OpNode<1> {
  Shape from, kept;  ///< the input's shape; the result's with summed dimensions of size 1

  const char* name() const override { return "sum"; }
  void backward(Backward& context) override {
    context.give(0, context.dy().reshape(kept).expand(from));
  }
};

struct NormNode final : OpNode<1> {
  SavedTensor x, y;  ///< y with normed dimensions of size 1

  const char* name() const override { return "norm"; }
  void backward(Backward& context) override {
    const Tensor& norms = y.get(name());
    const Tensor& values = x.get(name());
    Tensor ratio = Tensor::empty(norms.shape(), norms.dtype(), norms.device());
    const Tensor dy = context.dy().reshape(norms.shape());
    kernels::launch(norms.device(),
                    kernels::BinaryForward{kernels::BinaryOp::div, dy, norms, ratio});
    const Tensor zero = Tensor::zeros({}, norms.dtype(), norms.device()).expand(norms.shape());
    Tensor is_zero = Tensor::empty(norms.shape(), DType::boolean, norms.device());
    kernels::launch(norms.device(), kernels::Compare{kernels::CompareOp::eq, norms, zero, is_zero});
    kernels::launch(norms.device(), kernels::Where{is_zero, zero, ratio, ratio});
    Tensor dx = Tensor::empty(values.shape(), values.dtype(), values.device());
    kernels::launch(
        dx.device(),
        kernels::BinaryForward{kernels::BinaryOp::mul, values, ratio.expand(values.shape()), dx});
    context.give(0, std::move(dx));
  }
  void forget_saved() override {
    x.reset();
    y.reset();
  }
};

/// The sample axis of a reduction over `mask`; throws in a window when it is recorded and samples
/// are reduced.
SampleAxis reduced_axis(
    const Variable& x, unsigned mask, bool keep_dims, const char* op, const char* what) {
  SampleAxis axis = x.value().sample_axis();
  const bool reduces_samples = axis.known() && (mask & (1U << axis.dim));
  check_keeps_samples(!reduces_samples || !is_recorded(x), op, what);
  for (int d = 0; d < x.value().sample_axis().dim && !keep_dims; ++d) {
    if (mask & (1U << d)) --axis.dim;
  }
  return reduces_samples ? SampleAxis::mixed() : axis;
}

}  // namespace

Tensor sum_to_shape(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  unsigned mask = 0;
  const int added = x.rank() - shape.rank();
  for (int d = 0; d < x.rank(); ++d) {
    if (d < added || (shape[d - added] == 1 && x.shape()[d] != 1)) mask |= 1U << d;
  }
  return sum_dims(x, mask).view(shape);
}

Variable sum(const Variable& x, std::span<const int> dims, bool keep_dims) {
  const unsigned mask = dims_mask(x, dims, "sum");
  const SampleAxis axis =
      reduced_axis(x, mask, keep_dims, "sum", "a sum over the sample dimension");
  const Shape kept = reduced(x.shape(), mask, true);
  Tensor y = sum_dims(x.value(), mask);
  if (keep_dims) y = y.view(kept);
  return record<SumNode>(
      y.with_sample_axis(axis),
      [&](SumNode& node) {
        node.from = x.shape();
        node.kept = kept;
      },
      x);
}

Variable sum(const Variable& x, std::initializer_list<int> dims, bool keep_dims) {
  return sum(x, std::span(dims.begin(), dims.size()), keep_dims);
}

Variable sum(const Variable& x) { return sum(x, std::span<const int>()); }

Variable mean(const Variable& x, std::span<const int> dims, bool keep_dims) {
  const unsigned mask = dims_mask(x, dims, "mean");
  std::int64_t count = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (mask & (1U << d)) count *= x.shape()[d];
  }
  return sum(x, dims, keep_dims) / static_cast<double>(count);
}

Variable mean(const Variable& x, std::initializer_list<int> dims, bool keep_dims) {
  return mean(x, std::span(dims.begin(), dims.size()), keep_dims);
}

Variable mean(const Variable& x) { return mean(x, std::span<const int>()); }

Variable norm(const Variable& x, std::span<const int> dims, bool keep_dims) {
  const unsigned mask = dims_mask(x, dims, "norm");
  const SampleAxis axis =
      reduced_axis(x, mask, keep_dims, "norm", "a norm over the sample dimension");
  Tensor y = sum_dims(x.value(), mask, true);
  kernels::launch(y.device(), kernels::UnaryForward{kernels::UnaryOp::sqrt, y, y});
  const Tensor kept = y.view(reduced(x.shape(), mask, true));
  if (keep_dims) y = kept;
  return record<NormNode>(
      y.with_sample_axis(axis),
      [&](NormNode& node) {
        node.x = SavedTensor(x.value());
        node.y = SavedTensor(kept);
      },
      x);
}

Variable norm(const Variable& x, std::initializer_list<int> dims, bool keep_dims) {
  return norm(x, std::span(dims.begin(), dims.size()), keep_dims);
}

Variable norm(const Variable& x) { return norm(x, std::span<const int>()); }

}  // namespace accrue
