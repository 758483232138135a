#include "accrue/autograd/ops/softmax.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/row_matrix.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/softmax.h"

namespace accrue {
namespace {

using kernels::SoftmaxKind;

struct SoftmaxNode final : OpNode<1> {
  SoftmaxKind kind{};
  SavedTensor y;

  const char* name() const override { return kind == SoftmaxKind::log ? "log_softmax" : "softmax"; }
  void backward(Backward& context) override {
    const Tensor dy = context.dy().contiguous();
    Tensor dx = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
    visit_floating(dy.dtype(), name(), [&]<class T>(T) {
      kernels::launch(
          dx.device(),
          kernels::SoftmaxBackward<T>{
              kind, row_matrix<T>(y.get(name())), row_matrix<T>(dy), mutable_row_matrix<T>(dx)});
    });
    context.give(0, std::move(dx));
  }
  void forget_saved() override { y.reset(); }
};

Variable softmax_of_last(SoftmaxKind kind, const Variable& x) {
  const Tensor dense = x.value().contiguous();
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  visit_floating(x.dtype(), "softmax", [&]<class T>(T) {
    kernels::launch(
        y.device(),
        kernels::SoftmaxForward<T>{kind, row_matrix<T>(dense), mutable_row_matrix<T>(y)});
  });
  const SampleAxis axis = x.value().sample_axis();
  y = y.with_sample_axis(axis.dim == x.rank() - 1 ? SampleAxis{} : axis);
  return record<SoftmaxNode>(
      y,
      [&](SoftmaxNode& node) {
        node.kind = kind;
        node.y = SavedTensor(y);
      },
      x);
}

Variable softmax(SoftmaxKind kind, const Variable& x, int dim) {
  const int d = normalize_dim(dim, x.rank(), "softmax");
  check_keeps_samples(
      x.value().sample_axis().dim != d, "softmax", "a softmax along the sample dimension");
  if (d >= x.rank() - 1) return softmax_of_last(kind, x);
  return transpose(softmax_of_last(kind, transpose(x, d, -1)), d, -1);
}

}  // namespace

Variable softmax(const Variable& x, int dim) { return softmax(SoftmaxKind::plain, x, dim); }
Variable log_softmax(const Variable& x, int dim) { return softmax(SoftmaxKind::log, x, dim); }

}  // namespace accrue
