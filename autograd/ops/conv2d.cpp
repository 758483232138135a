#include "accrue/autograd/ops/conv2d.h"

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/affine.h"
#include "accrue/autograd/ops/image.h"
#include "accrue/kernels/conv2d.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

struct Conv2dNode final : OpNode<3> {
  kernels::ConvShape shape;
  SavedTensor x, w;
  Tensor bias_like;  ///< shape and dtype of the bias
  std::int64_t rows_per_sample = 1;

  const char* name() const override { return "conv2d"; }
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
    const Tensor dy_dense = context.dy().contiguous();
    const T* const dy = dy_dense.data<T>();
    if (context.needs(2)) {
      context.give_rows(2, bias_like, shape.rows(), rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(dy_dense.device(),
                        kernels::Conv2dBiasGrad<T>{shape, dy, target.program(), buffers});
      });
    }
    if (context.needs(1)) {
      const Tensor image = x.get(name()).contiguous();
      const Tensor& weight = w.get(name());
      context.give_rows(1, weight, shape.rows(), rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(
            dy_dense.device(),
            kernels::Conv2dWeightGrad<T>{shape, dy, image.data<T>(), target.program(), buffers});
      });
    }
    if (context.needs(0)) {
      const Tensor weight = w.get(name()).contiguous();
      const std::int64_t height = shape.sliding.h.in, width = shape.sliding.w.in;
      Tensor dx = Tensor::empty(
          {shape.samples, shape.in_channels, height, width}, weight.dtype(), weight.device());
      kernels::launch(
          dx.device(),
          kernels::Conv2dInputGrad<T>{shape, dy, weight.data<T>(), dx.mutable_data<T>()});
      context.give(0, std::move(dx));
    }
  }
};

void check_shapes(const Variable& x, const Variable& w, const Variable& bias, std::int64_t groups) {
  ACCRUE_CHECK(w.rank() == 4,
               ShapeError,
               "conv2d",
               "weight must be [O, C / groups, KH, KW], got ",
               w.shape());
  ACCRUE_CHECK(x.rank() == 4,
               ShapeError,
               "conv2d",
               "input must be [N, C, H, W], got ",
               x.shape(),
               "; unsqueeze(0) a single image");
  ACCRUE_CHECK(groups >= 1, ValueError, "conv2d", "groups must be at least 1, got ", groups);
  ACCRUE_CHECK(w.size(0) % groups == 0,
               ShapeError,
               "conv2d",
               "the output channels must be a multiple of groups = ",
               groups,
               ", got weight ",
               w.shape());
  // Divided, not multiplied: groups may be any number.
  ACCRUE_CHECK(x.size(1) % groups == 0 && x.size(1) / groups == w.size(1),
               ShapeError,
               "conv2d",
               "input must have groups * ",
               w.size(1),
               " channels for groups = ",
               groups,
               " and weight ",
               w.shape(),
               ", got ",
               x.shape(),
               "; check in_channels");
  ACCRUE_CHECK(!bias.defined() || bias.shape() == Shape{w.size(0)},
               ShapeError,
               "conv2d",
               "bias must be [",
               w.size(0),
               "] for weight ",
               w.shape(),
               ", got ",
               bias.shape());
}

}  // namespace

Variable conv2d(const Variable& x,
                const Variable& w,
                const Variable& bias,
                const Conv2dOptions& options) {
  if (const auto half = autocast_dtype()) {
    const Autocast off(*half, false);
    return autocast_operand(conv2d(autocast_operand(x, *half),
                                   autocast_weight(w, *half),
                                   autocast_weight(bias, *half),
                                   options),
                            *half);
  }
  check_shapes(x, w, bias, options.groups);
  check_affine_dtypes("conv2d", x, w, bias);
  const Size2 size(w.size(2), w.size(3));
  const kernels::ConvShape shape{
      x.size(0),
      x.size(1),
      w.size(0),
      options.groups,
      sliding_over("conv2d", x.shape(), {size, options.stride, options.padding, options.dilation})};
  const SampleAxis axis =
      kept_samples(x.value(), 3, "conv2d", "a convolution along the sample dimension");
  const std::int64_t images = affine_rows("conv2d", x, 3, w, bias);
  const kernels::Sliding& sliding = shape.sliding;
  Tensor y =
      Tensor::empty({x.size(0), w.size(0), sliding.h.out, sliding.w.out}, x.dtype(), x.device());
  visit_floating(x.dtype(), "conv2d", [&]<class T>(T) {
    const Tensor image = x.value().contiguous(), weight = w.value().contiguous();
    const Tensor offsets = bias.defined() ? bias.value().contiguous() : Tensor();
    kernels::launch(y.device(),
                    kernels::Conv2dForward<T>{shape,
                                              image.data<T>(),
                                              weight.data<T>(),
                                              offsets.defined() ? offsets.data<T>() : nullptr,
                                              y.mutable_data<T>()});
  });
  return record<Conv2dNode>(
      y.with_sample_axis(affine_axis(axis, w, bias)),
      [&](Conv2dNode& node) {
        node.shape = shape;
        node.x = SavedTensor(x.value());
        node.w = SavedTensor(w.value());
        node.bias_like = bias.value();
        node.rows_per_sample = images * sliding.outputs();
      },
      x,
      w,
      bias);
}

}  // namespace accrue
