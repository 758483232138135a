// RoundReader: a stream of samples in rounds that W ranks share.
#pragma once

#include "accrue/data/sample_stream.h"
#include "accrue/data/shards.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace accrue::data {

/// One slice of equal size for each rank.
struct Round {
  std::vector<Sample> samples;
  std::int64_t num_real = 0;  ///< samples that come first; the others repeat those of round 0
  bool is_last = false;
};

/// What becomes of a last round that is short, unless drop_last drops it.
enum class ShortRound : std::uint8_t {
  fill,  ///< filled up to full slices: Accelerate's IterableDatasetShard
  even,  ///< cut as evenly as it can be: Accelerate's DataLoaderDispatcher
};

/// Reads rounds of b * W samples, of b with split_batches; even_batches has no meaning here.
/// Fillers are the first samples of the walk, all of round 0 or W of them, as often as needed.
class RoundReader {
 public:
  /// Reads a round ahead, to know the last one.
  /// Errors: ValueError as batch_sampler_shard, and without batch_size; what the stream throws.
  RoundReader(std::unique_ptr<SampleStream> stream, const ShardOptions& options, ShortRound tail);

  /// None at the end.
  std::optional<Round> next();

 private:
  void read_ahead();

  std::unique_ptr<SampleStream> stream_;
  std::int64_t world_size_, round_size_;
  bool drop_last_;
  ShortRound tail_;
  std::vector<Sample> first_;  ///< fillers
  std::vector<Sample> ahead_;  ///< the next round, as it came
};

}  // namespace accrue::data
