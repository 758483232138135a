#include "accrue/autograd/leaf.h"

#include "accrue/core/same_device.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <utility>

namespace accrue {
const Tensor& Leaf::grad() const {
  ACCRUE_CHECK(!has_sums(),
               StateError,
               "grad",
               "gradients exist when the window ends, got a window that still accumulates; read "
               "them where sync_gradients() is true");
  return grad_;
}

void Leaf::check_grad(const Tensor& grad) const {
  ACCRUE_CHECK(grad.shape() == value_.shape(),
               ShapeError,
               "set_grad",
               "gradient must have the shape ",
               value_.shape(),
               " of its variable, got ",
               grad.shape());
  ACCRUE_CHECK(grad.dtype() == value_.dtype(),
               DTypeError,
               "set_grad",
               "gradient must be ",
               value_.dtype(),
               " like its variable, got ",
               grad.dtype());
  check_device("set_grad", value_.device(), grad);
}

void Leaf::set_grad(const Tensor& grad) {
  check_grad(grad);
  grad_ = grad;
  is_new_ = true;
}

void Leaf::replace_grad(const Tensor& grad) {
  check_grad(grad);
  is_new_ = is_new_ || !has_grad();
  grad_ = grad;
}

void Leaf::zero_grad() { grad_ = Tensor(); }

int Leaf::next_use() {
  const MicroBatch* batch = MicroBatch::current();
  if (!batch) return 0;
  if (micro_batch_ != batch->id()) {
    micro_batch_ = batch->id();
    used_version_ = value_.version();
    next_use_ = 0;
  }
  return next_use_++;
}

/// What a window adds up must not meet a gradient that is finished.
void Leaf::check_dropped() const {
  ACCRUE_CHECK(!grad_.defined(),
               StateError,
               "backward",
               "a finished gradient must be dropped before the next window adds to it; call "
               "zero_grad() after step()");
}

LaneTarget Leaf::plan_rows(const MicroBatch& batch, int use, std::int64_t rows_per_sample) {
  check_dropped();
  ACCRUE_CHECK(!sums_ && (!window_ || window_ == &batch.window()),
               StateError,
               "backward",
               "a parameter must belong to one window at a time, got a second window");
  if (!window_) {
    window_ = &batch.window();
    batch.window().touched_.push_back(Ref<Leaf>(this));
  }
  reached_.push_back(use);
  while (static_cast<int>(uses_.size()) <= use) uses_.emplace_back(batch.window().span());
  return uses_[static_cast<std::size_t>(use)].plan(
      batch.begin(), batch.end(), rows_per_sample, value_);
}

void Leaf::check_uses() {
  if (reached_.empty()) return;
  std::sort(reached_.begin(), reached_.end());
  std::vector<int> passed_over;
  for (int use = 0; use < reached_.back(); ++use) {
    if (!std::binary_search(reached_.begin(), reached_.end(), use)) passed_over.push_back(use);
  }
  reached_.clear();
  if (!passed_over_) passed_over_ = passed_over;
  ACCRUE_CHECK(passed_over == *passed_over_,
               StateError,
               "backward",
               "a parameter must have the same uses in every micro-batch of a window, got a "
               "recorded forward pass without gradient before another use in some of them; run "
               "extra forward passes under NoGrad");
}

bool Leaf::completes(const MicroBatch& batch) {
  const bool is_complete = micro_batch_ == batch.id() && std::ssize(reached_) == next_use_;
  return is_complete && std::exchange(completed_, batch.id()) != batch.id();
}

std::vector<std::vector<TreeNode>> Leaf::close() {
  std::vector<std::vector<TreeNode>> nodes;
  for (LaneAccumulator& use : uses_) nodes.push_back(use.finish(value_));
  uses_.clear();
  return nodes;
}

/// Where one rank has all lanes.
void Leaf::finish(double weight) {
  std::vector<Tensor> roots;
  roots.reserve(uses_.size());
  for (LaneAccumulator& use : uses_) {
    const std::vector<TreeNode>& nodes = use.finish(value_);
    roots.push_back(nodes.empty() ? Tensor() : nodes.front().partial);
  }
  uses_.clear();
  finish(roots, weight);
}

/// The gradient: the roots of all uses, added in forward order and divided. Undefined: +0.
void Leaf::finish(std::span<const Tensor> roots, double weight) {
  Tensor total;
  for (const Tensor& root : roots) {
    if (!root.defined()) continue;
    if (total.defined()) {
      LaneTarget sum;
      sum.instructions = {kernels::LaneInstruction::load(1),
                          kernels::LaneInstruction::merge(0),
                          kernels::LaneInstruction::store(0)};
      sum.buffers = {total, root};
      sum.run_merges();
    } else {
      total = root;
    }
  }
  if (!total.defined()) total = Tensor::zeros(value_.shape(), value_.dtype(), value_.device());
  kernels::launch(total.device(),
                  kernels::ScalarForward{kernels::BinaryOp::div, total, weight, total});
  publish(std::move(total));
}

void Leaf::publish(Tensor gradient) {
  drop();
  grad_ = hooked(std::move(gradient));
  is_new_ = true;
}

void Leaf::drop() {
  uses_.clear();
  reached_.clear();
  passed_over_.reset();
  window_ = nullptr;
}

Tensor& Leaf::working_copy(const GradientSums* sums) {
  ACCRUE_CHECK(!window_ && (!sums_ || sums_ == sums),
               StateError,
               "backward",
               "a plain backward pass must not reach a parameter whose window is open; finish the "
               "window or use no_grad");
  if (sums) check_dropped();
  if (working_.defined()) return working_;
  // Hooks see what this pass gives, not what it is added to.
  const Tensor& before = sums ? sum_ : final_hooks_.empty() ? grad_ : working_;
  if (before.defined()) working_ = before.clone();
  return working_;
}

LaneTarget Leaf::plan_rows(std::int64_t rows, const GradientSums* sums) {
  Tensor& working = working_copy(sums);
  const bool load = working.defined();
  if (!load) working = Tensor::empty(value_.shape(), value_.dtype(), value_.device());
  return LaneTarget::chain(working, load, rows);
}

void Leaf::add(const Tensor& gradient, const GradientSums* sums) {
  Tensor& working = working_copy(sums);
  if (!working.defined()) {
    working = gradient.owns_storage() && gradient.is_contiguous() ? gradient : gradient.clone();
  } else {
    kernels::launch(working.device(),
                    kernels::BinaryForward{kernels::BinaryOp::add, working, gradient, working});
  }
}

void Leaf::prepare_commit() {
  if (!working_.defined() || final_hooks_.empty()) return;
  working_ = hooked(std::move(working_));
  if (!grad_.defined()) return;
  Tensor sum = Tensor::empty(value_.shape(), value_.dtype(), value_.device());
  kernels::launch(sum.device(),
                  kernels::BinaryForward{kernels::BinaryOp::add, grad_, working_, sum});
  working_ = std::move(sum);
}

void Leaf::commit(GradientSums* sums) {
  if (!working_.defined()) return;
  if (sums && !sums_) sums->leaves_.push_back(Ref<Leaf>(this));
  sums_ = sums;
  (sums ? sum_ : grad_) = std::exchange(working_, Tensor());
  is_new_ = is_new_ || !sums;
}

Tensor Leaf::take_sum() {
  sums_ = nullptr;
  return std::exchange(sum_, Tensor());
}

Tensor Leaf::hooked(Tensor gradient) const {
  for (const GradientHook& hook : final_hooks_) {
    Tensor replaced = hook(gradient);
    ACCRUE_CHECK(replaced.defined(),
                 ShapeError,
                 "backward",
                 "a hook must return a gradient of shape ",
                 value_.shape(),
                 " and dtype ",
                 value_.dtype(),
                 ", got none");
    check_grad(replaced);
    gradient = std::move(replaced);
  }
  return gradient;
}

}  // namespace accrue
