#include "accrue/autograd/ops/linear.h"

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/affine.h"
#include "accrue/autograd/ops/row_matrix.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/linear.h"

namespace accrue {
namespace {

using kernels::Matrix;

/// The dimensions but the last one flattened to rows; copies layouts that two strides cannot walk.
Tensor as_rows(const Tensor& x) {
  return x.rank() == 2 ? x : x.reshape({product(x.shape(), 0, x.rank() - 1), x.shape().back()});
}

struct LinearNode final : OpNode<3> {
  SavedTensor x, w;
  Tensor bias_like;  ///< shape and dtype of the bias
  std::int64_t rows_per_sample = 1;

  const char* name() const override { return "linear"; }
  void backward(Backward& context) override {
    visit_floating(context.dy().dtype(), name(), [&]<class T>(T) { run<T>(context); });
  }
  void forget_saved() override {
    x.reset();
    w.reset();
  }

 private:
  template <class T>
  void run(Backward& context) {
    const Tensor dy_rows = as_rows(context.dy());
    const Matrix<const T> dy = matrix_of<T>(dy_rows);
    if (context.needs(2)) {
      context.give_rows(2, bias_like, dy.rows, rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(dy_rows.device(),
                        kernels::LinearBiasGrad<T>{dy, target.program(), buffers});
      });
    }
    if (context.needs(1)) {
      const Tensor x_rows = as_rows(x.get(name()));
      context.give_rows(1, w.get(name()), dy.rows, rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(
            dy_rows.device(),
            kernels::LinearWeightGrad<T>{
                dy, matrix_of<T>(x_rows), target.program(), buffers, matmul_precision()});
      });
    }
    if (context.needs(0)) {
      const Tensor& weight = w.get(name());
      Shape shape = context.dy().shape();
      shape[shape.rank() - 1] = weight.shape()[1];
      Tensor dx = Tensor::empty(shape, weight.dtype(), weight.device());
      kernels::launch(dx.device(),
                      kernels::LinearInputGrad<T>{
                          dy, matrix_of<T>(weight), mutable_row_matrix<T>(dx), matmul_precision()});
      context.give(0, std::move(dx));
    }
  }
};

}  // namespace

Variable linear(const Variable& x, const Variable& w, const Variable& bias) {
  if (const auto half = autocast_dtype()) {
    const Autocast off(*half, false);
    return autocast_operand(
        linear(autocast_operand(x, *half), autocast_weight(w, *half), autocast_weight(bias, *half)),
        *half);
  }
  check_linear("linear", x, w, bias);
  const std::int64_t rows = affine_rows("linear", x, 1, w, bias);
  const Tensor x_rows = as_rows(x.value());
  Shape shape = x.shape();
  shape[shape.rank() - 1] = w.shape()[0];
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  visit_floating(x.dtype(), "linear", [&]<class T>(T) {
    const Tensor b = bias.defined() ? bias.value().contiguous() : Tensor();
    kernels::launch(y.device(),
                    kernels::LinearForward<T>{matrix_of<T>(x_rows),
                                              matrix_of<T>(w.value()),
                                              b.defined() ? b.data<T>() : nullptr,
                                              mutable_row_matrix<T>(y),
                                              matmul_precision()});
  });
  const SampleAxis axis = x.value().sample_axis();
  y = y.with_sample_axis(
      affine_axis(axis.dim == x.rank() - 1 ? SampleAxis::mixed() : axis, w, bias));
  return record<LinearNode>(
      y,
      [&](LinearNode& node) {
        node.x = SavedTensor(x.value());
        node.w = SavedTensor(w.value());
        node.bias_like = bias.value();
        node.rows_per_sample = rows;
      },
      x,
      w,
      bias);
}

}  // namespace accrue
