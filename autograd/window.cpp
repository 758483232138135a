#include "accrue/autograd/window.h"

#include "accrue/autograd/leaf.h"
#include "accrue/autograd/variable.h"
#include "accrue/core/generator.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace accrue {
namespace {

thread_local MicroBatch* current_micro_batch = nullptr;
std::atomic<std::uint64_t> next_micro_batch{1};

}  // namespace

Window::Window() = default;
Window::~Window() { drop(); }

void Window::begin(const WindowSpan& span, std::int64_t number) {
  drop();
  span_ = span;
  number_ = number;
  seed_ = default_generator().initial_seed();
  has_draws_ = false;
  next_position_ = span.lanes.begin(span.first_lane);
  open_ = true;
}

void Window::check_uses() {
  for (const Ref<Leaf>& leaf : touched_) leaf->check_uses();
}

void Window::check_complete() const {
  ACCRUE_CHECK(
      !poisoned_,
      StateError,
      "window",
      "the gradients of a window are finished once, got an end that threw; call zero_grad() "
      "to drop the window");
}

void Window::finish(double weight) {
  check_complete();
  try {
    for (const Ref<Leaf>& leaf : touched_) leaf->finish(weight);
  } catch (...) {
    poisoned_ = true;  // some gradients are final and some are not
    throw;
  }
  touched_.clear();
  open_ = false;
}

void Window::publish(std::span<const Variable> parameters, std::span<const Tensor> gradients) {
  try {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (gradients[i].defined()) parameters[i].node()->as_leaf()->publish(gradients[i]);
    }
  } catch (...) {
    poisoned_ = true;  // some gradients are final and some are not
    throw;
  }
  touched_.clear();
  observer_ = nullptr;
  open_ = false;
}

void Window::drop() {
  for (const Ref<Leaf>& leaf : touched_) leaf->drop();
  touched_.clear();
  observer_ = nullptr;
  open_ = false;
  poisoned_ = false;
}

void Window::advance(std::int64_t begin, std::int64_t end) {
  if (begin == end) return;  // of a rank without data
  const std::int64_t limit = std::min(span_.size, span_.lanes.begin(span_.end_lane));
  ACCRUE_CHECK(begin >= next_position_ && begin <= end && end <= limit,
               StateError,
               "accumulate",
               "micro-batches must come in order of their positions, which lie in [",
               next_position_,
               ", ",
               limit,
               ") now, got [",
               begin,
               ", ",
               end,
               ")");
  next_position_ = end;
}

MicroBatch::MicroBatch(Window& window, std::int64_t begin, std::int64_t end)
    : window_(window),
      begin_(begin),
      end_(end),
      id_(next_micro_batch.fetch_add(1, std::memory_order_relaxed)) {
  ACCRUE_CHECK(!current_micro_batch,
               StateError,
               "accumulate",
               "micro-batches must not nest, got a second one on this thread; pass all models to "
               "one accumulate()");
  ACCRUE_CHECK(window.is_open(), StateError, "accumulate", "the window must be open");
  window.advance(begin, end);
  current_micro_batch = this;
}

MicroBatch::~MicroBatch() { current_micro_batch = nullptr; }

MicroBatch* MicroBatch::current() { return current_micro_batch; }

std::uint64_t MicroBatch::next_draw(std::string_view path) {
  window_.has_draws_ = true;
  return draws_.try_emplace(std::string(path)).first->second++;
}

void MicroBatch::claim_backward() {
  ACCRUE_CHECK(!std::exchange(used_, true),
               StateError,
               "backward",
               "a micro-batch has one backward pass, got a second; add the losses first");
}

std::int64_t rows_per_sample(const Tensor& tensor,
                             int inner_dims,
                             const char* operation,
                             const char* what) {
  if (!MicroBatch::current()) return 1;
  const SampleAxis axis = tensor.sample_axis();
  check_not_mixed(axis, operation);
  ACCRUE_CHECK(axis.is_major() && tensor.rank() > inner_dims,
               StateError,
               operation,
               what,
               " must be sample-major in a window (dimension 0 counts samples), got shape ",
               tensor.shape(),
               axis.known() ? text(" with samples in dimension ", axis.dim)
                            : std::string(" without a known sample dimension"),
               "; keep the batch dimension first or use invariant = false");
  return std::max<std::int64_t>(axis.rows, 0) *
         product(tensor.shape(), 1, tensor.rank() - inner_dims);
}

void check_keeps_samples(bool keeps_samples, const char* operation, const char* what) {
  ACCRUE_CHECK(keeps_samples || !MicroBatch::current(),
               StateError,
               operation,
               what,
               " mixes samples, so its bits would depend on the micro-batch; reduce with "
               "Loss::from_rows or use invariant = false");
}

void check_not_mixed(SampleAxis axis, const char* operation) {
  ACCRUE_CHECK(
      !axis.is_mixed() || !MicroBatch::current(),
      StateError,
      operation,
      "an operand was reduced over samples, or lost them in a view, so the gradient's bits "
      "would depend on the micro-batch; keep the batch dimension first, such numbers to "
      "metrics, or use invariant = false");
}

}  // namespace accrue
