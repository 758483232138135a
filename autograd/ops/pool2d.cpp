#include "accrue/autograd/ops/pool2d.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/image.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/pool2d.h"

#include <limits>

namespace accrue {
namespace {

struct MaxPool2dNode final : OpNode<1> {
  kernels::PoolShape shape;
  Shape from;
  SavedTensor places;

  const char* name() const override { return "max_pool2d"; }
  void backward(Backward& context) override {
    const Tensor dy = context.dy().contiguous();
    Tensor dx = Tensor::empty(from, dy.dtype(), dy.device());
    const std::int32_t* const at = places.get(name()).data<std::int32_t>();
    visit_floating(dy.dtype(), name(), [&]<class T>(T) {
      kernels::launch(dx.device(),
                      kernels::MaxPool2dGrad<T>{shape, dy.data<T>(), at, dx.mutable_data<T>()});
    });
    context.give(0, std::move(dx));
  }
  void forget_saved() override { places.reset(); }
};

struct AvgPool2dNode final : OpNode<1> {
  kernels::PoolShape shape;
  kernels::PoolDivisor divisor;
  Shape from;

  const char* name() const override { return "avg_pool2d"; }
  void backward(Backward& context) override {
    const Tensor dy = context.dy().contiguous();
    Tensor dx = Tensor::empty(from, dy.dtype(), dy.device());
    visit_floating(dy.dtype(), name(), [&]<class T>(T) {
      kernels::launch(
          dx.device(),
          kernels::AvgPool2dGrad<T>{shape, divisor, dy.data<T>(), dx.mutable_data<T>()});
    });
    context.give(0, std::move(dx));
  }
};

kernels::PoolShape pool_shape(const char* operation,
                              const Variable& x,
                              const SlidingOptions& options) {
  ACCRUE_CHECK(x.rank() >= 2,
               ShapeError,
               operation,
               "input must be [..., H, W], got ",
               x.shape(),
               "; pass images");
  const Size2 &size = options.size, &padding = options.padding;
  ACCRUE_CHECK(padding.h <= size.h / 2 && padding.w <= size.w / 2,
               ValueError,
               operation,
               "padding must be at most half of the kernel size ",
               size,
               ", got ",
               padding,
               "; pad the image first");
  const kernels::PoolShape shape{product(x.shape(), 0, x.rank() - 2),
                                 sliding_over(operation, x.shape(), options)};
  ACCRUE_CHECK(shape.sliding.inputs() <= std::numeric_limits<std::int32_t>::max(),
               ShapeError,
               operation,
               "an image must have less than 2^31 elements, got ",
               x.shape(),
               "; pool parts of it");
  return shape;
}

Shape pooled(const Shape& shape, const kernels::Sliding& sliding) {
  Shape result = shape;
  result[shape.rank() - 2] = sliding.h.out;
  result[shape.rank() - 1] = sliding.w.out;
  return result;
}

SampleAxis samples_of(const Variable& x, const char* operation) {
  return kept_samples(x.value(), 2, operation, "pooling along the sample dimension");
}

}  // namespace

Variable max_pool2d(const Variable& x, Size2 size, const MaxPool2dOptions& options) {
  const char* name = "max_pool2d";
  const Size2 stride = options.stride == kKernelSize ? size : options.stride;
  const kernels::PoolShape shape =
      pool_shape(name, x, {size, stride, options.padding, options.dilation, options.ceil_mode});
  const SampleAxis axis = samples_of(x, name);
  Tensor y = Tensor::empty(pooled(x.shape(), shape.sliding), x.dtype(), x.device());
  Tensor places = Tensor::empty(y.shape(), DType::int32, x.device());
  visit_floating(x.dtype(), name, [&]<class T>(T) {
    const Tensor images = x.value().contiguous();
    kernels::launch(
        y.device(),
        kernels::MaxPool2d<T>{
            shape, images.data<T>(), y.mutable_data<T>(), places.mutable_data<std::int32_t>()});
  });
  return record<MaxPool2dNode>(
      y.with_sample_axis(axis),
      [&](MaxPool2dNode& node) {
        node.shape = shape;
        node.from = x.shape();
        node.places = SavedTensor(places);
      },
      x);
}

Variable avg_pool2d(const Variable& x, Size2 size, const AvgPool2dOptions& options) {
  const char* name = "avg_pool2d";
  ACCRUE_CHECK(
      options.divisor_override.value_or(1) != 0,
      ValueError,
      name,
      "divisor_override must not be 0, got 0; leave it out to divide by the window's size");
  const Size2 stride = options.stride == kKernelSize ? size : options.stride;
  const kernels::PoolShape shape =
      pool_shape(name, x, {size, stride, options.padding, 1, options.ceil_mode});
  const kernels::PoolDivisor divisor{options.count_include_pad,
                                     options.divisor_override.value_or(0)};
  const SampleAxis axis = samples_of(x, name);
  Tensor y = Tensor::empty(pooled(x.shape(), shape.sliding), x.dtype(), x.device());
  visit_floating(x.dtype(), name, [&]<class T>(T) {
    const Tensor images = x.value().contiguous();
    kernels::launch(y.device(),
                    kernels::AvgPool2d<T>{shape, divisor, images.data<T>(), y.mutable_data<T>()});
  });
  return record<AvgPool2dNode>(
      y.with_sample_axis(axis),
      [&](AvgPool2dNode& node) {
        node.shape = shape;
        node.divisor = divisor;
        node.from = x.shape();
      },
      x);
}

}  // namespace accrue
