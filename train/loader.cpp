#include "accrue/train/loader.h"

#include "accrue/train/accelerator.h"

#include <algorithm>
#include <span>

namespace accrue::train {
namespace {

/// Called when a pass leaves the micro-batch that had to end a window.
void check_window_ended(const LoaderPass& pass) {
  ACCRUE_CHECK(!pass.window->has_sums(),
               StateError,
               "loader",
               "the last micro-batch of a window must end it, got ",
               pass.source ? std::string("one") : text("window ", pass.step.window),
               " left open, whose gradients would be lost; enter accumulate() for every batch and "
               "call step() in it, also where backward() is left out");
}

}  // namespace

LoaderPass::LoaderPass(const data::WindowPlan& window_plan, int of_rank)
    : plan(window_plan), rank(of_rank) {
  std::vector<LaneRun> lanes;
  for (const int lane : plan.lanes_of(rank)) {
    if (lanes.empty() || lanes.back().end != lane) lanes.push_back({lane, lane});
    lanes.back().end = lane + 1;
  }
  runs = std::make_shared<const std::vector<LaneRun>>(std::move(lanes));
}

WindowSpan LoaderPass::span(std::int64_t window_size) const {
  if (runs->empty()) return {plan.lanes(), window_size, 0, 0};
  const bool is_one_run = runs->size() == 1;
  return {plan.lanes(),
          window_size,
          runs->front().begin,
          runs->back().end,
          is_one_run ? nullptr : runs};
}

data::DataLoader& Loader::loader() const {
  ACCRUE_CHECK(loader_,
               StateError,
               "loader",
               "a stream has no number of samples and no order, got a question about them");
  return *loader_;
}

std::int64_t Loader::size() const {
  const std::int64_t all = config_ ? num_batches(accelerator_->process_group(), loader(), *config_)
                                   : plan().steps_in_epoch();
  return std::max<std::int64_t>(all - first_, 0);
}

data::WindowPlan Loader::plan() const {
  ACCRUE_CHECK(!config_,
               StateError,
               "loader",
               "a window plan must deal the batches, got a loader that is dealt as upstream");
  return accelerator_->plan_for(*loader_);
}

std::unique_ptr<LoaderPass> Loader::open() const {
  if (config_) {
    dist::ProcessGroup& group = accelerator_->process_group();
    return std::make_unique<LoaderPass>(stream_ ? open_source(group, *stream_, *config_, first_)
                                                : open_source(group, *loader_, *config_, first_));
  }
  auto pass = std::make_unique<LoaderPass>(plan(), accelerator_->process_index());
  pass->loader = loader_;
  pass->order = loader_->order(loader_->epoch());
  pass->index = std::min(first_, pass->size()) - 1;
  return pass;
}

Loader skip_first_batches(const Loader& loader, std::int64_t count) {
  ACCRUE_CHECK(count >= 0,
               ValueError,
               "skip_first_batches",
               "the number of batches must be >= 0, got ",
               count);
  Loader later = loader;
  later.first_ += std::min(count, INT64_MAX - later.first_);
  if (loader.config_ || later.first_ == 0) return later;
  const data::WindowPlan plan = loader.plan();
  ACCRUE_CHECK(later.first_ >= plan.steps_in_epoch() || plan.step(0, later.first_ - 1).ends_window,
               ValueError,
               "skip_first_batches",
               text("whole windows must be left out, got ", later.first_, " micro-batches; use "),
               text("a multiple of ", plan.steps_in_window(0)));
  return later;
}

Loader::Iterator Loader::begin() const { return Iterator(*accelerator_, open()); }

Loader::Iterator::Iterator(Accelerator& accelerator, std::unique_ptr<LoaderPass> pass)
    : accelerator_(&accelerator), pass_(std::move(pass)) {
  accelerator_->begin(*pass_);
  try {
    advance();
  } catch (...) {
    accelerator_->leave(*pass_);
    throw;
  }
}

Loader::Iterator::~Iterator() {
  if (pass_) accelerator_->leave(*pass_);
}

Loader::Iterator& Loader::Iterator::operator++() {
  advance();
  return *this;
}

void Loader::Iterator::place(data::Batch batch) {
  const auto move = [&](Tensor& field) {
    if (field.defined()) field = field.to(accelerator_->device());
  };
  move(batch.inputs);
  move(batch.labels);
  for (Tensor& field : batch.others) move(field);
  pass_->batch = std::move(batch);
}

void Loader::Iterator::advance_source() {
  LoaderPass& pass = *pass_;
  std::optional<data::DealtBatch> dealt = pass.source->next();
  if (!dealt || pass.window->ends()) check_window_ended(pass);
  pass.entered = false;
  at_end_ = !dealt;
  if (!dealt) return accelerator_->leave(pass);
  place(std::move(dealt->batch));
  pass.is_last_batch = dealt->is_last;
  pass.remainder = dealt->remainder;
}

void Loader::Iterator::advance() {
  if (at_end_) return;
  LoaderPass& pass = *pass_;
  if (pass.source) return advance_source();
  if (pass.index >= 0 && pass.step.ends_window) check_window_ended(pass);
  if (pass.index + 1 >= pass.size()) {
    at_end_ = true;
    ++pass.index;
    pass.loader->set_epoch(pass.loader->epoch() + 1);
    return accelerator_->leave(pass);
  }
  const data::MicroStep step = pass.plan.step(pass.rank, pass.index + 1);
  const data::Range window = pass.plan.window(step.window);
  const std::span<const std::int64_t> order(pass.order);
  place(
      pass.loader->load(order.subspan(static_cast<std::size_t>(window.begin + step.positions.begin),
                                      static_cast<std::size_t>(step.positions.size()))));
  const bool new_window = pass.index < 0 || step.window != pass.step.window;
  ++pass.index;
  pass.step = step;
  pass.entered = false;
  // What passes outside lanes have added to gradients stays, and so does a failure among them.
  if (new_window && pass.window->lanes() != nullptr) {
    const std::int64_t number = pass.loader->epoch() * pass.plan.num_windows() + step.window;
    pass.window->begin(pass.span(window.size()), number);
  }
}

}  // namespace accrue::train
