// Leaf: the graph's end at a variable that holds a gradient, usually a parameter.
#pragma once

#include "accrue/autograd/gradient_sums.h"
#include "accrue/autograd/node.h"
#include "accrue/autograd/window.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace accrue {

/// Owns the gradient of one variable and the partial sums it is made of.
///
/// Plain autograd: a backward pass works on a copy and commits it at its end, so a pass that throws
/// changes nothing. Inside a window: each use has one LaneAccumulator, and the gradient exists when
/// the window is finished.
class Leaf final : public Node {
 public:
  explicit Leaf(const Tensor& value) : value_(value) {}

  const char* name() const override { return "AccumulateGrad"; }
  std::span<const Edge> edges() const override { return {}; }
  void backward(Backward&) override {}
  Leaf* as_leaf() override { return this; }

  bool requires_grad() const { return requires_grad_; }
  void set_requires_grad(bool requires_grad) { requires_grad_ = requires_grad; }
  const Tensor& value() const { return value_; }

  /// The gradient; undefined when there is none.
  /// Errors: StateError while a window that uses this leaf is not finished.
  const Tensor& grad() const;
  bool has_grad() const { return grad_.defined(); }
  /// Whether something that is not finished has sums of it, so that grad() throws.
  bool has_sums() const { return window_ || sums_; }
  /// Whether grad() was set or added to since the last call, and is there.
  bool take_is_new() { return std::exchange(is_new_, false) && has_grad(); }
  /// Errors: ShapeError, DTypeError.
  void set_grad(const Tensor& grad);
  /// As set_grad(), of the same gradient in another form: not new, unless there was none.
  void replace_grad(const Tensor& grad);
  /// Drops the gradient and what a dropped or poisoned window left.
  void zero_grad();

  /// Runs on the gradient of a plain backward pass before it is added, or on a window's at its end.
  void add_final_hook(GradientHook hook) { final_hooks_.push_back(std::move(hook)); }
  bool has_final_hooks() const { return !final_hooks_.empty(); }

  /// The number of this use in the current micro-batch; 0 outside.
  int next_use();
  /// The version of the value at the first use in the last micro-batch that used it.
  std::uint64_t used_version() const { return used_version_; }

  /// Where a backward pass of the current micro-batch adds rows of use `use`.
  LaneTarget plan_rows(const MicroBatch& batch, int use, std::int64_t rows_per_sample);
  /// After a backward pass: uses are numbered in forward order, so one that no gradient reaches
  /// shifts the later ones. Errors: StateError when that differs between micro-batches.
  void check_uses();

  /// True once in a backward pass: when it has reached every use of this micro-batch.
  bool completes(const MicroBatch& batch);
  /// Where several ranks share the window: finishes its lanes and returns the nodes of each use in
  /// forward order. No rows may follow.
  std::vector<std::vector<TreeNode>> close();

  // Plain backward passes: add rows or a whole gradient to the copy, then commit or forget it.
  // With `sums` the copy is of what they hold, and goes there: hooks wait.
  LaneTarget plan_rows(std::int64_t rows, const GradientSums* sums);
  void add(const Tensor& gradient, const GradientSums* sums);
  bool has_copy() const { return working_.defined(); }
  /// Runs the hooks, which may throw: no leaf has changed yet.
  void prepare_commit();
  void commit(GradientSums* sums);
  void forget() { working_ = Tensor(); }

 private:
  friend class GradientSums;
  friend class Window;

  void finish(double weight);
  void finish(std::span<const Tensor> roots, double weight);
  void publish(Tensor gradient);
  void drop();
  void check_grad(const Tensor& grad) const;
  void check_dropped() const;
  Tensor hooked(Tensor gradient) const;
  Tensor& working_copy(const GradientSums* sums);
  Tensor take_sum();

  Tensor value_;
  Tensor grad_;
  Tensor working_;
  Tensor sum_;  ///< what sums_ holds of this leaf
  const GradientSums* sums_ = nullptr;
  std::vector<LaneAccumulator> uses_;
  std::vector<int> reached_;  ///< uses that the current backward pass has reached
  std::optional<std::vector<int>> passed_over_;  ///< uses not reached, before one that was
  std::vector<GradientHook> final_hooks_;
  const Window* window_ = nullptr;  ///< whose partial sums uses_ holds
  std::uint64_t micro_batch_ = 0;
  std::uint64_t completed_ = 0;  ///< the last micro-batch of which completes() was true
  std::uint64_t used_version_ = 0;
  int next_use_ = 0;
  bool requires_grad_ = true;
  bool is_new_ = false;
};

}  // namespace accrue
