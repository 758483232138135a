#include "accrue/data/collate.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cstddef>

namespace accrue::data {
namespace {

constexpr const char* kDefault = "default_collate";
constexpr const char* kPad = "pad_collate";

/// One tensor of a micro-batch and the sample it comes from, for error messages.
struct Entry {
  Tensor tensor;
  std::int64_t sample = 0;
};

std::size_t count_fields(std::span<const Sample> samples, const char* operation) {
  ACCRUE_CHECK(!samples.empty(), ValueError, operation, "at least one sample is needed, got none");
  const std::size_t num_fields = samples.front().fields.size();
  ACCRUE_CHECK(num_fields > 0,
               ValueError,
               operation,
               "a sample must have at least one field, got none at sample ",
               samples.front().index);
  for (const Sample& sample : samples) {
    ACCRUE_CHECK(sample.fields.size() == num_fields,
                 ShapeError,
                 operation,
                 "samples must have equally many fields, got ",
                 num_fields,
                 " at sample ",
                 samples.front().index,
                 " and ",
                 sample.fields.size(),
                 " at sample ",
                 sample.index);
  }
  return num_fields;
}

std::vector<Entry> entries_of(std::span<const Sample> samples,
                              std::size_t field,
                              const char* operation) {
  std::vector<Entry> entries;
  entries.reserve(samples.size());
  for (const Sample& sample : samples) {
    ACCRUE_CHECK(sample.fields[field].defined(),
                 StateError,
                 operation,
                 "fields must be defined tensors, got a default-constructed one as field ",
                 field,
                 " of sample ",
                 sample.index);
    entries.push_back({sample.fields[field], sample.index});
  }
  return entries;
}

/// Dtypes, ranks and sizes agree, up to sizes of dimensions before `first_dim`.
void check_agreement(std::span<const Entry> entries, int first_dim, const char* operation) {
  const Entry& first = entries.front();
  const Shape& shape = first.tensor.shape();
  for (const Entry& entry : entries) {
    const Shape& other = entry.tensor.shape();
    const bool same_rank = other.rank() == shape.rank();
    ACCRUE_CHECK(
        same_rank && std::equal(shape.begin() + first_dim, shape.end(), other.begin() + first_dim),
        ShapeError,
        operation,
        first_dim == 0 ? "shapes must agree, got "
                       : "shapes must agree except in the first dimension, got ",
        shape,
        " at sample ",
        first.sample,
        " and ",
        other,
        " at sample ",
        entry.sample,
        first_dim == 0 && same_rank ? "; PadCollate joins sequences of unequal length" : "");
    ACCRUE_CHECK(entry.tensor.dtype() == first.tensor.dtype(),
                 DTypeError,
                 operation,
                 "dtypes must agree, got ",
                 first.tensor.dtype(),
                 " at sample ",
                 first.sample,
                 " and ",
                 entry.tensor.dtype(),
                 " at sample ",
                 entry.sample,
                 "; convert with to()");
  }
}

/// A sample is a constant, also where a batch or the marks of one (SampleAxis) made it.
Tensor constant(const Tensor& sample) {
  if (sample.sample_axis() == SampleAxis{}) return sample;
  const Tensor plain = sample.with_sample_axis({});
  return plain.sample_axis().is_mixed() ? sample.clone().with_sample_axis({}) : plain;
}

Tensor stack(std::span<const Entry> entries, const char* operation) {
  check_agreement(entries, 0, operation);
  const Tensor& first = entries.front().tensor;
  Shape shape = first.shape();
  shape.insert(0, static_cast<std::int64_t>(entries.size()));
  Tensor result = Tensor::empty(shape, first.dtype(), first.device());
  std::int64_t i = 0;
  for (const Entry& entry : entries) result.select(0, i++).copy_from(constant(entry.tensor));
  return result.with_sample_axis({0, 1});
}

Tensor pad(std::span<const Entry> entries,
           double padding_value,
           bool batch_first,
           const char* operation) {
  const Tensor& first = entries.front().tensor;
  ACCRUE_CHECK(first.rank() > 0,
               ShapeError,
               operation,
               "a sequence must have a dimension of time, got a scalar at sample ",
               entries.front().sample);
  check_agreement(entries, 1, operation);
  std::int64_t longest = 0;
  for (const Entry& entry : entries) longest = std::max(longest, entry.tensor.size(0));
  const int batch_dim = batch_first ? 0 : 1;
  Shape shape = first.shape();
  shape[0] = longest;
  shape.insert(batch_dim, static_cast<std::int64_t>(entries.size()));
  Tensor result = Tensor::full(shape, padding_value, first.dtype(), first.device());
  std::int64_t i = 0;
  for (const Entry& entry : entries) {
    const Tensor row = result.select(batch_dim, i++);
    row.narrow(0, 0, entry.tensor.size(0)).copy_from(constant(entry.tensor));
  }
  return result.with_sample_axis({batch_dim, 1});
}

}  // namespace

std::vector<Tensor> default_collate(std::span<const Sample> samples) {
  std::vector<Tensor> result(count_fields(samples, kDefault));
  for (std::size_t f = 0; f < result.size(); ++f) {
    result[f] = stack(entries_of(samples, f, kDefault), kDefault);
  }
  return result;
}

Tensor pad_sequence(std::span<const Tensor> sequences, double padding_value, bool batch_first) {
  ACCRUE_CHECK(!sequences.empty(),
               ValueError,
               "pad_sequence",
               "at least one sequence must be given, got none");
  std::vector<Entry> entries;
  entries.reserve(sequences.size());
  for (const Tensor& sequence : sequences) {
    entries.push_back({sequence, static_cast<std::int64_t>(entries.size())});
  }
  return pad(entries, padding_value, batch_first, "pad_sequence");
}

std::vector<Tensor> PadCollate::operator()(std::span<const Sample> samples) const {
  std::vector<Tensor> result(count_fields(samples, kPad));
  for (std::size_t f = 0; f < result.size(); ++f) {
    const std::vector<Entry> entries = entries_of(samples, f, kPad);
    const double value = f < padding_values.size() ? padding_values[f] : 0;
    const bool is_scalar = entries.front().tensor.rank() == 0;
    result[f] = is_scalar ? stack(entries, kPad) : pad(entries, value, true, kPad);
  }
  return result;
}

}  // namespace accrue::data
