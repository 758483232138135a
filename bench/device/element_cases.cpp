// Cases of kernels that work on elements: functions, copies, masks, optimizers.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/adam.h"
#include "accrue/kernels/copy.h"
#include "accrue/kernels/dropout.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/sgd.h"

namespace accrue::bench {
namespace {

using kernels::UnaryOp;

/// Bytes of so many passes over a vector or matrix.
template <int kPasses>
double passes(const Sizes& s) {
  return product(s, 4 * kPasses);
}

template <UnaryOp kOp>
Work unary(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0]}, device, 1);
  Tensor y = unwritten({s[0]}, device);
  return {[=]() mutable { launch(device, kernels::UnaryForward{kOp, x, y}); }, {y}};
}

template <UnaryOp kOp>
Work unary_backward(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0]}, device, 1), dy = numbers({s[0]}, device, 2);
  Tensor dx = unwritten({s[0]}, device);
  return {[=, y = Tensor()]() mutable {
            launch(device, kernels::UnaryBackward{kOp, x, y, dy, dx});
          },
          {dx}};
}

Work add(const Sizes& s, Device device) {
  const Tensor a = numbers({s[0]}, device, 1), b = numbers({s[0]}, device, 2);
  Tensor y = unwritten({s[0]}, device);
  return {[=]() mutable {
            launch(device, kernels::BinaryForward{kernels::BinaryOp::add, a, b, y});
          },
          {y}};
}

Work transpose(const Sizes& s, Device device) {
  const Tensor x = numbers({s[1], s[0]}, device, 1).transpose(0, 1);
  Tensor y = unwritten({s[0], s[1]}, device);
  return {[=]() mutable { y.copy_from(x); }, {y}};
}

Work dropout_mask(const Sizes& s, Device device) {
  const kernels::DropoutMask args{.p = 0.1, .seed = 1, .mask = unwritten({s[0], s[1]}, device)};
  return {[=] { launch(device, args); }, {args.mask}};
}

Work adamw(const Sizes& s, Device device) {
  Tensor p = numbers({s[0]}, device, 1), m = numbers({s[0]}, device, 2),
         v = Tensor::full({s[0]}, 0.5, DType::float32, device);
  const Tensor g = numbers({s[0]}, device, 3);
  return {[=]() mutable {
            launch(device,
                   kernels::AdamStep<float>{.p = p.mutable_data<float>(),
                                            .g = g.data<float>(),
                                            .m = m.mutable_data<float>(),
                                            .v = v.mutable_data<float>(),
                                            .count = g.numel(),
                                            .step = 3,
                                            .lr = 1e-3,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .eps = 1e-8,
                                            .weight_decay = 0.01,
                                            .decoupled = true});
          },
          {p, m, v}};
}

Work sgd(const Sizes& s, Device device) {
  Tensor p = numbers({s[0]}, device, 1), buffer = numbers({s[0]}, device, 2);
  const Tensor g = numbers({s[0]}, device, 3);
  return {[=]() mutable {
            launch(device,
                   kernels::SgdStep<float>{.p = p.mutable_data<float>(),
                                           .g = g.data<float>(),
                                           .buffer = buffer.mutable_data<float>(),
                                           .count = g.numel(),
                                           .lr = 1e-3,
                                           .momentum = 0.9});
          },
          {p, buffer}};
}

}  // namespace

std::vector<KernelCase> element_cases() {
  using enum Counted;
  const std::vector<Sizes> many = {{1 << 28}}, wide = {{16384, 16384}};
  const Sizes ragged = {1031};
  return {
      {"gelu", bytes, many, ragged, passes<2>, unary<UnaryOp::gelu>},
      {"gelu_backward", bytes, many, ragged, passes<3>, unary_backward<UnaryOp::gelu>},
      {"exp", bytes, many, ragged, passes<2>, unary<UnaryOp::exp>},
      {"add", bytes, many, ragged, passes<3>, add},
      {"transpose", bytes, wide, {37, 70}, passes<2>, transpose},
      {"dropout_mask", bytes, wide, {37, 70}, passes<1>, dropout_mask},
      {"adamw", bytes, many, ragged, passes<7>, adamw},
      {"sgd", bytes, many, ragged, passes<5>, sgd},
  };
}

}  // namespace accrue::bench
