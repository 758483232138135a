#include "accrue/data/shards.h"

#include "accrue/core/error.h"

#include <algorithm>

namespace accrue::data {
namespace {

void check_batches(const char* name, std::span<const IndexBatch> batches, const ShardOptions& o) {
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto size = static_cast<std::int64_t>(batches[i].size());
    const bool is_last = i + 1 == batches.size();
    const bool fits = !o.batch_size || size == *o.batch_size || (is_last && size < *o.batch_size);
    ACCRUE_CHECK(size > 0 && fits,
                 ValueError,
                 name,
                 "batches must be full and the last not empty, got ",
                 size,
                 " samples in batch ",
                 i);
  }
}

IndexBatch join(std::span<const IndexBatch> batches) {
  IndexBatch all;
  for (const IndexBatch& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

/// Extends `batch` to `size` by repeating `filler`.
void fill(IndexBatch& batch, const IndexBatch& filler, std::size_t size) {
  for (std::size_t i = 0; batch.size() < size; ++i) batch.push_back(filler[i % filler.size()]);
}

/// Piece `rank` of pieces of `size`; shorter or empty where the batch ends.
IndexBatch slice(const IndexBatch& batch, std::size_t rank, std::size_t size) {
  const std::size_t begin = std::min(rank * size, batch.size());
  const std::size_t end = std::min(begin + size, batch.size());
  return {batch.begin() + static_cast<std::ptrdiff_t>(begin),
          batch.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Slice r of every batch.
std::vector<IndexBatch> split(std::span<const IndexBatch> batches, const ShardOptions& o) {
  const auto b = static_cast<std::size_t>(*o.batch_size);
  const auto rank = static_cast<std::size_t>(o.rank);
  const std::size_t each = b / static_cast<std::size_t>(o.world_size);
  std::vector<IndexBatch> result;
  for (const IndexBatch& batch : batches) {
    const bool is_short = batch.size() < b;
    if (is_short && o.drop_last) break;
    IndexBatch whole = batch;
    if (is_short && o.even_batches) fill(whole, batches.front(), b);
    IndexBatch mine = slice(whole, rank, each);
    if (!mine.empty()) result.push_back(std::move(mine));
  }
  return result;
}

/// What rank r gets of the last round, which is not full.
IndexBatch from_last_round(std::span<const IndexBatch> batches,
                           std::span<const IndexBatch> round,
                           const ShardOptions& o) {
  const auto rank = static_cast<std::size_t>(o.rank);
  const auto size = static_cast<std::size_t>(o.world_size);
  const std::span<const IndexBatch> first = batches.first(std::min(size, batches.size()));
  if (o.even_batches && o.batch_size) {
    const auto b = static_cast<std::size_t>(*o.batch_size);
    IndexBatch whole = join(round);
    fill(whole, join(first), size * b);
    return slice(whole, rank, b);
  }
  if (rank < round.size()) return round[rank];
  return o.even_batches ? first[(rank - round.size()) % first.size()] : IndexBatch();
}

/// Batch r of every W.
std::vector<IndexBatch> take_turns(std::span<const IndexBatch> batches, const ShardOptions& o) {
  const auto size = static_cast<std::size_t>(o.world_size);
  std::size_t rounds = batches.size() / size;
  const bool is_short =
      o.batch_size && !batches.empty() && std::ssize(batches.back()) < *o.batch_size;
  if (is_short && batches.size() % size == 0) --rounds;
  std::vector<IndexBatch> result;
  for (std::size_t i = 0; i < rounds; ++i) {
    result.push_back(batches[i * size + static_cast<std::size_t>(o.rank)]);
  }
  const std::span<const IndexBatch> rest = batches.subspan(rounds * size);
  if (rest.empty() || o.drop_last) return result;
  IndexBatch last = from_last_round(batches, rest, o);
  if (!last.empty()) result.push_back(std::move(last));
  return result;
}

}  // namespace

void check_shard_options(const char* operation, const ShardOptions& o) {
  ACCRUE_CHECK(o.rank >= 0 && o.rank < o.world_size,
               ValueError,
               operation,
               "the rank must lie in [0, ",
               o.world_size,
               "), got ",
               o.rank);
  ACCRUE_CHECK(!o.batch_size || *o.batch_size >= 1,
               ValueError,
               operation,
               "batch_size must be >= 1, got ",
               o.batch_size.value_or(0));
  if (!o.split_batches) return;
  ACCRUE_CHECK(o.batch_size.has_value(),
               ValueError,
               operation,
               "batches to split must have the same size, got no batch_size; give it or leave out "
               "split_batches");
  ACCRUE_CHECK(*o.batch_size % o.world_size == 0,
               ValueError,
               operation,
               "batch_size must be a multiple of the number of ranks, got ",
               *o.batch_size,
               " for ",
               o.world_size,
               " ranks; change it or leave out split_batches");
}

std::vector<IndexBatch> cut_batches(std::span<const std::int64_t> order,
                                    std::int64_t batch_size,
                                    bool drop_last) {
  ACCRUE_CHECK(
      batch_size >= 1, ValueError, "cut_batches", "batch_size must be >= 1, got ", batch_size);
  const auto b = static_cast<std::size_t>(batch_size);
  std::vector<IndexBatch> batches;
  for (; !order.empty(); order = order.subspan(batches.back().size())) {
    const auto batch = order.first(std::min(b, order.size()));
    if (drop_last && batch.size() < b) break;
    batches.emplace_back(batch.begin(), batch.end());
  }
  return batches;
}

std::vector<IndexBatch> batch_sampler_shard(std::span<const IndexBatch> batches,
                                            const ShardOptions& options) {
  check_shard_options("batch_sampler_shard", options);
  check_batches("batch_sampler_shard", batches, options);
  return options.split_batches ? split(batches, options) : take_turns(batches, options);
}

std::int64_t shard_remainder(std::int64_t num_samples, const ShardOptions& options) {
  check_shard_options("shard_remainder", options);
  if (options.drop_last || !options.batch_size) return -1;
  return num_samples % (*options.batch_size * (options.split_batches ? 1 : options.world_size));
}

}  // namespace accrue::data
