// The peer of step_bench: the same training steps in libtorch. One file alone includes its headers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace accrue::bench {

/// The version of libtorch, after setting its number of threads.
std::string start_peer(int num_threads);

/// Forward, loss, backward, step and zero_grad of the documented line: Linear(1, 1) without bias on
/// a batch of 2, squared error, SGD.
std::function<void()> peer_line_step();

/// The same of the documented tokens: Linear(1, 2) without bias on 8 padded sequences of 1 to 8
/// tokens, cross-entropy.
std::function<void()> peer_token_step();

/// The same of an MLP with one hidden layer on a batch of random images.
std::function<void()> peer_mlp_step(std::int64_t inputs,
                                    std::int64_t hidden,
                                    std::int64_t classes,
                                    std::int64_t batch);

}  // namespace accrue::bench
