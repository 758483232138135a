#include "accrue/data/stream_loader.h"

#include "accrue/core/error.h"

namespace accrue::data {
namespace {

constexpr const char* kName = "stream_loader";

class NumberedStream final : public SampleStream {
 public:
  explicit NumberedStream(std::unique_ptr<SampleStream> stream) : stream_(std::move(stream)) {}
  std::optional<Sample> next() override {
    std::optional<Sample> sample = stream_->next();
    if (sample) sample->index = count_++;
    return sample;
  }

 private:
  std::unique_ptr<SampleStream> stream_;
  std::int64_t count_ = 0;
};

RoundReader rounds_of(const StreamLoader& loader, ShardOptions options) {
  options.batch_size = loader.options().batch_size;
  options.drop_last = loader.options().drop_last;
  return {loader.open(), options, options.world_size == 1 ? ShortRound::even : ShortRound::fill};
}

}  // namespace

StreamLoader::StreamLoader(std::shared_ptr<const IterableDataset> dataset,
                           DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  ACCRUE_CHECK(dataset_, ValueError, kName, "a data set must be given, got none");
  ACCRUE_CHECK(options_.batch_size >= 1,
               ValueError,
               kName,
               "batch_size must be >= 1, got ",
               options_.batch_size);
  ACCRUE_CHECK(!options_.shuffle,
               ValueError,
               kName,
               "a stream has its own order, got shuffle = true; shuffle in the data set");
}

void StreamLoader::set_epoch(std::int64_t epoch) {
  ACCRUE_CHECK(epoch >= 0 && epoch <= kMaxEpoch,
               ValueError,
               kName,
               "epoch must lie in [0, 2^31 - 1], got ",
               epoch);
  epoch_ = epoch;
}

std::unique_ptr<SampleStream> StreamLoader::open() const {
  return std::make_unique<NumberedStream>(dataset_->open(epoch_));
}

StreamShard::StreamShard(StreamLoader& loader, ShardOptions options)
    : loader_(&loader),
      rank_(options.rank),
      world_size_(options.world_size),
      rounds_(rounds_of(loader, options)) {}

std::optional<DealtBatch> StreamShard::next() {
  const std::optional<Round> round = rounds_.next();
  if (!round) {
    loader_->set_epoch(loader_->epoch() + 1);
    return std::nullopt;
  }
  const std::size_t each = round->samples.size() / static_cast<std::size_t>(world_size_);
  const std::span<const Sample> all(round->samples);
  DealtBatch dealt{
      .batch = collate_batch(loader_->options().collate,
                             all.subspan(each * static_cast<std::size_t>(rank_), each)),
      .is_last = round->is_last};
  if (round->is_last) dealt.remainder = round->num_real;
  return dealt;
}

}  // namespace accrue::data
