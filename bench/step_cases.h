// The training steps that step_bench times, as we and as libtorch take them: forward, loss,
// backward, step and zero_grad on one batch. One file alone includes libtorch's headers.
#pragma once

#include "accrue/bench/support/report.h"

#include <cstdint>
#include <functional>
#include <string>

namespace accrue::bench {

/// The version of libtorch, after setting its number of threads.
std::string start_peer(int num_threads);

// Linear(1, 1) without bias on a batch of 2, squared error, SGD.
Turn our_line_step();
std::function<void()> peer_line_step();

// Linear(1, 2) without bias on 8 padded sequences of 1 to 8 tokens, cross-entropy, SGD.
Turn our_token_step();
std::function<void()> peer_token_step();

// 784 - hidden - 10 with ReLU on random images, cross-entropy, SGD or AdamW.
struct MlpStep {
  std::int64_t hidden, batch;
  bool adamw = false;
};
Turn our_mlp_step(const MlpStep& step);
std::function<void()> peer_mlp_step(const MlpStep& step);

// The GPT of examples/gpt.h on random tokens, cross-entropy, AdamW.
struct GptStep {
  std::int64_t sequences = 8, context = 64, vocabulary = 65;
  std::int64_t embed_dim = 128, num_layers = 4, num_heads = 4;
};
Turn our_gpt_step(const GptStep& step);
std::function<void()> peer_gpt_step(const GptStep& step);

// Two 3 x 3 convolutions with ReLU and 2 x 2 max pooling, 16 and 32 channels, and a linear layer,
// on random images of 28 x 28, cross-entropy, SGD.
Turn our_conv_step(std::int64_t batch);
std::function<void()> peer_conv_step(std::int64_t batch);

}  // namespace accrue::bench
