// DataLoader: a data set as a sequence of batches, in a seeded order that depends on the epoch.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/data/collate.h"
#include "accrue/data/dataset.h"
#include "accrue/data/sample_stream.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace accrue::data {

/// Collated samples. Tensors know their sample axis.
struct Batch {
  Tensor inputs;                      ///< field 0
  Tensor labels;                      ///< field 1; undefined when samples have one field
  std::vector<Tensor> others;         ///< further fields
  std::vector<std::int64_t> indices;  ///< of the samples in the data set, in batch order

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
};

/// Tensors of a micro-batch from its samples: field by field, samples in order.
using Collate = std::function<std::vector<Tensor>(std::span<const Sample>)>;

/// The batch of `samples`, at least one.
/// Errors: ShapeError when collate loses samples, ValueError when it returns no tensor; what
/// collate throws.
Batch collate_batch(const Collate& collate, std::span<const Sample> samples);

/// So that windows can be numbered through all epochs in 64 bits.
inline constexpr std::int64_t kMaxEpoch = (std::int64_t{1} << 31) - 1;

struct DataLoaderOptions {
  std::int64_t batch_size = 1;             ///< samples
  bool shuffle = false;                    ///< order of epoch e: randperm seeded with seed + e
  std::optional<std::uint64_t> seed = {};  ///< default: initial_seed() of the default generator
  bool drop_last = false;                  ///< drop a batch of fewer than batch_size samples
  Collate collate = default_collate;
};

/// Batches of one process: `for (const auto& batch : loader)` is one pass over one epoch.
///
/// Holds a share of the data set. Each pass keeps its own place, so passes may be nested or left
/// early. A pass that reaches its end advances epoch() by one; one that is left early does not, and
/// the next pass starts the same epoch again.
/// Threads: order() and load() may be called at once if the data set and collate allow it.
/// Lifetime: a pass borrows the loader.
class DataLoader {
 public:
  class Iterator;

  /// Errors: ValueError for no data set, batch_size < 1, and drop_last that leaves no batch.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  /// Takes the data set by value: DataLoader loader(TensorDataset({x, y}), {.batch_size = 4}).
  template <std::derived_from<Dataset> D>
  explicit DataLoader(D dataset, DataLoaderOptions options = {})
      : DataLoader(std::make_shared<const D>(std::move(dataset)), std::move(options)) {}

  const Dataset& dataset() const { return *dataset_; }
  /// `seed` and `collate` hold what is used.
  const DataLoaderOptions& options() const { return options_; }
  /// Batches of one pass.
  std::int64_t size() const;

  /// The epoch that the next pass walks.
  std::int64_t epoch() const { return epoch_; }
  /// Errors: ValueError outside [0, kMaxEpoch].
  void set_epoch(std::int64_t epoch);
  /// Indices of the data set in the order of an epoch (contract 17).
  std::vector<std::int64_t> order(std::int64_t epoch) const;

  /// Reads and collates samples. No indices give tensors of 0 samples, shaped as sample 0.
  /// Errors: IndexError outside the data set; StateError for a batch from an empty data set; Error
  /// naming the sample when the data set throws (std::rethrow_if_nested gives the original);
  /// ShapeError when collate loses samples; what collate throws.
  Batch load(std::span<const std::int64_t> indices) const;

  /// One sample. Errors: as load().
  Sample read(std::int64_t index) const;
  /// The samples of the epoch, in its order. Lifetime: borrows the loader.
  std::unique_ptr<SampleStream> open() const;

  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  DataLoaderOptions options_;
  std::int64_t epoch_ = 0;
};

/// One pass over a DataLoader: an input iterator. Batches load when ++ reaches them; after an
/// exception, ++ tries the same batch again.
class DataLoader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end_; }

 private:
  friend class DataLoader;
  friend class LaterBatches;

  Iterator(DataLoader& loader, std::int64_t first_batch);

  DataLoader* loader_;
  std::vector<std::int64_t> order_;  ///< of this epoch, without dropped samples
  std::size_t next_ = 0;             ///< position of the next sample
  Batch batch_;
  bool at_end_ = false;
};

/// The batches of a loader from one on, with the order, epoch and options of the loader.
/// Lifetime: borrows the loader; a pass that reaches its end advances the loader's epoch.
class LaterBatches {
 public:
  std::int64_t size() const;
  DataLoader::Iterator begin() const { return {*loader_, first_}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  friend LaterBatches skip_first_batches(DataLoader& loader, std::int64_t count);

  LaterBatches(DataLoader& loader, std::int64_t first) : loader_(&loader), first_(first) {}

  DataLoader* loader_;
  std::int64_t first_;
};

/// The loader without its first `count` batches, which are not read: how a run resumes within an
/// epoch. Errors: ValueError for count < 0.
LaterBatches skip_first_batches(DataLoader& loader, std::int64_t count);

}  // namespace accrue::data
