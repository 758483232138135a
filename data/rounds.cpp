#include "accrue/data/rounds.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <utility>

namespace accrue::data {
namespace {

std::int64_t checked_round_size(const ShardOptions& options) {
  check_shard_options("rounds", options);
  ACCRUE_CHECK(
      options.batch_size.has_value(), ValueError, "rounds", "batch_size must be given, got none");
  return *options.batch_size * (options.split_batches ? 1 : options.world_size);
}

}  // namespace

RoundReader::RoundReader(std::unique_ptr<SampleStream> stream,
                         const ShardOptions& options,
                         ShortRound tail)
    : stream_(std::move(stream)),
      world_size_(options.world_size),
      round_size_(checked_round_size(options)),
      drop_last_(options.drop_last),
      tail_(tail) {
  read_ahead();
  const std::int64_t kept = tail_ == ShortRound::fill ? round_size_ : world_size_;
  const std::ptrdiff_t num_fillers = std::min(kept, std::ssize(ahead_));
  first_.assign(ahead_.begin(), ahead_.begin() + num_fillers);
}

void RoundReader::read_ahead() {
  ahead_.clear();
  while (std::ssize(ahead_) < round_size_) {
    std::optional<Sample> sample = stream_->next();
    if (!sample) break;
    ahead_.push_back(std::move(*sample));
  }
  if (drop_last_ && std::ssize(ahead_) < round_size_) ahead_.clear();
}

std::optional<Round> RoundReader::next() {
  if (ahead_.empty()) return std::nullopt;
  Round round{.samples = std::exchange(ahead_, {})};
  round.num_real = std::ssize(round.samples);
  if (round.num_real == round_size_) read_ahead();
  round.is_last = ahead_.empty();
  const std::int64_t slices = (round.num_real + world_size_ - 1) / world_size_;
  const std::int64_t size = tail_ == ShortRound::fill ? round_size_ : slices * world_size_;
  for (std::size_t i = 0; std::ssize(round.samples) < size; ++i)
    round.samples.push_back(first_[i % first_.size()]);
  return round;
}

}  // namespace accrue::data
