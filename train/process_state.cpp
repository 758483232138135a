#include "accrue/train/process_state.h"

#include "accrue/core/error.h"
#include "accrue/dist/world.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace accrue::train {
namespace {

bool has_samples(const Tensor& tensor) { return tensor.sample_axis() != SampleAxis{}; }

/// What ranks told of their tensors.
struct Sizes {
  std::vector<std::int64_t> of;  ///< dimension `dim` of each rank
  bool have_samples = false;     ///< those of any rank

  std::int64_t max() const { return *std::max_element(of.begin(), of.end()); }
};

/// Errors: MismatchError on all ranks unless all but dimension `dim`, `note` too, is alike; where
/// that does not exist, all is.
Sizes sizes_over_ranks(dist::ProcessGroup& group,
                       const char* operation,
                       const Tensor& tensor,
                       int dim,
                       const std::string& note) {
  Shape rest = tensor.shape();
  std::int64_t size = 0;
  if (dim >= 0 && dim < rest.rank()) size = std::exchange(rest[dim], 1);
  const char mark = has_samples(tensor) ? 's' : '-';
  Sizes sizes;
  std::string first;
  for (const std::string& theirs :
       group.all_gather_bytes(text(mark, size, ' ', rest, ' ', tensor.dtype(), note))) {
    const std::size_t at = theirs.find(' ');
    sizes.of.push_back(std::stoll(theirs.substr(1, at - 1)));
    sizes.have_samples |= theirs[0] == 's';
    if (sizes.of.size() == 1) first = theirs.substr(at + 1);
    const std::string other = theirs.substr(at + 1);
    ACCRUE_CHECK(other == first,
                 MismatchError,
                 operation,
                 "all but one size must agree on all ranks, got ",
                 text(first, " on rank 0 and ", other, " on rank ", sizes.of.size() - 1));
  }
  return sizes;
}

void check_rows(const char* operation, const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  ACCRUE_CHECK(
      shape.rank() > 0, ShapeError, operation, "a tensor must have rows, got shape ", shape);
}

/// Collective.
bool any_has_samples(dist::ProcessGroup& group, const Tensor& tensor) {
  Tensor any = Tensor::full({1}, has_samples(tensor), DType::int64);
  group.all_reduce(any, dist::ReduceOp::max);
  return any.item<std::int64_t>() != 0;
}

/// What ranks make of samples together depends on how the samples were dealt.
Tensor mixed_if(bool is_mixed, const Tensor& result) {
  return is_mixed ? result.with_sample_axis(SampleAxis::mixed()) : result;
}

}  // namespace

ProcessState::ProcessState(dist::ProcessGroup* group)
    : owned_(group ? nullptr : dist::world()), group_(group ? group : owned_.get()) {}

void ProcessState::check_process(const char* operation, int index) const {
  ACCRUE_CHECK(index >= 0 && index < num_processes(),
               IndexError,
               operation,
               text("the rank must lie in [0, ", num_processes(), "), got ", index));
}

void ProcessState::wait_for_everyone() const {
  if (num_processes() > 1) group_->barrier();
}

ProcessState::Turn::Turn(const ProcessState& state, bool goes_first)
    : state_(state), goes_first_(goes_first) {
  if (!goes_first_) state_.wait_for_everyone();
}

ProcessState::Turn::~Turn() noexcept(false) {
  if (!goes_first_) return;
  try {
    state_.wait_for_everyone();
  } catch (...) {
    if (std::uncaught_exceptions() == 0) throw;  // else the body's exception tells more
  }
}

Tensor ProcessState::gather(const Tensor& tensor) const {
  if (num_processes() == 1) return tensor;
  const Tensor rows = tensor.rank() == 0 ? tensor.reshape({1}) : tensor;
  Shape shape = rows.shape();
  shape[0] *= num_processes();
  const Tensor all = group_->all_gather(rows.to(Device::cpu())).reshape(shape);
  return mixed_if(any_has_samples(*group_, tensor), all.to(tensor.device()));
}

Tensor ProcessState::gather_rows(const Tensor& tensor) const { return gather_alike(tensor, {}); }

Tensor ProcessState::gather_alike(const Tensor& tensor, const std::string& note) const {
  const Sizes sizes = sizes_over_ranks(*group_, "gather_rows", tensor, 0, note);
  check_rows("gather_rows", tensor);
  if (num_processes() == 1) return tensor;
  Shape row = tensor.shape();
  row[0] = sizes.max();
  Tensor padded = Tensor::zeros(row, tensor.dtype());
  padded.narrow(0, 0, tensor.size(0)).copy_from(tensor);
  const Tensor all = group_->all_gather(padded);
  std::vector<Tensor> parts;
  for (std::size_t rank = 0; rank < sizes.of.size(); ++rank)
    parts.push_back(all.select(0, static_cast<std::int64_t>(rank)).narrow(0, 0, sizes.of[rank]));
  return mixed_if(sizes.have_samples, cat(parts).to(tensor.device()));
}

Tensor ProcessState::gather_for_metrics(const Tensor& tensor, std::int64_t remainder) const {
  const Tensor all = gather(tensor);
  if (remainder <= 0 || all.rank() == 0 || remainder >= all.size(0)) return all;
  return all.narrow(0, 0, remainder);
}

std::vector<std::string> ProcessState::gather_object(std::string_view object) const {
  return group_->all_gather_bytes(object);
}

Tensor ProcessState::reduce(const Tensor& tensor, RankReduction reduction) const {
  Tensor result = tensor.to(Device::cpu()).clone().with_sample_axis(SampleAxis{});
  group_->all_reduce(result,
                     reduction == RankReduction::max ? dist::ReduceOp::max : dist::ReduceOp::sum);
  if (reduction == RankReduction::mean) {
    kernels::launch(
        result.device(),
        kernels::ScalarForward{
            kernels::BinaryOp::div, result, static_cast<double>(num_processes()), result});
  }
  return mixed_if(any_has_samples(*group_, tensor), result.to(tensor.device()));
}

Tensor ProcessState::broadcast(const Tensor& tensor, int from) const {
  Tensor is_mixed = Tensor::full({1}, has_samples(tensor), DType::int64);
  group_->broadcast(is_mixed, from);
  Tensor result = tensor.to(Device::cpu()).clone().with_sample_axis(SampleAxis{});
  group_->broadcast(result, from);
  return mixed_if(is_mixed.item<std::int64_t>() != 0, result.to(tensor.device()));
}

std::string ProcessState::broadcast_object(std::string_view object, int from) const {
  check_process("broadcast_object", from);
  const bool mine = process_index() == from;
  return group_->all_gather_bytes(mine ? object : "")[static_cast<std::size_t>(from)];
}

Tensor ProcessState::pad_across_processes(const Tensor& tensor,
                                          int dim,
                                          double pad_index,
                                          bool pad_first) const {
  const int at = dim < 0 ? dim + tensor.rank() : dim;
  const Sizes sizes = sizes_over_ranks(
      *group_, "pad_across_processes", tensor, at, text(" padded in dimension ", at));
  ACCRUE_CHECK(at >= 0 && at < tensor.rank(),
               IndexError,
               "pad_across_processes",
               "dimension must exist, got ",
               dim,
               " for shape ",
               tensor.shape());
  const std::int64_t size = tensor.size(at);
  Shape shape = tensor.shape();
  shape[at] = sizes.max();
  Tensor result = Tensor::full(shape, pad_index, tensor.dtype());
  result.narrow(at, pad_first ? shape[at] - size : 0, size).copy_from(tensor);
  return mixed_if(sizes.have_samples, result.to(tensor.device()));
}

ProcessState::Part ProcessState::split_between_processes(std::int64_t count) const {
  const std::int64_t each = count / num_processes(), more = count % num_processes();
  const std::int64_t rank = process_index();
  const std::int64_t begin = rank * each + std::min(rank, more);
  return {begin, begin + each + (rank < more)};
}

Tensor ProcessState::split_between_processes(const Tensor& tensor, bool apply_padding) const {
  check_rows("split_between_processes", tensor);
  const std::int64_t count = tensor.size(0), ranks = num_processes();
  const auto [begin, end] = split_between_processes(count);
  const Tensor rows = tensor.narrow(0, begin, end - begin);
  const std::int64_t longest = count / ranks + (count % ranks != 0);
  if (!apply_padding || rows.size(0) == longest) return rows;
  Shape shape = tensor.shape();
  shape[0] = longest;
  Tensor result = Tensor::empty(shape, tensor.dtype(), tensor.device());
  result.narrow(0, 0, longest - 1).copy_from(rows);
  result.narrow(0, longest - 1, 1).copy_from(tensor.narrow(0, count - 1, 1));
  return result;
}

bool ProcessState::check_trigger() {
  Tensor any = Tensor::full({1}, std::exchange(trigger_, false) ? 1 : 0, DType::int64);
  group_->all_reduce(any, dist::ReduceOp::max);
  return any.item<std::int64_t>() != 0;
}

}  // namespace accrue::train
