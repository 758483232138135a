// Cases of kernels that slide over images: convolutions of 3 x 3 taps, pools of 2 x 2.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/conv2d.h"
#include "accrue/kernels/pool2d.h"

namespace accrue::bench {
namespace {

using kernels::LaneInstruction;
using kernels::SlidingAxis;

// Convolutions: images, channels in, channels out, side.
kernels::ConvShape conv_shape(const Sizes& s) {
  const SlidingAxis axis{.in = s[3], .out = s[3], .size = 3, .padding = 1};
  return {.samples = s[0], .in_channels = s[1], .out_channels = s[2], .sliding = {axis, axis}};
}
double conv_flops(const Sizes& s) { return product(s, 2 * 9) * static_cast<double>(s[3]); }
Shape inputs_of(const Sizes& s) { return {s[0], s[1], s[3], s[3]}; }
Shape outputs_of(const Sizes& s) { return {s[0], s[2], s[3], s[3]}; }
double output_bytes(const Sizes& s) { return product({s[0], s[2], s[3], s[3]}, 4); }
Shape weights_of(const Sizes& s) { return {s[2], s[1], 3, 3}; }

Work conv2d(const Sizes& s, Device device) {
  const Tensor x = numbers(inputs_of(s), device, 1), w = numbers(weights_of(s), device, 2);
  Tensor y = unwritten(outputs_of(s), device);
  return {[=, shape = conv_shape(s)]() mutable {
            launch(device,
                   kernels::Conv2dForward<float>{
                       shape, x.data<float>(), w.data<float>(), nullptr, y.mutable_data<float>()});
          },
          {y}};
}

Work conv2d_input_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers(outputs_of(s), device, 1), w = numbers(weights_of(s), device, 2);
  Tensor dx = unwritten(inputs_of(s), device);
  return {[=, shape = conv_shape(s)]() mutable {
            launch(device,
                   kernels::Conv2dInputGrad<float>{
                       shape, dy.data<float>(), w.data<float>(), dx.mutable_data<float>()});
          },
          {dx}};
}

/// All rows in one lane.
std::vector<LaneInstruction> one_chain(const kernels::ConvShape& shape) {
  return {
      LaneInstruction::zero(), LaneInstruction::chain(0, shape.rows()), LaneInstruction::store(0)};
}

Work conv2d_weight_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers(outputs_of(s), device, 1), x = numbers(inputs_of(s), device, 2);
  Tensor dw = unwritten(weights_of(s), device);
  const kernels::ConvShape shape = conv_shape(s);
  return {[=, program = one_chain(shape)]() mutable {
            float* const buffers[] = {dw.mutable_data<float>()};
            launch(device,
                   kernels::Conv2dWeightGrad<float>{
                       shape, dy.data<float>(), x.data<float>(), {program, 1, 0}, buffers});
          },
          {dw}};
}

Work conv2d_bias_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers(outputs_of(s), device, 1);
  Tensor db = unwritten({s[2]}, device);
  const kernels::ConvShape shape = conv_shape(s);
  return {[=, program = one_chain(shape)]() mutable {
            float* const buffers[] = {db.mutable_data<float>()};
            launch(
                device,
                kernels::Conv2dBiasGrad<float>{shape, dy.data<float>(), {program, 1, 0}, buffers});
          },
          {db}};
}

// Pools: planes, side.
kernels::PoolShape pool_shape(const Sizes& s) {
  const SlidingAxis axis{.in = s[1], .out = s[1] / 2, .size = 2, .stride = 2};
  return {.planes = s[0], .sliding = {axis, axis}};
}
/// Images read or written, and `per_output` bytes for each pixel of a result.
template <int kPerOutput>
double pool_bytes(const Sizes& s) {
  return 4 * product({s[0], s[1], s[1]}, 1) + product({s[0], s[1] / 2, s[1] / 2}, kPerOutput);
}

Shape images_of(const Sizes& s) { return {s[0], s[1], s[1]}; }
Shape pooled_of(const Sizes& s) { return {s[0], s[1] / 2, s[1] / 2}; }

Work max_pool2d(const Sizes& s, Device device) {
  const Tensor x = numbers(images_of(s), device, 1);
  Tensor y = unwritten(pooled_of(s), device),
         places = Tensor::empty(y.shape(), DType::int32, device);
  return {[=, shape = pool_shape(s)]() mutable {
            launch(device,
                   kernels::MaxPool2d<float>{shape,
                                             x.data<float>(),
                                             y.mutable_data<float>(),
                                             places.mutable_data<std::int32_t>()});
          },
          {y}};
}

Work max_pool2d_grad(const Sizes& s, Device device) {
  const Tensor x = numbers(images_of(s), device, 1), dy = numbers(pooled_of(s), device, 2);
  Tensor y = unwritten(pooled_of(s), device), dx = unwritten(images_of(s), device),
         places = Tensor::empty(y.shape(), DType::int32, device);
  const kernels::PoolShape shape = pool_shape(s);
  launch(device,
         kernels::MaxPool2d<float>{
             shape, x.data<float>(), y.mutable_data<float>(), places.mutable_data<std::int32_t>()});
  return {
      [=]() mutable {
        launch(device,
               kernels::MaxPool2dGrad<float>{
                   shape, dy.data<float>(), places.data<std::int32_t>(), dx.mutable_data<float>()});
      },
      {dx}};
}

Work avg_pool2d(const Sizes& s, Device device) {
  const Tensor x = numbers(images_of(s), device, 1);
  Tensor y = unwritten(pooled_of(s), device);
  return {[=, shape = pool_shape(s)]() mutable {
            launch(device,
                   kernels::AvgPool2d<float>{shape, {}, x.data<float>(), y.mutable_data<float>()});
          },
          {y}};
}

Work avg_pool2d_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers(pooled_of(s), device, 1);
  Tensor dx = unwritten(images_of(s), device);
  return {[=, shape = pool_shape(s)]() mutable {
            launch(device,
                   kernels::AvgPool2dGrad<float>{
                       shape, {}, dy.data<float>(), dx.mutable_data<float>()});
          },
          {dx}};
}

}  // namespace

std::vector<KernelCase> image_cases() {
  using enum Counted;
  const std::vector<Sizes> layers = {{128, 128, 128, 56}};
  const Sizes ragged = {3, 5, 7, 11};
  const std::vector<Sizes> planes = {{16384, 112}};
  return {
      {"conv2d", flops, layers, ragged, conv_flops, conv2d},
      {"conv2d_input_grad", flops, layers, ragged, conv_flops, conv2d_input_grad},
      {"conv2d_weight_grad", flops, layers, ragged, conv_flops, conv2d_weight_grad},
      {"conv2d_bias_grad", bytes, layers, ragged, output_bytes, conv2d_bias_grad},
      {"max_pool2d", bytes, planes, {5, 11}, pool_bytes<8>, max_pool2d},
      {"max_pool2d_grad", bytes, planes, {5, 11}, pool_bytes<8>, max_pool2d_grad},
      {"avg_pool2d", bytes, planes, {5, 11}, pool_bytes<4>, avg_pool2d},
      {"avg_pool2d_grad", bytes, planes, {5, 11}, pool_bytes<4>, avg_pool2d_grad},
  };
}

}  // namespace accrue::bench
