// The small training that accrue test repeats on 1 and on N processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accrue::tools {

/// Samples per optimizer step of every case.
inline constexpr std::int64_t kGlobalBatchSize = 24;

/// Every process needs a lane of its own.
inline constexpr int kLanes = 64;

/// Micro-batch sizes that the check trains with on `num_processes` processes.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t num_processes);

/// Trains on all ranks of this job. The main process prints a line for each micro-batch size: the
/// hash of loss and weights of every step.
///
/// Errors:  ProgramEnd with kClaimFailed when the world is not of `num_processes` or its ranks end
///          with different weights.
void train_and_print(std::int64_t num_processes);

}  // namespace accrue::tools
