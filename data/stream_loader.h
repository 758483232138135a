// StreamLoader: a data set that can only be walked, as batches which ranks share.
#pragma once

#include "accrue/data/batch_source.h"
#include "accrue/data/rounds.h"

#include <concepts>
#include <memory>
#include <utility>

namespace accrue::data {

/// The batch size, collate and epoch of a stream, as DataLoader has them for samples by index.
/// Threads: belongs to one thread.
class StreamLoader {
 public:
  /// Errors: ValueError for no data set, batch_size < 1, and shuffle: a stream has its own order.
  explicit StreamLoader(std::shared_ptr<const IterableDataset> dataset,
                        DataLoaderOptions options = {});
  template <std::derived_from<IterableDataset> D>
  explicit StreamLoader(D dataset, DataLoaderOptions options = {})
      : StreamLoader(std::make_shared<const D>(std::move(dataset)), std::move(options)) {}

  const DataLoaderOptions& options() const { return options_; }
  /// The epoch that the next pass walks.
  std::int64_t epoch() const { return epoch_; }
  /// Errors: ValueError outside [0, kMaxEpoch].
  void set_epoch(std::int64_t epoch);
  /// The samples of that epoch, numbered from 0.
  std::unique_ptr<SampleStream> open() const;

 private:
  std::shared_ptr<const IterableDataset> dataset_;
  DataLoaderOptions options_;
  std::int64_t epoch_ = 0;
};

/// One pass of one rank, which walks the whole stream and keeps its slice of every b * W samples,
/// of b with split_batches: Accelerate's IterableDatasetShard. A short tail is filled up with the
/// first samples or dropped; one rank gets it as it is. Unlike upstream the remainder is known.
/// Lifetime: borrows the loader.
class StreamShard final : public BatchSource {
 public:
  /// Of `options`, batch_size and drop_last are the loader's. Errors: as RoundReader.
  StreamShard(StreamLoader& loader, ShardOptions options);

  /// Errors: what the stream and collate throw.
  std::optional<DealtBatch> next() override;

 private:
  StreamLoader* loader_;
  int rank_, world_size_;
  RoundReader rounds_;
};

}  // namespace accrue::data
