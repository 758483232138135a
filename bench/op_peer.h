// The peer of op_bench: the same operations in libtorch. One file alone includes its headers.
#pragma once

#include "accrue/core/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace accrue::bench {

/// An operation on operands it owns: ours or the peer's.
struct OpRun {
  std::function<void()> forward;
  /// Forward with a graph, then backward from the given gradient to those of the operands.
  std::function<void()> both;
  /// The result, then the gradients of the floating-point operands, of one call of both().
  std::function<std::vector<Tensor>()> results;
};

/// The version of libtorch, after setting its number of threads.
std::string start_op_peer(int num_threads);

/// The peer's operation of this name on the same numbers. Without a gradient there is no backward.
OpRun peer_op(const std::string& name, const std::vector<Tensor>& operands, const Tensor& gradient);

}  // namespace accrue::bench
