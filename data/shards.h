// Shards: which samples of an epoch each rank reads when they are dealt as Accelerate deals them.
// The trainer's own dealing, without duplicates, is data/window_plan.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace accrue::data {

/// Indices of the samples of one batch.
using IndexBatch = std::vector<std::int64_t>;

struct ShardOptions {
  int rank = 0;
  int world_size = 1;                           ///< W
  std::optional<std::int64_t> batch_size = {};  ///< b; none: every batch has a size of its own
  bool split_batches = false;  ///< ranks share every batch, instead of taking W batches in turn
  bool even_batches = true;    ///< fill the last round with samples of the first
  bool drop_last = false;      ///< drop what does not give every rank a full batch
};

/// Errors: ValueError, of `operation`, for a rank outside [0, W), batch_size < 1, and batches to
/// split without batch_size or with one that is no multiple of W.
void check_shard_options(const char* operation, const ShardOptions& options);

/// An epoch's order as batches of `batch_size`; the last may be shorter, unless it is dropped.
/// Errors: ValueError for batch_size < 1.
std::vector<IndexBatch> cut_batches(std::span<const std::int64_t> order,
                                    std::int64_t batch_size,
                                    bool drop_last = false);

/// The batches of one rank: Accelerate's BatchSamplerShard.
///
/// Rank r takes batch r of every W, or slice r of every batch. A last round that is not full goes
/// out as it is, filled up, or not at all, as the options say.
/// Errors:  ValueError for a rank outside [0, W), an empty batch, a batch of other than b samples
///          before the last, and batches to split whose b is no multiple of W.
std::vector<IndexBatch> batch_sampler_shard(std::span<const IndexBatch> batches,
                                            const ShardOptions& options);

/// How many samples gather_for_metrics() keeps of the last batches of all ranks: `num_samples`
/// modulo the samples of a full round. 0 and, with drop_last, -1 keep all.
std::int64_t shard_remainder(std::int64_t num_samples, const ShardOptions& options);

}  // namespace accrue::data
