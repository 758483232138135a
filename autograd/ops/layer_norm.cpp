#include "accrue/autograd/ops/layer_norm.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/affine.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/broadcast_grad.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/layer_norm.h"
#include "accrue/kernels/linear.h"

#include <cmath>
#include <limits>

namespace accrue {
namespace {

using kernels::Matrix;
using kernels::NormKind;

/// x as rows of the normalised size.
template <class T>
Matrix<const T> rows_of(const Tensor& x, std::int64_t rows, std::int64_t cols) {
  return {x.data<T>(), rows, cols, cols, 1};
}

struct LayerNormNode final : OpNode<3> {
  NormKind kind{};
  SavedTensor x, weight;  ///< dense; weight undefined without one
  Tensor mean, rstd;
  Shape normalized_shape;
  bool has_weight = false;
  std::int64_t rows_per_sample = 1;

  const char* name() const override {
    return kind == NormKind::rms ? "rms_norm" : "native_layer_norm";
  }
  void backward(Backward& context) override {
    visit_floating(context.dy().dtype(), name(), [&]<class T>(T) { run<T>(context); });
  }
  void forget_saved() override {
    x.reset();
    weight.reset();
    mean = rstd = Tensor();
  }

 private:
  template <class T>
  void run(Backward& context) {
    const Tensor dy = context.dy().contiguous();
    const std::int64_t rows = mean.numel();
    const std::int64_t cols = product(normalized_shape, 0, normalized_shape.rank());
    const Matrix<const T> dy_rows = rows_of<T>(dy, rows, cols);
    Tensor dx, n;
    kernels::LayerNormBackward<T> args;
    args.kind = kind;
    args.x = rows_of<T>(x.get(name()), rows, cols);
    args.dy = dy_rows;
    args.weight = has_weight ? weight.get(name()).template data<T>() : nullptr;
    args.mean = mean.data<T>();
    args.rstd = rstd.data<T>();
    if (context.needs(0)) {
      dx = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
      args.dx = kernels::row_major(dx.mutable_data<T>(), rows, cols);
    }
    if (context.needs(1)) {
      n = Tensor::empty({rows, cols}, dy.dtype(), dy.device());
      args.n = kernels::row_major(n.mutable_data<T>(), rows, cols);
    }
    kernels::launch(dy.device(), args);
    const Tensor like = Tensor::empty(normalized_shape, dy.dtype(), dy.device());
    if (context.needs(2)) {
      context.give_rows(2, like, rows, rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(dy.device(),
                        kernels::LinearBiasGrad<T>{dy_rows, target.program(), buffers});
      });
    }
    if (context.needs(1)) {
      context.give_rows(1, like, rows, rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(dy.device(),
                        kernels::BroadcastGrad<T>{
                            dy.view({rows, cols}), n, 1, {cols}, target.program(), buffers});
      });
    }
    if (dx.defined()) context.give(0, std::move(dx));
  }
};

/// What both operations are called with.
struct NormCall {
  NormKind kind;
  const char* name;
  const Variable &x, &weight, &bias;
  const Shape& normalized_shape;
  double eps;

  int num_dims() const { return normalized_shape.rank(); }
  int leading_dims() const { return x.rank() - num_dims(); }
};

void check_parameter(const NormCall& call, const Variable& parameter, const char* what) {
  if (!parameter.defined()) return;
  ACCRUE_CHECK(parameter.shape() == call.normalized_shape,
               ShapeError,
               call.name,
               what,
               " must have the normalised shape ",
               call.normalized_shape,
               ", got ",
               parameter.shape());
  ACCRUE_CHECK(parameter.dtype() == call.x.dtype(),
               DTypeError,
               call.name,
               what,
               " must be ",
               call.x.dtype(),
               " like the input, got ",
               parameter.dtype(),
               "; convert with to()");
}

void check_call(const NormCall& call) {
  bool fits = call.num_dims() >= 1 && call.leading_dims() >= 0;
  for (int d = 0; fits && d < call.num_dims(); ++d) {
    fits = call.x.shape()[call.leading_dims() + d] == call.normalized_shape[d];
  }
  ACCRUE_CHECK(fits,
               ShapeError,
               call.name,
               "the input must end in the normalised shape ",
               call.normalized_shape,
               " of at least one dimension, got ",
               call.x.shape());
  check_parameter(call, call.weight, "weight");
  check_parameter(call, call.bias, "bias");
  ACCRUE_CHECK(!call.bias.defined() || call.weight.defined(),
               ValueError,
               call.name,
               "a bias needs a weight, got none; pass ones");
  ACCRUE_CHECK(call.eps >= 0 && std::isfinite(call.eps),
               ValueError,
               call.name,
               "eps must be >= 0 and finite, got ",
               call.eps);
  check_keeps_samples(call.x.value().sample_axis().dim < call.leading_dims(),
                      call.name,
                      "a mean along the sample dimension");
}

/// In a window, rows per sample of x; weight and bias must be leaves there.
std::int64_t checked_rows(const NormCall& call) {
  const bool wants_rows =
      grad_enabled() && (call.weight.requires_grad() || call.bias.requires_grad());
  if (!wants_rows || !MicroBatch::current()) return 1;
  const auto is_parameter = [](const Variable& v) { return !v.requires_grad() || v.is_leaf(); };
  ACCRUE_CHECK(is_parameter(call.weight) && is_parameter(call.bias),
               StateError,
               call.name,
               "weight and bias must be parameters in a window, got the result of an operation; "
               "use invariant = false");
  return rows_per_sample(call.x.value(), call.num_dims(), call.name, "the input of a parameter");
}

template <class T>
const T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

Variable normalize(const NormCall& call) {
  check_call(call);
  const std::int64_t per_sample = checked_rows(call);
  const Device device =
      common_device(call.name, call.x.value(), call.weight.value(), call.bias.value());
  const Tensor x = call.x.value().contiguous();
  const Tensor w = call.weight.defined() ? call.weight.value().contiguous() : Tensor();
  const Tensor b = call.bias.defined() ? call.bias.value().contiguous() : Tensor();
  const std::int64_t rows = product(x.shape(), 0, call.leading_dims());
  const std::int64_t cols = product(call.normalized_shape, 0, call.num_dims());
  Tensor y = Tensor::empty(x.shape(), x.dtype(), device);
  Tensor mean = Tensor::empty({rows}, x.dtype(), device);
  Tensor rstd = Tensor::empty({rows}, x.dtype(), device);
  visit_floating(x.dtype(), call.name, [&]<class T>(T) {
    kernels::launch(
        device,
        kernels::LayerNormForward<T>{call.kind,
                                     call.eps,
                                     rows_of<T>(x, rows, cols),
                                     data_or_null<T>(w),
                                     data_or_null<T>(b),
                                     kernels::row_major(y.mutable_data<T>(), rows, cols),
                                     mean.mutable_data<T>(),
                                     rstd.mutable_data<T>()});
  });
  const SampleAxis axis = call.x.value().sample_axis();
  y = y.with_sample_axis(affine_axis(
      axis.dim < call.leading_dims() ? axis : SampleAxis::mixed(), call.weight, call.bias));
  return record<LayerNormNode>(
      y,
      [&](LayerNormNode& node) {
        node.kind = call.kind;
        node.x = SavedTensor(x);
        node.has_weight = w.defined();
        if (w.defined()) node.weight = SavedTensor(w);
        node.mean = mean;
        node.rstd = rstd;
        node.normalized_shape = call.normalized_shape;
        node.rows_per_sample = per_sample;
      },
      call.x,
      call.weight,
      call.bias);
}

}  // namespace

Variable layer_norm(const Variable& x,
                    const Shape& normalized_shape,
                    const Variable& weight,
                    const Variable& bias,
                    double eps) {
  return normalize({NormKind::layer, "layer_norm", x, weight, bias, normalized_shape, eps});
}

Variable rms_norm(const Variable& x,
                  const Shape& normalized_shape,
                  const Variable& weight,
                  std::optional<double> eps) {
  const double machine_eps = x.dtype() == DType::float64
                                 ? std::numeric_limits<double>::epsilon()
                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
  return normalize({NormKind::rms,
                    "rms_norm",
                    x,
                    weight,
                    Variable(),
                    normalized_shape,
                    eps.value_or(machine_eps)});
}

}  // namespace accrue
