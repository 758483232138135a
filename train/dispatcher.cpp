#include "accrue/train/dispatcher.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace accrue::train {
namespace {

/// Numbers from rank 0, as many as it has.
std::vector<std::int64_t> broadcast(dist::ProcessGroup& group, std::vector<std::int64_t> numbers) {
  Tensor count = Tensor::from(std::vector<std::int64_t>{std::ssize(numbers)}, {1});
  group.broadcast(count);
  numbers.resize(static_cast<std::size_t>(count.item<std::int64_t>()));
  if (numbers.empty()) return numbers;
  Tensor tensor = Tensor::from(numbers, {std::ssize(numbers)});
  group.broadcast(tensor);
  return tensor.to_vector<std::int64_t>();
}

std::vector<Tensor*> fields_of(data::Batch& batch) {
  std::vector<Tensor*> fields{&batch.inputs};
  if (batch.labels.defined()) fields.push_back(&batch.labels);
  for (Tensor& field : batch.others) fields.push_back(&field);
  return fields;
}

/// What all must know before tensors move.
std::vector<std::int64_t> header_of(const data::Round& round, data::Batch& batch) {
  const std::vector<Tensor*> fields = fields_of(batch);
  std::vector<std::int64_t> header = {
      round.num_real, round.is_last, std::ssize(batch.indices), std::ssize(fields)};
  header.insert(header.end(), batch.indices.begin(), batch.indices.end());
  for (const Tensor* field : fields) {
    const SampleAxis axis = field->sample_axis();
    header.insert(header.end(),
                  {static_cast<std::int64_t>(field->dtype()), axis.dim, axis.rows, field->rank()});
    for (int dim = 0; dim < field->rank(); ++dim) header.push_back(field->size(dim));
  }
  return header;
}

/// A batch of tensors to receive, in the order of header_of().
data::Batch batch_for(std::span<const std::int64_t> header) {
  const auto take = [&](std::size_t count) {
    const auto numbers = header.first(count);
    header = header.subspan(count);
    return numbers;
  };
  const std::span<const std::int64_t> counts = take(4);
  const auto indices = take(static_cast<std::size_t>(counts[2]));
  data::Batch batch;
  batch.indices.assign(indices.begin(), indices.end());
  for (std::int64_t i = 0; i < counts[3]; ++i) {
    const auto kind = take(4);
    const Shape shape(take(static_cast<std::size_t>(kind[3])));
    Tensor field = Tensor::empty(shape, static_cast<DType>(kind[0]))
                       .with_sample_axis({static_cast<int>(kind[1]), kind[2]});
    if (i == 0) batch.inputs = field;
    if (i == 1) batch.labels = field;
    if (i > 1) batch.others.push_back(field);
  }
  return batch;
}

void keep_slice(data::Batch& batch, std::int64_t rank, std::int64_t each) {
  const auto begin = batch.indices.begin() + rank * each;
  batch.indices = std::vector<std::int64_t>(begin, begin + each);
  for (Tensor* field : fields_of(batch)) {
    if (field->rank() == 0) continue;
    SampleAxis axis = field->sample_axis();
    const int dim = axis.known() ? axis.dim : 0;
    const std::int64_t rows = axis.known() ? std::max<std::int64_t>(axis.rows, 0) : 1;
    const Tensor slice = field->narrow(dim, rank * each * rows, each * rows).contiguous();
    if (axis.rows < 0) axis.rows = -each;
    *field = slice.with_sample_axis(axis);
  }
}

}  // namespace

std::optional<data::DealtBatch> deal_round(dist::ProcessGroup& group,
                                           const std::optional<data::Round>& round,
                                           const data::Collate& collate) {
  data::DealtBatch dealt;
  std::vector<std::int64_t> header;
  const bool reads = group.rank() == 0;
  if (reads && round) {
    dealt.batch = collate_batch(collate, round->samples);
    header = header_of(*round, dealt.batch);
  }
  header = broadcast(group, std::move(header));
  if (header.empty()) return std::nullopt;
  dealt.is_last = header[1] != 0;
  dealt.remainder = dealt.is_last ? header[0] : 0;
  if (!reads) dealt.batch = batch_for(header);
  for (Tensor* field : fields_of(dealt.batch)) group.broadcast(*field);
  keep_slice(dealt.batch, group.rank(), header[2] / group.size());
  return dealt;
}

}  // namespace accrue::train
