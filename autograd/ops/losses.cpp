#include "accrue/autograd/ops/losses.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/loss.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/autograd/ops/row_matrix.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/cross_entropy.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/mse.h"

namespace accrue {
namespace {

// ---- cross-entropy ----

template <class T>
kernels::CrossEntropyInputs<T> arguments(const Tensor& logits,
                                         const Tensor& target,
                                         const CrossEntropyOptions& options) {
  return {{logits.data<T>(), logits.shape()[0], logits.shape()[1], logits.shape()[1], 1},
          target.data<std::int64_t>(),
          options.class_weights.defined() ? options.class_weights.data<T>() : nullptr,
          options.ignore_index,
          options.label_smoothing};
}

struct CrossEntropyNode final : OpNode<1> {
  SavedTensor logits, target, class_weights;
  Tensor row_max, row_sum;
  CrossEntropyOptions options;

  const char* name() const override { return "cross_entropy"; }
  void backward(Backward& context) override {
    const Tensor& dloss = context.dy();
    const Tensor& x = logits.get(name());
    if (options.class_weights.defined()) class_weights.get(name());
    Tensor dx = Tensor::empty(x.shape(), x.dtype(), x.device());
    visit_floating(x.dtype(), name(), [&]<class T>(T) {
      kernels::launch(x.device(),
                      kernels::CrossEntropyBackward<T>{arguments<T>(x, target.get(name()), options),
                                                       row_max.data<T>(),
                                                       row_sum.data<T>(),
                                                       dloss.data<T>(),
                                                       row_stride(dloss),
                                                       mutable_row_matrix<T>(dx)});
    });
    context.give(0, std::move(dx));
  }
  void forget_saved() override {
    logits.reset();
    target.reset();
    class_weights.reset();
    row_max = row_sum = options.class_weights = Tensor();
  }
};

}  // namespace

void check_cross_entropy_options(const char* operation,
                                 const Tensor& target,
                                 const CrossEntropyOptions& options,
                                 std::int64_t num_classes,
                                 DType dtype) {
  ACCRUE_CHECK(target.dtype() == DType::int64,
               DTypeError,
               operation,
               "target must be int64 class indices, got ",
               target.dtype(),
               "; convert with to()");
  const Tensor& weights = options.class_weights;
  ACCRUE_CHECK(!weights.defined() || weights.shape() == Shape{num_classes},
               ShapeError,
               operation,
               "class_weights must be [",
               num_classes,
               "], got ",
               weights.shape());
  ACCRUE_CHECK(!weights.defined() || weights.dtype() == dtype,
               DTypeError,
               operation,
               "class_weights must be ",
               dtype,
               " like the logits, got ",
               weights.dtype());
}

SampleAxis row_axis(SampleAxis logits, const Tensor& target, const CrossEntropyOptions& options) {
  const SampleAxis of_target = target.sample_axis();
  if (options.class_weights.sample_axis() != SampleAxis{}) return SampleAxis::mixed();
  if (logits == SampleAxis{}) return of_target;
  const bool agree = of_target == SampleAxis{} || of_target == logits;
  return agree && logits.dim <= 0 ? logits : SampleAxis::mixed();
}

Variable cross_entropy_rows(const Variable& logits,
                            const Tensor& target,
                            const CrossEntropyOptions& options) {
  ACCRUE_CHECK(logits.rank() == 2 && target.rank() == 1 && logits.shape()[0] == target.shape()[0],
               ShapeError,
               "cross_entropy",
               "logits must be [N, C] and target [N], got ",
               logits.shape(),
               " and ",
               target.shape(),
               "; flatten tokens with reshape({-1, C}) and reshape({-1})");
  check_cross_entropy_options("cross_entropy", target, options, logits.shape()[1], logits.dtype());
  const Device device =
      common_device("cross_entropy", logits.value(), target, options.class_weights);
  const Tensor x = logits.value().contiguous();
  const Tensor t = target.contiguous();
  CrossEntropyOptions dense = options;
  if (dense.class_weights.defined()) dense.class_weights = dense.class_weights.contiguous();
  Tensor loss = Tensor::empty(t.shape(), x.dtype(), device);
  Tensor row_max = Tensor::empty(t.shape(), x.dtype(), device);
  Tensor row_sum = Tensor::empty(t.shape(), x.dtype(), device);
  visit_floating(x.dtype(), "cross_entropy", [&]<class T>(T) {
    kernels::launch(device,
                    kernels::CrossEntropyForward<T>{arguments<T>(x, t, dense),
                                                    loss.mutable_data<T>(),
                                                    row_max.mutable_data<T>(),
                                                    row_sum.mutable_data<T>()});
  });
  const SampleAxis axis = x.sample_axis();
  check_keeps_samples(axis.dim != 1, "cross_entropy", "a softmax along the sample dimension");
  loss = loss.with_sample_axis(row_axis(axis, t, dense));
  return record<CrossEntropyNode>(
      loss,
      [&](CrossEntropyNode& node) {
        node.logits = SavedTensor(x);
        node.target = SavedTensor(t);
        if (dense.class_weights.defined()) node.class_weights = SavedTensor(dense.class_weights);
        node.row_max = row_max;
        node.row_sum = row_sum;
        node.options = dense;
      },
      logits);
}

LossWeight cross_entropy_weight(const Tensor& target, const CrossEntropyOptions& options) {
  const Tensor dense = target.to(Device::cpu()).contiguous();
  const std::int64_t* t = dense.data<std::int64_t>();
  if (!options.class_weights.defined()) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < dense.numel(); ++i) count += t[i] != options.ignore_index;
    return LossWeight(count);
  }
  const auto weights = options.class_weights.to(DType::float64).to_vector<double>();
  kernels::check_targets(
      t, dense.numel(), static_cast<std::int64_t>(weights.size()), options.ignore_index);
  std::vector<std::int64_t> counts(weights.size());
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (t[i] != options.ignore_index) ++counts[static_cast<std::size_t>(t[i])];
  }
  return LossWeight(std::move(counts), weights);
}

Variable cross_entropy(const Variable& logits,
                       const Tensor& target,
                       const CrossEntropyOptions& options,
                       Reduction reduction) {
  Variable rows = cross_entropy_rows(logits, target, options);
  if (reduction == Reduction::none) return rows;
  const Variable total = sum(rows);
  return reduction == Reduction::sum ? total
                                     : total / cross_entropy_weight(target, options).value();
}

// ---- squared error ----

namespace {

struct MseNode final : OpNode<2> {
  SavedTensor x, y;

  const char* name() const override { return "mse"; }
  void backward(Backward& context) override {
    // One gradient for all rows needs no copy.
    const Tensor dloss = context.dy().rank() <= 1 ? context.dy() : context.dy().contiguous();
    const std::int64_t stride = dloss.rank() == 1 ? row_stride(dloss) : 1;
    Tensor dx, dy;
    visit_floating(dloss.dtype(), name(), [&]<class T>(T) {
      const auto gradient = [&](std::size_t i, Tensor& result) -> kernels::Matrix<T> {
        if (!context.needs(i)) return {};
        result = Tensor::empty(x.get(name()).shape(), dloss.dtype(), dloss.device());
        return mutable_row_matrix<T>(result);
      };
      kernels::launch(dloss.device(),
                      kernels::MseBackward<T>{row_matrix<T>(x.get(name())),
                                              row_matrix<T>(y.get(name())),
                                              dloss.data<T>(),
                                              stride,
                                              gradient(0, dx),
                                              gradient(1, dy)});
    });
    if (dx.defined()) context.give(0, std::move(dx));
    if (dy.defined()) context.give(1, std::move(dy));
  }
  void forget_saved() override {
    x.reset();
    y.reset();
  }
};

void check_mse(const Variable& x, const Variable& y) {
  ACCRUE_CHECK(x.shape() == y.shape(),
               ShapeError,
               "mse",
               "input and target must have one shape, got ",
               x.shape(),
               " and ",
               y.shape(),
               "; reshape or expand one of them");
  ACCRUE_CHECK(x.dtype() == y.dtype(),
               DTypeError,
               "mse",
               "input and target must have one dtype, got ",
               x.dtype(),
               " and ",
               y.dtype(),
               "; convert with to()");
}

}  // namespace

Variable mse_rows(const Variable& x, const Variable& y) {
  check_mse(x, y);
  const SampleAxis axis = x.value().sample_axis(), other = y.value().sample_axis();
  const bool agree = !axis.known() || !other.known() || axis == other;
  check_keeps_samples(agree, "mse", "a difference across different sample dimensions");
  const SampleAxis joint = axis.known() ? axis : other;
  if (x.rank() > 0 && joint.dim == x.rank() - 1) {
    Shape rows = x.shape();
    rows.push_back(1);
    return mse_rows(reshape(x, rows), reshape(y, rows));
  }
  const Device device = common_device("mse", x.value(), y.value());
  const Tensor dense_x = x.value().contiguous();
  const Tensor dense_y = y.value().contiguous();
  Shape shape = x.shape();
  if (shape.rank() > 0) shape.erase(shape.rank() - 1);
  Tensor loss = Tensor::empty(shape, x.dtype(), device);
  visit_floating(x.dtype(), "mse", [&]<class T>(T) {
    kernels::launch(device,
                    kernels::MseForward<T>{
                        row_matrix<T>(dense_x), row_matrix<T>(dense_y), loss.mutable_data<T>()});
  });
  if (agree) loss = loss.with_sample_axis(joint);
  return record<MseNode>(
      loss,
      [&](MseNode& node) {
        node.x = SavedTensor(dense_x);
        node.y = SavedTensor(dense_y);
      },
      x,
      y);
}

Variable mse_loss(const Variable& x, const Variable& y, Reduction reduction) {
  check_mse(x, y);
  if (reduction == Reduction::none) return (x - y) * (x - y);
  const Variable total = sum(mse_rows(x, y));
  return reduction == Reduction::sum ? total : total / static_cast<double>(x.numel());
}

}  // namespace accrue
