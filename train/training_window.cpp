#include "accrue/train/training_window.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/leaf.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/dist/caught_text.h"
#include "accrue/train/window_reduction.h"

#include <utility>

namespace accrue::train {

void TrainingWindow::enter(bool ends) {
  if (ends_) lacks_part_ = false;  // a new window begins
  ends_ = ends;
  is_finished_ = false;
}

void TrainingWindow::backward(const Loss& loss) {
  if (meets() && !is_finished_) connect();
  try {
    check_intact();
    if (is_finished_ && lanes()) MicroBatch::current()->claim_backward();  // a second pass says so
    ACCRUE_CHECK(!is_finished_,
                 StateError,
                 "backward",
                 "backward must come once and before step() and clipping, got a window that has "
                 "ended; add the losses or reorder the loop");
    add(loss);
  } catch (...) {
    if (meets() && !is_finished_) fail(dist::caught_text());
    throw;
  }
  mark_pass();
}

std::optional<WindowTotals> TrainingWindow::finish() {
  if (is_finished_) return std::nullopt;
  if (meets() && (is_poisoned_ || lacks_part_)) fail("an earlier backward pass threw");
  check_intact();
  is_finished_ = true;
  is_partial_ = false;
  std::optional<WindowTotals> totals;
  try {
    totals = close();
  } catch (...) {
    poison();  // some gradients are final and some are not
    throw;
  }
  if (!totals) return totals;
  was_skipped = totals->weight == 0;
  if (meets()) replicas_.broadcast_buffers();
  return totals;
}

void TrainingWindow::check_intact() const {
  ACCRUE_CHECK(!is_poisoned_ && !(lacks_part_ && ends_),
               StateError,
               "backward",
               "a backward pass of this window threw, so its sums are incomplete; call "
               "optimizer.zero_grad() first");
}

void TrainingWindow::fail(const std::string& reason) {
  is_finished_ = is_poisoned_ = true;
  tell(reason);
}

void TrainingWindow::recover() {
  if (!is_poisoned_) return;
  clear();
  scale.reset();
  is_poisoned_ = is_partial_ = false;
  is_recovered_ = true;
  // With several ranks a window is given up by all: now, or when the others wait for this one.
  lacks_part_ = replicas_.are_several() && !is_finished_;
  if (is_finished_) was_skipped = true;
  if (!replicas_.are_several()) is_finished_ = false;
}

void TrainingWindow::drop() {
  clear();
  is_poisoned_ = is_partial_ = lacks_part_ = false;
  is_finished_ = true;
}

// ---- in lanes ----

std::int64_t rows_per_sample(const Tensor& rows, const MicroBatch& batch, const char* operation) {
  const std::int64_t each = accrue::rows_per_sample(rows, 0, operation, "the loss");
  ACCRUE_CHECK(
      rows.numel() == batch.size() * each,
      StateError,
      operation,
      text("the loss must have rows for the ", batch.size(), " samples of the micro-batch"),
      text(", got ", rows.numel(), " rows of ", each, " per sample"));
  return each;
}

void LaneWindow::begin(const WindowSpan& span, std::int64_t number) {
  TrainingWindow::begin(span, number);
  window_.begin(span, number);
  weight_ = LossWeight();
  loss_.drop();
  versions_.clear();
  scale.reset();
}

void LaneWindow::check_not_written() const {
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    const Leaf& leaf = *window_.leaves()[i];
    ACCRUE_CHECK(leaf.value().version() == versions_[i],
                 StateError,
                 "backward",
                 "a parameter must keep its values through a window, got ",
                 replicas().name_of(leaf),
                 " written after a micro-batch that used it; write where the window has ended");
  }
}

/// Made anew where another is wanted, or a hook wrote to it.
const Tensor& LaneWindow::start_of(const Tensor& rows) {
  const double value = scale.value_or(1);
  if (!start_.defined() || start_.version() != start_version_ || start_value_ != value ||
      start_.dtype() != rows.dtype() || start_.device() != rows.device()) {
    start_ = Tensor::full({1}, value, rows.dtype(), rows.device());
    start_value_ = value;
    start_version_ = start_.version();
  }
  return start_;
}

void LaneWindow::add(const Loss& loss) {
  MicroBatch& batch = *MicroBatch::current();
  const Variable& rows = loss.rows();
  batch.claim_backward();
  LossWeight weight = weight_;
  try {
    const std::int64_t rows_each = rows_per_sample(rows.value(), batch, "backward");
    check_not_written();
    weight.add(loss.weight());
    if (meets()) replicas().reduction().begin(window_, weight);
    if (rows.requires_grad()) {
      Engine({}).run(rows, start_of(rows.value()).expand(rows.shape()));
      window_.check_uses();
    }
    loss_.add(batch, rows.value(), rows_each);
  } catch (...) {
    poison();
    throw;
  }
  weight_ = std::move(weight);
  while (versions_.size() < window_.leaves().size())
    versions_.push_back(window_.leaves()[versions_.size()]->used_version());
}

std::optional<WindowTotals> LaneWindow::close() {
  if (meets()) return replicas().reduction().finish(window_, weight_, loss_);
  const WindowTotals totals{weight_.value(), loss_.finish(), loss_.dtype()};
  totals.weight == 0 ? window_.drop() : window_.finish(totals.weight);
  return totals;
}

void LaneWindow::connect() { replicas().reduction(); }

void LaneWindow::tell(const std::string& failure) { replicas().reduction().fail(window_, failure); }

// ---- plain ----

void PlainWindow::add(const Loss& loss) {
  LossWeight weight = weight_;
  try {
    weight.add(loss.weight());
    const Variable sum = loss.sum();
    (scale ? sum * *scale : sum).backward({}, {.sums = &sums_});
  } catch (...) {
    poison();
    throw;
  }
  took_loss_ = true;
  weight_ = std::move(weight);
  const double mine = loss.weight().value();
  if (mine > 0) loss_ += loss.mean() * mine;
  dtype_ = loss.rows().dtype();
}

std::optional<WindowTotals> PlainWindow::close() {
  if (!took_loss_) return std::nullopt;
  WindowTotals totals{weight_.value(), loss_, dtype_};
  if (meets()) {
    Tensor total = Tensor::full({1}, loss_);
    std::vector<dist::NodeSum> more = {{{{0, replicas().group().rank(), total.clone()}}, total}};
    totals.weight = replicas().mean().reduce(&sums_, totals.weight, more);
    totals.loss = static_cast<double>(total.item<float>());
  } else if (totals.weight != 0) {
    sums_.finish(totals.weight);
  }
  clear();
  return totals;
}

void PlainWindow::clear() {
  sums_.drop();
  weight_ = LossWeight();
  loss_ = 0;
  took_loss_ = false;
}

}  // namespace accrue::train
