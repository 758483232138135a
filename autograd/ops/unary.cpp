#include "accrue/autograd/ops/unary.h"

#include "accrue/autograd/engine.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

using kernels::UnaryOp;

struct UnaryNode final : OpNode<1> {
  UnaryOp op{};
  kernels::UnaryParameters parameters;
  SavedTensor x, y;

  const char* name() const override { return kernels::name_of(op); }
  void backward(Backward& context) override {
    const Tensor& dy = context.dy();
    Tensor dx = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
    const Tensor none;
    kernels::launch(dx.device(),
                    kernels::UnaryBackward{op,
                                           kernels::backward_reads_x(op) ? x.get(name()) : none,
                                           kernels::backward_reads_y(op) ? y.get(name()) : none,
                                           dy,
                                           dx,
                                           parameters});
    context.give(0, std::move(dx));
  }
  void forget_saved() override {
    x.reset();
    y.reset();
  }
};

Variable unary(UnaryOp op, const Variable& x, kernels::UnaryParameters parameters = {}) {
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  kernels::launch(y.device(), kernels::UnaryForward{op, x.value(), y, parameters});
  y = y.with_sample_axis(x.value().sample_axis());
  return record<UnaryNode>(
      y,
      [&](UnaryNode& node) {
        node.op = op;
        node.parameters = parameters;
        if (kernels::backward_reads_x(op)) node.x = SavedTensor(x.value());
        if (kernels::backward_reads_y(op)) node.y = SavedTensor(y);
      },
      x);
}

}  // namespace

Variable relu(const Variable& x) { return unary(UnaryOp::relu, x); }
Variable leaky_relu(const Variable& x, double negative_slope) {
  return unary(UnaryOp::leaky_relu, x, {negative_slope});
}
Variable exp(const Variable& x) { return unary(UnaryOp::exp, x); }
Variable log(const Variable& x) { return unary(UnaryOp::log, x); }
Variable neg(const Variable& x) { return unary(UnaryOp::neg, x); }
Variable tanh(const Variable& x) { return unary(UnaryOp::tanh, x); }
Variable sigmoid(const Variable& x) { return unary(UnaryOp::sigmoid, x); }
Variable silu(const Variable& x) { return unary(UnaryOp::silu, x); }
Variable gelu(const Variable& x) { return unary(UnaryOp::gelu, x); }
Variable gelu_tanh(const Variable& x) { return unary(UnaryOp::gelu_tanh, x); }
Variable sqrt(const Variable& x) { return unary(UnaryOp::sqrt, x); }
Variable abs(const Variable& x) { return unary(UnaryOp::abs, x); }
Variable clamp(const Variable& x, double low, double high) {
  ACCRUE_CHECK(low <= high,
               ValueError,
               "clamp",
               "bounds must be numbers with low <= high, got ",
               low,
               " and ",
               high,
               "; swap them");
  return unary(UnaryOp::clamp, x, {low, high});
}
Variable pow(const Variable& x, double exponent) { return unary(UnaryOp::pow, x, {exponent}); }
Variable round_to(const Variable& x, DType dtype) {
  ACCRUE_CHECK(dtype == DType::bfloat16 || dtype == DType::float16,
               ValueError,
               "round_to",
               "dtype must be bfloat16 or float16, got ",
               dtype,
               "; convert with to()");
  const bool is_bfloat16 = dtype == DType::bfloat16;
  return unary(is_bfloat16 ? UnaryOp::round_to_bfloat16 : UnaryOp::round_to_float16, x);
}

}  // namespace accrue
