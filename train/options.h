// Options of the trainer: how often to step, how to keep the bits, what upstream did otherwise.
#pragma once

#include "accrue/data/window_plan.h"
#include "accrue/dist/process_group.h"
#include "accrue/optim/grad_scaler.h"

#include <cstdint>
#include <optional>

namespace accrue::train {

/// Accelerate's GradientAccumulationPlugin. `adjust_scheduler` does not exist here: schedules count
/// optimizer steps.
struct GradientAccumulationPlugin {
  std::int64_t num_steps = 1;        ///< micro-batches per optimizer step
  bool sync_with_dataloader = true;  ///< false: windows go on over epochs (compat only)
};

/// Upstream's choices where they differ from ours. Default: none of them.
struct Compat {
  /// Every loss is divided by the configured number of steps, also in a short last window, and a
  /// counter decides when to synchronise. Several ranks get batches by dataloader_config, so that
  /// samples may count twice, average their gradients, and step schedules once per rank.
  bool upstream_accumulation = false;

  /// All of Accelerate's choices. Implies AcceleratorOptions::invariant = false.
  static Compat accelerate() { return {.upstream_accumulation = true}; }
};

/// How upstream deals a loader's batches to ranks: Accelerate's class. The other fields of that
/// have no meaning here: shuffling is always seeded, by the loader's seed and epoch.
struct DataLoaderConfiguration {
  bool split_batches = false;  ///< ranks share every batch, instead of taking W in turn
  /// Rank 0 reads and sends batches to all; else each rank reads its own. Default: for streams.
  std::optional<bool> dispatch_batches = std::nullopt;
  bool even_batches = true;  ///< repeat samples where the last batches of ranks would differ
};

/// What products compute with, as Accelerate's mixed_precision: bfloat16 or float16 operands, while
/// weights, their gradients and the optimizer stay float32. See autograd/autocast.h.
enum class MixedPrecision : std::uint8_t { no, bf16, fp16 };

struct AcceleratorOptions {
  std::int64_t gradient_accumulation_steps = 1;  ///< A, micro-batches per optimizer step
  std::int64_t global_batch_size = 0;  ///< B, samples per optimizer step; 0: W * A * loader batch
  int lanes = 8;  ///< L, leaves of the reduction tree; part of a run's identity
  data::Dealing dealing = data::Dealing::contiguous;
  bool invariant = true;  ///< keep the bits independent of the split; false: any op, plain chains
  std::optional<GradientAccumulationPlugin> gradient_accumulation_plugin = std::nullopt;
  Compat compat = {};
  /// With compat: of all prepared loaders. Else only prepare_data_loader() deals as upstream.
  std::optional<DataLoaderConfiguration> dataloader_config = std::nullopt;
  /// Where models and batches go. cuda(0) stands for the devices of a host: its rank r takes
  /// cuda(r), in a circle. Any other is taken as it is. Ranks that are processes need one each.
  /// Default: what ACCELERATE_TORCH_DEVICE says (cpu, cuda or cuda:N), else the CPU.
  std::optional<Device> device = std::nullopt;
  /// The ranks that train together, borrowed; null: those the launcher started, else this process.
  dist::ProcessGroup* process_group = nullptr;
  /// Default: what ACCELERATE_MIXED_PRECISION says, which `accrue launch` sets, else no.
  std::optional<MixedPrecision> mixed_precision = std::nullopt;
  /// Of fp16. Default: torch's, with a scale of 1,024 for losses that are sums; with compat, where
  /// they are means, 65,536.
  std::optional<optim::GradScalerOptions> grad_scaler = std::nullopt;
  bool step_scheduler_with_optimizer = true;  ///< false: scheduler.step() always acts
  // How ranks sum gradients: in buckets, of which the first is small. Bits do not depend on it.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  std::int64_t bucket_cap_bytes = std::int64_t{25} << 20;
  bool overlap = true;  ///< while backward goes on; false: after it
};

}  // namespace accrue::train
