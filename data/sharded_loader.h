// ShardedLoader: the batches of one rank from a DataLoader, dealt as Accelerate deals them.
#pragma once

#include "accrue/data/data_loader.h"
#include "accrue/data/shards.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace accrue::data {

/// One pass is one epoch of the loader, whose batch size, order and drop_last decide; a pass that
/// reaches its end advances the loader's epoch. One rank gets the loader's batches as they are.
///
/// With even_batches, the default, all ranks have the same number of batches of the same size, and
/// samples of the first batches appear again in the last: for metrics over gathered batches, which
/// drop them by remainder(). Training by Accelerator::prepare() deals without duplicates.
///
/// Threads: belongs to one thread. Lifetime: borrows the loader; a pass borrows the sharded loader.
class ShardedLoader {
 public:
  class Iterator;

  /// Of `options`, batch_size and drop_last are the loader's.
  /// Errors: ValueError for a rank outside [0, W), or batches that cannot be split.
  ShardedLoader(DataLoader& loader, ShardOptions options);

  const DataLoader& loader() const { return *loader_; }
  const ShardOptions& options() const { return options_; }
  /// Batches of one pass on this rank.
  std::int64_t size() const { return static_cast<std::int64_t>(shard().size()); }
  /// While a pass stands at its last batch: shard_remainder(), how many samples of all ranks' last
  /// batches are no duplicates. Elsewhere 0: all.
  std::int64_t remainder() const { return remainder_; }

  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  friend ShardedLoader skip_first_batches(const ShardedLoader& loader, std::int64_t count);

  /// This rank's batches of the loader's epoch.
  std::vector<IndexBatch> shard() const;

  DataLoader* loader_;
  ShardOptions options_;
  std::int64_t first_ = 0;  ///< batches that passes leave out
  std::int64_t remainder_ = 0;
};

/// One pass: an input iterator. Batches load when ++ reaches them.
class ShardedLoader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }
  Iterator& operator++();
  void operator++(int) { ++*this; }
  /// The pass stands at its last batch.
  bool is_last() const { return !at_end_ && next_ == batches_.size(); }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end_; }

 private:
  friend class ShardedLoader;

  explicit Iterator(ShardedLoader& shards);

  ShardedLoader* shards_;
  std::vector<IndexBatch> batches_;
  std::size_t next_ = 0;
  Batch batch_;
  bool at_end_ = false;
};

/// The loader without the first `count` batches of each rank, which are not read; unlike upstream
/// it still knows its remainder. Errors: ValueError for count < 0.
ShardedLoader skip_first_batches(const ShardedLoader& loader, std::int64_t count);

}  // namespace accrue::data
