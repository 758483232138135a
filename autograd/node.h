// Node: one recorded operation. Nodes own their inputs' nodes; together they are the graph.
#pragma once

#include "accrue/core/tensor.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace accrue {

class Backward;
class Leaf;
class Node;

/// What a hook does with the gradient of a variable: returns it, or another of the same shape.
using GradientHook = std::function<Tensor(const Tensor&)>;

/// An operation's link to the node of one input; empty when that input needs no gradient.
struct Edge {
  Ref<Node> node;
  int use = 0;  ///< which use of a parameter in its micro-batch this is, in forward order
  std::uint64_t micro_batch = 0;  ///< where a parameter was used; 0 outside
};

/// A recorded operation with one output. Its sequence number is larger than those of its inputs, so
/// walking the numbers downwards visits every consumer before its inputs, in one fixed order.
/// Threads: a graph may be used by one backward pass at a time; others get a StateError.
class Node : public RefCounted {
 public:
  Node();
  virtual ~Node();
  /// Deletes without recursion: destructors that drop further nodes queue them.
  static void destroy(Node* node) noexcept;

  /// The operation, for example `log_softmax`; printing shows it as `LogSoftmaxBackward0`.
  virtual const char* name() const = 0;
  virtual std::span<const Edge> edges() const = 0;
  /// Hands gradients of the inputs to `context`.
  virtual void backward(Backward& context) = 0;
  /// Drops the saved tensors.
  virtual void forget_saved() {}
  virtual Leaf* as_leaf() { return nullptr; }

  std::uint64_t sequence() const { return sequence_; }

  void add_hook(GradientHook hook);
  /// Keeps the gradient of this operation's output at the next backward pass.
  void retain_gradient();
  Tensor retained_gradient() const;

 private:
  friend class Engine;
  friend class Backward;

  struct Extras {
    std::vector<GradientHook> hooks;
    bool retain = false;
    Tensor retained;
  };
  Extras& extras();

  std::uint64_t sequence_;
  std::atomic<const void*> run_{nullptr};  ///< the backward pass that uses this node now
  std::unique_ptr<Tensor> pending_;        ///< sum of the gradients that have arrived
  std::unique_ptr<Extras> extras_;
  Node* next_dead_ = nullptr;
  bool released_ = false;
};

/// A node with `N` inputs.
template <std::size_t N>
class OpNode : public Node {
 public:
  std::span<const Edge> edges() const override { return inputs; }

  std::array<Edge, N> inputs;
};

/// A tensor that backward needs, with the version it had when it was saved.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(const Tensor& tensor) : tensor_(tensor), version_(tensor.version()) {}

  /// Errors: StateError naming the operation when the tensor was written since.
  const Tensor& get(const char* operation) const;
  void reset() { tensor_ = Tensor(); }

 private:
  Tensor tensor_;
  std::uint64_t version_ = 0;
};

}  // namespace accrue
