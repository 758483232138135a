#include "accrue/data/data_loader.h"

#include "accrue/core/error.h"
#include "accrue/core/generator.h"

#include <algorithm>
#include <exception>
#include <numeric>

namespace accrue::data {
namespace {

constexpr const char* kName = "data_loader";

/// The same field for 0 samples.
Tensor without_samples(const Tensor& field) {
  if (field.rank() == 0) return field;
  SampleAxis axis = field.sample_axis();
  if (axis.rows < 0) axis.rows = 1;
  Shape shape = field.shape();
  shape[axis.known() ? axis.dim : 0] = 0;
  return Tensor::empty(shape, field.dtype(), field.device()).with_sample_axis(axis);
}

void check_collated(const std::vector<Tensor>& fields, std::int64_t num_samples) {
  ACCRUE_CHECK(!fields.empty(), ValueError, kName, "collate must return a tensor, got none");
  for (const Tensor& field : fields) {
    const SampleAxis axis = field.sample_axis();
    ACCRUE_CHECK(!axis.known() || (axis.rows < 0 ? axis.rows == -num_samples
                                                 : field.size(axis.dim) == num_samples * axis.rows),
                 ShapeError,
                 kName,
                 "collate must keep all samples, got shape ",
                 field.shape(),
                 " for ",
                 num_samples,
                 " samples of ",
                 axis.rows,
                 " rows in dimension ",
                 axis.dim);
  }
}

class OrderedStream final : public SampleStream {
 public:
  explicit OrderedStream(const DataLoader& loader)
      : loader_(&loader), order_(loader.order(loader.epoch())) {}
  std::optional<Sample> next() override {
    if (next_ == order_.size()) return std::nullopt;
    return loader_->read(order_[next_++]);
  }

 private:
  const DataLoader* loader_;
  std::vector<std::int64_t> order_;
  std::size_t next_ = 0;
};

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  ACCRUE_CHECK(dataset_ != nullptr, ValueError, kName, "a data set must be given, got none");
  const std::int64_t b = options_.batch_size;
  ACCRUE_CHECK(b >= 1, ValueError, kName, "batch_size must be >= 1, got ", b);
  const std::int64_t n = dataset_->size();
  ACCRUE_CHECK(!options_.drop_last || n == 0 || n >= b,
               ValueError,
               kName,
               "drop_last must leave a batch, got ",
               n,
               " samples for batch_size ",
               b,
               "; use batch_size <= ",
               n,
               " or drop_last = false");
  if (!options_.seed) options_.seed = default_generator().initial_seed();
  if (!options_.collate) options_.collate = default_collate;
}

std::int64_t DataLoader::size() const {
  const std::int64_t n = dataset_->size();
  const bool has_short_batch = n % options_.batch_size != 0 && !options_.drop_last;
  return n / options_.batch_size + has_short_batch;
}

void DataLoader::set_epoch(std::int64_t epoch) {
  ACCRUE_CHECK(epoch >= 0 && epoch <= kMaxEpoch,
               ValueError,
               kName,
               "epoch must lie in [0, 2^31 - 1], got ",
               epoch);
  epoch_ = epoch;
}

std::vector<std::int64_t> DataLoader::order(std::int64_t epoch) const {
  const std::int64_t n = dataset_->size();
  if (options_.shuffle) {
    return Generator(*options_.seed + static_cast<std::uint64_t>(epoch)).randperm(n);
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(n));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

Sample DataLoader::read(std::int64_t index) const {
  const std::int64_t n = dataset_->size();
  ACCRUE_CHECK(
      index >= 0 && index < n, IndexError, kName, "indices must lie in [0, ", n, "), got ", index);
  try {
    Sample sample = dataset_->get(index);
    sample.index = index;
    return sample;
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(text(
        "[", kName, "] every sample must be readable, got at sample ", index, ": ", error.what())));
  }
}

Batch DataLoader::load(std::span<const std::int64_t> indices) const {
  ACCRUE_CHECK(!indices.empty() || dataset_->size() > 0,
               StateError,
               kName,
               "a batch needs a data set with samples, got an empty one");
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const std::int64_t index : indices) samples.push_back(read(index));
  if (indices.empty()) samples.push_back(read(0));

  Batch batch = collate_batch(options_.collate, samples);
  if (!indices.empty()) return batch;
  batch.inputs = without_samples(batch.inputs);
  if (batch.labels.defined()) batch.labels = without_samples(batch.labels);
  for (Tensor& field : batch.others) field = without_samples(field);
  batch.indices.clear();
  return batch;
}

Batch collate_batch(const Collate& collate, std::span<const Sample> samples) {
  std::vector<Tensor> fields = collate(samples);
  check_collated(fields, std::ssize(samples));
  Batch batch;
  batch.inputs = fields[0];
  if (fields.size() > 1) batch.labels = fields[1];
  if (fields.size() > 2) batch.others.assign(fields.begin() + 2, fields.end());
  for (const Sample& sample : samples) batch.indices.push_back(sample.index);
  return batch;
}

std::unique_ptr<SampleStream> DataLoader::open() const {
  return std::make_unique<OrderedStream>(*this);
}

// ---- passes ----

DataLoader::Iterator DataLoader::begin() { return {*this, 0}; }

DataLoader::Iterator::Iterator(DataLoader& loader, std::int64_t first_batch)
    : loader_(&loader), order_(loader.order(loader.epoch_)) {
  const auto b = static_cast<std::size_t>(loader.options_.batch_size);
  if (loader.options_.drop_last) order_.resize(order_.size() / b * b);
  const bool skips_all = first_batch >= loader.size();
  next_ = skips_all ? order_.size() : static_cast<std::size_t>(first_batch) * b;
  ++*this;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (at_end_) return *this;
  const std::span<const std::int64_t> rest = std::span(order_).subspan(next_);
  if (rest.empty()) {
    at_end_ = true;
    batch_ = {};
    loader_->set_epoch(loader_->epoch() + 1);
    return *this;
  }
  const auto b = static_cast<std::size_t>(loader_->options_.batch_size);
  const std::size_t count = std::min(b, rest.size());
  batch_ = loader_->load(rest.first(count));
  next_ += count;
  return *this;
}

std::int64_t LaterBatches::size() const {
  return std::max<std::int64_t>(loader_->size() - first_, 0);
}

LaterBatches skip_first_batches(DataLoader& loader, std::int64_t count) {
  ACCRUE_CHECK(count >= 0,
               ValueError,
               "skip_first_batches",
               "the number of batches must be >= 0, got ",
               count);
  return {loader, count};
}

}  // namespace accrue::data
