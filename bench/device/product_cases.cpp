// Cases of products: linear layers, batches of matrices, attention.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/attention.h"
#include "accrue/kernels/batched_matmul.h"
#include "accrue/kernels/linear.h"

#include <cmath>

namespace accrue::bench {
namespace {

// Sizes of linear layers: rows, inputs, outputs.
const std::vector<Sizes> kLayers = {{512, 768, 3072}, {4096, 4096, 4096}, {8192, 8192, 8192}};

double layer_flops(const Sizes& s) { return product(s, 2); }

Work linear(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1), w = numbers({s[2], s[1]}, device, 2);
  Tensor y = unwritten({s[0], s[2]}, device);
  return {[=]() mutable {
            launch(device,
                   kernels::LinearForward<float>{rows_of(x), rows_of(w), nullptr, out_rows_of(y)});
          },
          {y}};
}

Work linear_input_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers({s[0], s[2]}, device, 1), w = numbers({s[2], s[1]}, device, 2);
  Tensor dx = unwritten({s[0], s[1]}, device);
  return {
      [=]() mutable {
        launch(device, kernels::LinearInputGrad<float>{rows_of(dy), rows_of(w), out_rows_of(dx)});
      },
      {dx}};
}

template <int kDepth>
Work linear_weight_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers({s[0], s[2]}, device, 1), x = numbers({s[0], s[1]}, device, 2);
  Tensor dw = unwritten({s[2], s[1]}, device);
  return {[=, program = lane_program(s[0], kDepth)]() mutable {
            float* const buffers[] = {dw.mutable_data<float>()};
            launch(device,
                   kernels::LinearWeightGrad<float>{
                       rows_of(dy), rows_of(x), {program, 1, kDepth}, buffers});
          },
          {dw}};
}

Work linear_bias_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers({s[0], s[1]}, device, 1);
  Tensor db = unwritten({s[1]}, device);
  return {[=, program = lane_program(s[0], 3)]() mutable {
            float* const buffers[] = {db.mutable_data<float>()};
            launch(device, kernels::LinearBiasGrad<float>{rows_of(dy), {program, 1, 3}, buffers});
          },
          {db}};
}

Work matmul(const Sizes& s, Device device) {
  const Tensor a = numbers({s[0], s[1]}, device, 1), b = numbers({s[1], s[2]}, device, 2);
  Tensor c = unwritten({s[0], s[2]}, device);
  return {[=]() mutable {
            launch(device, kernels::Matmul<float>{rows_of(a), rows_of(b), out_rows_of(c)});
          },
          {c}};
}

// Batches: matrices, rows, inner, columns.
Work batched_matmul(const Sizes& s, Device device) {
  const Tensor a = numbers({s[0], s[1], s[2]}, device, 1),
               b = numbers({s[0], s[2], s[3]}, device, 2),
               c = unwritten({s[0], s[1], s[3]}, device);
  return {[=] { launch(device, kernels::BatchedMatmul{a, b, c}); }, {c}};
}

// Attention: batches times heads, positions, width.
Tensor heads(const Sizes& s, Device device, std::uint64_t seed) {
  return numbers({s[0], s[1], s[2]}, device, seed);
}
double scale(const Sizes& s) { return 1 / std::sqrt(static_cast<double>(s[2])); }
/// Two products of which causal attention needs half; backward five.
double attention_flops(const Sizes& s) { return product(s, 2) * static_cast<double>(s[1]); }
double attention_backward_flops(const Sizes& s) { return 2.5 * attention_flops(s); }

Work attention(const Sizes& s, Device device) {
  const kernels::AttentionForward args{.q = heads(s, device, 1),
                                       .k = heads(s, device, 2),
                                       .v = heads(s, device, 3),
                                       .causal = true,
                                       .scale = scale(s),
                                       .y = unwritten({s[0], s[1], s[2]}, device)};
  return {[=] { launch(device, args); }, {args.y}};
}

Work attention_backward(const Sizes& s, Device device) {
  const auto gradient = [&] { return unwritten({s[0], s[1], s[2]}, device); };
  const kernels::AttentionBackward args{.q = heads(s, device, 1),
                                        .k = heads(s, device, 2),
                                        .v = heads(s, device, 3),
                                        .causal = true,
                                        .scale = scale(s),
                                        .dy = heads(s, device, 4),
                                        .dq = gradient(),
                                        .dk = gradient(),
                                        .dv = gradient()};
  return {[=] { launch(device, args); }, {args.dq, args.dk, args.dv}};
}

}  // namespace

std::vector<KernelCase> product_cases() {
  using enum Counted;
  const Sizes ragged = {37, 70, 65};
  const std::vector<Sizes> attended = {{64, 2048, 64}};
  return {
      {"linear", flops, kLayers, ragged, layer_flops, linear},
      {"linear_input_grad", flops, kLayers, ragged, layer_flops, linear_input_grad},
      {"linear_weight_grad", flops, kLayers, ragged, layer_flops, linear_weight_grad<0>},
      {"linear_weight_grad_8_lanes", flops, kLayers, ragged, layer_flops, linear_weight_grad<3>},
      {"linear_bias_grad",
       bytes,
       {{65536, 4096}},
       {37, 65},
       [](const Sizes& s) { return product(s, 4); },
       linear_bias_grad},
      bits_alone("matmul", ragged, matmul),
      {"batched_matmul",
       flops,
       {{64, 1024, 1024, 1024}},
       {3, 33, 17, 65},
       layer_flops,
       batched_matmul},
      {"attention", flops, attended, {3, 70, 20}, attention_flops, attention},
      {"attention_backward",
       flops,
       attended,
       {3, 70, 20},
       attention_backward_flops,
       attention_backward},
  };
}

}  // namespace accrue::bench
