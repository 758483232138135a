#include "accrue/train/batch_sources.h"

#include "accrue/data/sharded_loader.h"
#include "accrue/train/dispatcher.h"

#include <algorithm>
#include <utility>

namespace accrue::train {
namespace {

data::ShardOptions shard_options(const dist::ProcessGroup& group,
                                 const DataLoaderConfiguration& config) {
  return {.rank = group.rank(),
          .world_size = group.size(),
          .split_batches = config.split_batches,
          .even_batches = config.even_batches};
}

/// A pass over a ShardedLoader.
class ShardedSource final : public data::BatchSource {
 public:
  explicit ShardedSource(const data::ShardedLoader& shards) : shards_(shards) {}

  std::optional<data::DealtBatch> next() override {
    it_ ? ++*it_ : it_.emplace(shards_.begin());
    if (*it_ == shards_.end()) return std::nullopt;
    return data::DealtBatch{**it_, it_->is_last(), std::max<std::int64_t>(shards_.remainder(), 0)};
  }

 private:
  data::ShardedLoader shards_;
  std::optional<data::ShardedLoader::Iterator> it_;
};

/// A pass in which rank 0 reads for all.
template <class LoaderType>
class DispatchedSource final : public data::BatchSource {
 public:
  DispatchedSource(dist::ProcessGroup& group, LoaderType& loader, data::ShardOptions options)
      : group_(&group), loader_(&loader) {
    options.batch_size = loader.options().batch_size;
    options.drop_last = loader.options().drop_last;
    check_shard_options("dispatch_batches", options);
    if (group.rank() == 0) rounds_.emplace(loader.open(), options, data::ShortRound::even);
  }

  std::optional<data::DealtBatch> next() override {
    auto dealt =
        deal_round(*group_, rounds_ ? rounds_->next() : std::nullopt, loader_->options().collate);
    if (!dealt) loader_->set_epoch(loader_->epoch() + 1);
    return dealt;
  }

 private:
  dist::ProcessGroup* group_;
  LoaderType* loader_;
  std::optional<data::RoundReader> rounds_;  ///< on rank 0
};

/// `source` after its first batches, which are read.
std::unique_ptr<data::BatchSource> without_first(std::unique_ptr<data::BatchSource> source,
                                                 std::int64_t skip) {
  while (skip-- > 0 && source->next()) continue;
  return source;
}

}  // namespace

std::unique_ptr<data::BatchSource> open_source(dist::ProcessGroup& group,
                                               data::DataLoader& loader,
                                               const DataLoaderConfiguration& config,
                                               std::int64_t skip) {
  const data::ShardOptions options = shard_options(group, config);
  if (!config.dispatch_batches.value_or(false)) {
    const data::ShardedLoader shards(loader, options);
    return std::make_unique<ShardedSource>(skip_first_batches(shards, skip));
  }
  return without_first(std::make_unique<DispatchedSource<data::DataLoader>>(group, loader, options),
                       skip);
}

std::unique_ptr<data::BatchSource> open_source(dist::ProcessGroup& group,
                                               data::StreamLoader& loader,
                                               const DataLoaderConfiguration& config,
                                               std::int64_t skip) {
  const data::ShardOptions options = shard_options(group, config);
  if (!config.dispatch_batches.value_or(true))
    return without_first(std::make_unique<data::StreamShard>(loader, options), skip);
  using Source = DispatchedSource<data::StreamLoader>;
  return without_first(std::make_unique<Source>(group, loader, options), skip);
}

std::int64_t num_batches(const dist::ProcessGroup& group,
                         data::DataLoader& loader,
                         const DataLoaderConfiguration& config) {
  const data::ShardOptions options = shard_options(group, config);
  if (!config.dispatch_batches.value_or(false)) return data::ShardedLoader(loader, options).size();
  const std::int64_t size = loader.options().batch_size * (config.split_batches ? 1 : group.size());
  const std::int64_t count = loader.dataset().size();
  return count / size + (count % size != 0 && !loader.options().drop_last);
}

}  // namespace accrue::train
