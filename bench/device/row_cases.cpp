// Cases of kernels that work on rows: losses, softmax, normalisation, embeddings.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/cross_entropy.h"
#include "accrue/kernels/embedding.h"
#include "accrue/kernels/layer_norm.h"
#include "accrue/kernels/mse.h"
#include "accrue/kernels/softmax.h"

namespace accrue::bench {
namespace {

using kernels::LaneInstruction;
using kernels::NormKind;
using kernels::SoftmaxKind;

/// The logits once and their gradient once, where a row fits the shared memory of a block; longer
/// rows are read twice.
double cross_entropy_bytes(const Sizes& s) {
  constexpr std::int64_t kLongestInBlock = 58'000;
  return product(s, s[1] <= kLongestInBlock ? 8 : 12);
}

/// Losses and gradients.
Work cross_entropy(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1), target = indices(s[0], s[1], device),
               one = numbers({s[0]}, device, 2);
  Tensor loss = unwritten({s[0]}, device), max = unwritten({s[0]}, device),
         sum = unwritten({s[0]}, device), dx = unwritten({s[0], s[1]}, device);
  return {
      [=]() mutable {
        const kernels::CrossEntropyInputs<float> in{.logits = rows_of(x),
                                                    .target = target.data<std::int64_t>()};
        launch(device,
               kernels::CrossEntropyForward<float>{in,
                                                   loss.mutable_data<float>(),
                                                   max.mutable_data<float>(),
                                                   sum.mutable_data<float>()});
        launch(
            device,
            kernels::CrossEntropyBackward<float>{
                in, max.data<float>(), sum.data<float>(), one.data<float>(), 1, out_rows_of(dx)});
      },
      {loss, dx}};
}

template <SoftmaxKind kKind>
Work softmax(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1);
  Tensor y = unwritten({s[0], s[1]}, device);
  return {[=]() mutable {
            launch(device, kernels::SoftmaxForward<float>{kKind, rows_of(x), out_rows_of(y)});
          },
          {y}};
}

template <SoftmaxKind kKind>
Work softmax_backward(const Sizes& s, Device device) {
  const Tensor y = numbers({s[0], s[1]}, device, 1), dy = numbers({s[0], s[1]}, device, 2);
  Tensor dx = unwritten({s[0], s[1]}, device);
  return {[=]() mutable {
            launch(
                device,
                kernels::SoftmaxBackward<float>{kKind, rows_of(y), rows_of(dy), out_rows_of(dx)});
          },
          {dx}};
}

template <bool kWithGradient>
Work mse(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1), y = numbers({s[0], s[1]}, device, 2),
               dloss = numbers({s[0]}, device, 3);
  Tensor loss = unwritten({s[0]}, device), dx = unwritten({kWithGradient ? s[0] : 0, s[1]}, device);
  return {[=]() mutable {
            launch(device,
                   kernels::MseForward<float>{rows_of(x), rows_of(y), loss.mutable_data<float>()});
            if (!kWithGradient) return;
            launch(device,
                   kernels::MseBackward<float>{
                       rows_of(x), rows_of(y), dloss.data<float>(), 1, out_rows_of(dx), {}});
          },
          {loss, dx}};
}

constexpr double kEps = 1e-5;

template <NormKind kKind>
Work layer_norm(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1), w = numbers({s[1]}, device, 2),
               b = numbers({s[1]}, device, 3);
  Tensor y = unwritten({s[0], s[1]}, device), mean = unwritten({s[0]}, device),
         rstd = unwritten({s[0]}, device);
  return {[=]() mutable {
            launch(device,
                   kernels::LayerNormForward<float>{kKind,
                                                    kEps,
                                                    rows_of(x),
                                                    w.data<float>(),
                                                    b.data<float>(),
                                                    out_rows_of(y),
                                                    mean.mutable_data<float>(),
                                                    rstd.mutable_data<float>()});
          },
          {y, mean, rstd}};
}

/// The gradient of x; `kWithWeight` adds what that of the weight is made of.
template <NormKind kKind, bool kWithWeight>
Work layer_norm_backward(const Sizes& s, Device device) {
  const Work forward = layer_norm<kKind>(s, device);
  forward.launch();
  const Tensor x = numbers({s[0], s[1]}, device, 1), w = numbers({s[1]}, device, 2),
               dy = numbers({s[0], s[1]}, device, 4), mean = forward.results[1],
               rstd = forward.results[2];
  Tensor dx = unwritten({s[0], s[1]}, device),
         n = unwritten({kWithWeight ? s[0] : 0, s[1]}, device);
  return {[=]() mutable {
            launch(device,
                   kernels::LayerNormBackward<float>{
                       kKind,
                       rows_of(x),
                       rows_of(dy),
                       w.data<float>(),
                       mean.data<float>(),
                       rstd.data<float>(),
                       out_rows_of(dx),
                       kWithWeight ? out_rows_of(n) : kernels::Matrix<float>{}});
          },
          {dx, n}};
}

// Embeddings: tokens, vocabulary, width.
Work embedding(const Sizes& s, Device device) {
  const Tensor table = numbers({s[1], s[2]}, device, 1), tokens = indices(s[0], s[1], device);
  Tensor y = unwritten({s[0], s[2]}, device);
  return {[=]() mutable {
            launch(device,
                   kernels::EmbeddingForward<float>{
                       rows_of(table), tokens.data<std::int64_t>(), out_rows_of(y)});
          },
          {y}};
}

Work embedding_grad(const Sizes& s, Device device) {
  const Tensor dy = numbers({s[0], s[2]}, device, 1), tokens = indices(s[0], s[1], device);
  Tensor dtable = unwritten({s[1], s[2]}, device);
  const std::vector<LaneInstruction> program = {
      LaneInstruction::zero(), LaneInstruction::chain(0, s[0]), LaneInstruction::store(0)};
  return {[=]() mutable {
            float* const buffers[] = {dtable.mutable_data<float>()};
            launch(device,
                   kernels::EmbeddingGrad<float>{rows_of(dy),
                                                 tokens.data<std::int64_t>(),
                                                 dtable.size(0),
                                                 -1,
                                                 {program, 1, 0},
                                                 buffers});
          },
          {dtable}};
}

}  // namespace

std::vector<KernelCase> row_cases() {
  using enum Counted;
  const Sizes ragged = {13, 1029};
  const std::vector<Sizes> wide = {{65536, 4096}}, tokens = {{131072, 50304, 1024}};
  return {
      {"cross_entropy",
       bytes,
       {{8192, 50304}, {8192, 128256}},
       {5, 3001},
       cross_entropy_bytes,
       cross_entropy},
      {"softmax", bytes, wide, ragged, passes<2>, softmax<SoftmaxKind::plain>},
      {"softmax_backward", bytes, wide, ragged, passes<3>, softmax_backward<SoftmaxKind::plain>},
      bits_alone("log_softmax", ragged, softmax<SoftmaxKind::log>),
      bits_alone("log_softmax_backward", ragged, softmax_backward<SoftmaxKind::log>),
      {"mse", bytes, wide, ragged, passes<2>, mse<false>},
      {"mse_and_gradient", bytes, wide, ragged, passes<3>, mse<true>},
      {"layer_norm", bytes, wide, ragged, passes<2>, layer_norm<NormKind::layer>},
      {"layer_norm_backward",
       bytes,
       wide,
       ragged,
       passes<3>,
       layer_norm_backward<NormKind::layer, false>},
      bits_alone("rms_norm", ragged, layer_norm<NormKind::rms>),
      bits_alone("rms_norm_backward", ragged, layer_norm_backward<NormKind::rms, true>),
      {"embedding",
       bytes,
       tokens,
       {70, 41, 37},
       [](const Sizes& s) { return 8 * static_cast<double>(s[0] * s[2]); },
       embedding},
      {"embedding_grad",
       bytes,
       tokens,
       {70, 41, 37},
       [](const Sizes& s) { return 4 * static_cast<double>((s[0] + s[1]) * s[2]); },
       embedding_grad},
  };
}

}  // namespace accrue::bench
