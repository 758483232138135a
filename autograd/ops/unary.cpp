#include "accrue/autograd/ops/unary.h"

#include "accrue/autograd/engine.h"
#include "accrue/kernels/elementwise.h"

namespace accrue {
namespace {

using kernels::UnaryOp;

struct UnaryNode final : OpNode<1> {
  UnaryOp op{};
  SavedTensor x, y;

  const char* name() const override { return kernels::name_of(op); }
  void backward(Backward& context) override {
    const Tensor& dy = context.dy();
    Tensor dx = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
    const Tensor none;
    kernels::launch_cpu(kernels::UnaryBackward{op,
                                               kernels::backward_reads_x(op) ? x.get(name()) : none,
                                               kernels::backward_reads_y(op) ? y.get(name()) : none,
                                               dy,
                                               dx});
    context.give(0, std::move(dx));
  }
  void forget_saved() override {
    x.reset();
    y.reset();
  }
};

Variable unary(UnaryOp op, const Variable& x) {
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  kernels::launch_cpu(kernels::UnaryForward{op, x.value(), y});
  y = y.with_sample_axis(x.value().sample_axis());
  return record<UnaryNode>(
      y,
      [&](UnaryNode& node) {
        node.op = op;
        if (kernels::backward_reads_x(op)) node.x = SavedTensor(x.value());
        if (kernels::backward_reads_y(op)) node.y = SavedTensor(y);
      },
      x);
}

}  // namespace

Variable relu(const Variable& x) { return unary(UnaryOp::relu, x); }
Variable exp(const Variable& x) { return unary(UnaryOp::exp, x); }
Variable log(const Variable& x) { return unary(UnaryOp::log, x); }
Variable neg(const Variable& x) { return unary(UnaryOp::neg, x); }

}  // namespace accrue
