#include "accrue/autograd/engine.h"

#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <utility>

namespace accrue {
namespace {

bool lower_sequence(const Node* a, const Node* b) { return a->sequence() < b->sequence(); }

void check_gradient(const Tensor& gradient, const Tensor& like, const char* what) {
  ACCRUE_CHECK(
      gradient.defined() && gradient.shape() == like.shape() && gradient.dtype() == like.dtype(),
      ShapeError,
      "backward",
      what,
      " must return a gradient of shape ",
      like.shape(),
      " and dtype ",
      like.dtype(),
      ", got ",
      gradient.defined() ? gradient.shape().str() : "none");
}

/// The memory of the last pass of this thread, for the next.
thread_local std::vector<Node*> spare_ready, spare_claimed;

}  // namespace

Edge edge(const Variable& input) {
  if (!input.requires_grad()) return {};
  Leaf* leaf = input.node()->as_leaf();
  if (!leaf) return {input.node()};
  const MicroBatch* batch = MicroBatch::current();
  return {input.node(), leaf->next_use(), batch ? batch->id() : 0};
}

Engine::Engine(BackwardOptions options)
    : options_(options),
      ready_(std::exchange(spare_ready, {})),
      claimed_(std::exchange(spare_claimed, {})) {}

Engine::~Engine() {
  for (Leaf* leaf : touched_) leaf->forget();
  for (Node* node : claimed_) {
    node->pending_.reset();
    node->run_.store(nullptr, std::memory_order_release);
  }
  ready_.clear();
  claimed_.clear();
  spare_ready = std::move(ready_);
  spare_claimed = std::move(claimed_);
}

void Engine::run(const Variable& output, Tensor gradient) {
  walk(output.node(), std::move(gradient));
  for (Leaf* leaf : touched_) {
    if (!options_.sums) leaf->prepare_commit();
  }
  for (Leaf* leaf : touched_) leaf->commit(options_.sums);
}

std::vector<Tensor> Engine::capture(const Variable& output,
                                    std::span<const Variable> inputs,
                                    Tensor gradient) {
  for (const Variable& input : inputs) {
    ACCRUE_CHECK(input.requires_grad(),
                 StateError,
                 "grad",
                 "every input must require grad, got one that does not");
  }
  inputs_ = inputs;
  captured_.resize(inputs.size());
  capturing_ = true;
  walk(output.node(), std::move(gradient));
  return std::move(captured_);
}

bool Engine::captures(const Node* node) const {
  return std::any_of(
      inputs_.begin(), inputs_.end(), [&](const Variable& v) { return v.node().get() == node; });
}

void Engine::claim(Node* node) {
  const void* expected = nullptr;
  const bool claimed = node->run_.compare_exchange_strong(expected, this);
  ACCRUE_CHECK(claimed,
               StateError,
               "backward",
               "a graph can be used by one backward pass at a time, got a second one at ",
               node->name(),
               "; wait for the first");
  claimed_.push_back(node);
}

void Engine::arrive(Node* node, Tensor gradient) {
  if (node->run_.load(std::memory_order_acquire) != this) claim(node);
  if (!node->pending_) {
    node->pending_ = std::make_unique<Tensor>(std::move(gradient));
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), lower_sequence);
    return;
  }
  Tensor& sum = *node->pending_;
  Tensor target = sum.owns_storage() && sum.is_contiguous()
                      ? sum
                      : Tensor::empty(sum.shape(), sum.dtype(), sum.device());
  kernels::launch(sum.device(),
                  kernels::BinaryForward{kernels::BinaryOp::add, sum, gradient, target});
  sum = target;
}

void Engine::walk(const Ref<Node>& root, Tensor gradient) {
  root_ = root;
  arrive(root.get(), std::move(gradient));
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), lower_sequence);
    Node* node = ready_.back();
    ready_.pop_back();
    visit(node);
  }
}

void Engine::apply_hooks(Node* node, Tensor& gradient) {
  for (const GradientHook& hook : node->extras_->hooks) {
    Tensor replaced = hook(gradient);
    check_gradient(replaced, gradient, "a hook");
    gradient = std::move(replaced);
  }
  if (node->extras_->retain) node->extras_->retained = gradient;
}

void Engine::visit(Node* node) {
  Tensor gradient = std::move(*std::exchange(node->pending_, nullptr));
  if (node->extras_) apply_hooks(node, gradient);
  if (capturing_) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].node().get() == node) captured_[i] = gradient;
    }
  }
  if (Leaf* leaf = node->as_leaf()) {
    if (capturing_) return;
    ACCRUE_CHECK(!MicroBatch::current(),
                 StateError,
                 "backward",
                 "in a window a parameter must be used by operations that add rows (linear, or "
                 "arithmetic with the batch), got a gradient that arrived whole; use "
                 "invariant = false");
    if (!leaf->has_copy()) touched_.push_back(leaf);
    leaf->add(gradient, options_.sums);
    return;
  }
  ACCRUE_CHECK(!node->released_,
               StateError,
               "backward",
               "a graph can be walked once, got a second pass through ",
               node->name(),
               "; set retain_graph at the first");
  node->released_ = !options_.retain_graph;
  Backward context(*this, *node, gradient);
  node->backward(context);
  if (node->released_) node->forget_saved();
  tell_complete(*node);
}

/// Tells the window's observer of parameters that got their last rows from `node`.
void Engine::tell_complete(const Node& node) {
  const MicroBatch* batch = MicroBatch::current();
  if (!batch || !batch->window().observer()) return;
  for (const Edge& edge : node.edges()) {
    Leaf* leaf = edge.node ? edge.node->as_leaf() : nullptr;
    if (leaf && leaf->completes(*batch)) batch->window().observer()->complete(*leaf);
  }
}

bool Backward::needs(std::size_t i) const {
  Node* node = node_.edges()[i].node.get();
  return node && (!engine_.capturing_ || !node->as_leaf() || engine_.captures(node));
}

void Backward::give(std::size_t i, Tensor gradient) {
  if (needs(i)) engine_.arrive(node_.edges()[i].node.get(), std::move(gradient));
}

LaneTarget Backward::plan_rows(std::size_t i,
                               const Tensor& like,
                               std::int64_t rows,
                               std::int64_t rows_per_sample) {
  const Edge& edge = node_.edges()[i];
  Leaf* leaf = edge.node->as_leaf();
  if (leaf && !engine_.capturing_) {
    if (leaf->run_.load(std::memory_order_acquire) != &engine_) engine_.claim(leaf);
    if (const MicroBatch* batch = MicroBatch::current()) {
      ACCRUE_CHECK(edge.micro_batch == batch->id(),
                   StateError,
                   "backward",
                   "the forward pass must lie in the accumulate() scope of its backward pass, got ",
                   edge.micro_batch == 0 ? "one outside any scope" : "one of another micro-batch",
                   "; call the model after accumulate()");
      ACCRUE_CHECK(rows == batch->size() * rows_per_sample,
                   StateError,
                   "backward",
                   "a parameter's gradient must have the rows of the micro-batch, got ",
                   rows,
                   " rows for ",
                   batch->size(),
                   " samples of ",
                   rows_per_sample,
                   "; use the batch of this scope");
      return leaf->plan_rows(*batch, edge.use, rows_per_sample);
    }
    if (!leaf->has_copy()) engine_.touched_.push_back(leaf);
    return leaf->plan_rows(rows, engine_.options_.sums);
  }
  fresh_ = Tensor::empty(like.shape(), like.dtype(), like.device());
  return LaneTarget::chain(fresh_, false, rows);
}

}  // namespace accrue
