// Variable: a tensor and the recorded operations that made it.
#pragma once

#include "accrue/autograd/node.h"

#include <span>
#include <string>
#include <vector>

namespace accrue {

class GradientSums;

struct BackwardOptions {
  bool retain_graph = false;     ///< keep saved tensors, so that backward may run again
  GradientSums* sums = nullptr;  ///< where gradients of leaves go instead of grad()
};

/// A tensor with its place in the graph. Copies of a Variable are the same variable. Variables are
/// values: no operation changes one in place. A Tensor converts to a Variable without gradient.
/// Threads: as Tensor; a graph may be used by one backward pass at a time.
class Variable {
 public:
  Variable() = default;
  Variable(Tensor value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  /// A leaf: its gradient is kept. Copies values of mixed samples, and the leaf is not marked.
  /// Errors: DTypeError unless floating point.
  static Variable leaf(Tensor value);

  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  /// The tensor for writing outside the graph (optimizers, initialisation): writes are counted, so
  /// a backward pass that still needs the old values throws StateError.
  Tensor& mutable_value() { return value_; }
  const Shape& shape() const { return value_.shape(); }
  DType dtype() const { return value_.dtype(); }
  Device device() const { return value_.device(); }
  int rank() const { return value_.rank(); }
  std::int64_t size(int dim) const { return value_.size(dim); }
  std::int64_t numel() const { return value_.numel(); }
  template <class T>
  T item() const {
    return value_.item<T>();
  }

  bool requires_grad() const;
  /// Errors: StateError for a variable that an operation made; DTypeError unless floating point.
  void set_requires_grad(bool requires_grad);
  bool is_leaf() const;

  /// The gradient; undefined when there is none. For a leaf, or after retain_grad(). Where several
  /// ranks train together it is a view of a bucket, and the next window replaces its values:
  /// clone() keeps them.
  /// Errors: StateError while a window that uses this variable is not finished.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  void zero_grad();
  void retain_grad();

  /// Adds the gradients of this variable to all leaves it was made from.
  ///
  /// `gradient` has this variable's shape; it may be left out for one element, then it is 1.
  /// Order: operations in descending order of their creation; an operation's gradients add up in
  ///        that order too. Outside windows a parameter's rows chain in call order.
  /// Errors: StateError (no graph, graph used before, saved tensor written since, open window),
  ///         ShapeError, DTypeError. When an operation or hook throws, no gradient changes and the
  ///         graph is released.
  void backward(const Tensor& gradient = {}, BackwardOptions options = {}) const;

  /// Runs when the gradient of this variable is final, and may replace it. Of a leaf: what one
  /// plain backward pass gives, before it is added to grad(), or the whole gradient at a window's
  /// end. Errors: StateError without requires_grad(), ValueError for an empty function.
  void register_hook(GradientHook hook) const;
  /// The same values outside the graph.
  Variable detach() const { return Variable(value_); }
  /// As torch prints it, with requires_grad=True or grad_fn=<...>.
  std::string str() const;

  /// For operations: a result with its node.
  Variable(Tensor value, Ref<Node> node) : value_(std::move(value)), node_(std::move(node)) {}
  const Ref<Node>& node() const { return node_; }
  /// The leaf of a parameter that wants a gradient, else null.
  Leaf* wanted_leaf() const;

 private:
  Tensor value_;
  Ref<Node> node_;
};

/// Gradients of `output` with respect to `inputs`, without touching any grad().
///
/// Errors: as Variable::backward; StateError for an input that `output` does not depend on, unless
///         `allow_unused`: its gradient is then undefined.
std::vector<Tensor> grad(const Variable& output,
                         std::span<const Variable> inputs,
                         const Tensor& gradient = {},
                         BackwardOptions options = {},
                         bool allow_unused = false);

}  // namespace accrue
