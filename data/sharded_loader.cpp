#include "accrue/data/sharded_loader.h"

#include "accrue/core/error.h"

#include <algorithm>

namespace accrue::data {

ShardedLoader::ShardedLoader(DataLoader& loader, ShardOptions options)
    : loader_(&loader), options_(options) {
  options_.batch_size = loader.options().batch_size;
  options_.drop_last = loader.options().drop_last;
  (void)batch_sampler_shard({}, options_);  // throws for options that do not fit together
}

std::vector<IndexBatch> ShardedLoader::shard() const {
  const std::vector<std::int64_t> order = loader_->order(loader_->epoch());
  std::vector<IndexBatch> batches = cut_batches(order, *options_.batch_size, options_.drop_last);
  if (options_.world_size > 1) batches = batch_sampler_shard(batches, options_);
  batches.erase(batches.begin(), batches.begin() + std::min(first_, std::ssize(batches)));
  return batches;
}

ShardedLoader::Iterator ShardedLoader::begin() { return Iterator(*this); }

ShardedLoader::Iterator::Iterator(ShardedLoader& shards)
    : shards_(&shards), batches_(shards.shard()) {
  ++*this;
}

ShardedLoader::Iterator& ShardedLoader::Iterator::operator++() {
  if (at_end_) return *this;
  shards_->remainder_ = 0;
  DataLoader& loader = *shards_->loader_;
  if (next_ == batches_.size()) {
    at_end_ = true;
    batch_ = {};
    loader.set_epoch(loader.epoch() + 1);
    return *this;
  }
  batch_ = loader.load(batches_[next_]);
  if (++next_ == batches_.size())
    shards_->remainder_ = shard_remainder(loader.dataset().size(), shards_->options_);
  return *this;
}

ShardedLoader skip_first_batches(const ShardedLoader& loader, std::int64_t count) {
  ACCRUE_CHECK(count >= 0,
               ValueError,
               "skip_first_batches",
               "the number of batches must be >= 0, got ",
               count);
  ShardedLoader later = loader;
  later.first_ += std::min(count, INT64_MAX - later.first_);
  later.remainder_ = 0;
  return later;
}

}  // namespace accrue::data
