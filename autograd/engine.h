// Engine: one backward pass, an iterative walk in descending order of creation.
#pragma once

#include "accrue/autograd/grad_mode.h"
#include "accrue/autograd/leaf.h"
#include "accrue/autograd/variable.h"

#include <type_traits>
#include <vector>

namespace accrue {

/// One backward pass. Lives on the stack of its caller; use run() or capture().
class Engine {
 public:
  explicit Engine(BackwardOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Adds gradients to leaves. Inside a micro-batch, rows go to the window's accumulators.
  void run(const Variable& output, Tensor gradient);
  /// Returns the gradients of `inputs` and changes no leaf; undefined where nothing arrived.
  std::vector<Tensor> capture(const Variable& output,
                              std::span<const Variable> inputs,
                              Tensor gradient);

 private:
  friend class Backward;

  void walk(const Ref<Node>& root, Tensor gradient);
  void visit(Node* node);
  void tell_complete(const Node& node);
  void apply_hooks(Node* node, Tensor& gradient);
  void arrive(Node* node, Tensor gradient);
  void claim(Node* node);
  bool captures(const Node* node) const;

  Ref<Node> root_;  ///< keeps the graph until the pass has let go of its nodes
  BackwardOptions options_;
  std::vector<Node*> ready_;    ///< max-heap by sequence
  std::vector<Node*> claimed_;  ///< nodes with run_ == this
  std::vector<Leaf*> touched_;  ///< leaves with a working copy, each once
  std::span<const Variable> inputs_;
  std::vector<Tensor> captured_;
  bool capturing_ = false;
};

/// What Node::backward sees: the gradient of its output, and where gradients of inputs go.
class Backward {
 public:
  Backward(Engine& engine, const Node& node, const Tensor& gradient)
      : engine_(engine), node_(node), dy_(gradient) {}

  const Tensor& dy() const { return dy_; }
  /// True when the gradient of input `i` is wanted.
  bool needs(std::size_t i) const;
  /// Hands over the whole gradient of input `i`. In a window, parameters take rows only.
  void give(std::size_t i, Tensor gradient);
  /// Chains `rows` rows into the gradient of input `i`, a parameter of `shape`: calls
  /// `launch(target)` with the program and buffers to run on.
  template <class Launch>
  void give_rows(std::size_t i,
                 const Tensor& like,
                 std::int64_t rows,
                 std::int64_t rows_per_sample,
                 Launch&& launch) {
    LaneTarget target = plan_rows(i, like, rows, rows_per_sample);
    if (!target.instructions.empty()) launch(target);
    if (fresh_.defined()) give(i, std::exchange(fresh_, Tensor()));
  }

 private:
  LaneTarget plan_rows(std::size_t i,
                       const Tensor& like,
                       std::int64_t rows,
                       std::int64_t rows_per_sample);

  Engine& engine_;
  const Node& node_;
  const Tensor& dy_;
  Tensor fresh_;  ///< rows for an input that is no leaf are chained here and then given whole
};

/// True when an operation on `x` is recorded.
inline bool is_recorded(const Variable& x) { return grad_enabled() && x.requires_grad(); }

/// Records a result: a Variable without node when nothing wants its gradient, else with an `Op`
/// node that `fill(op)` completes (saved tensors). `inputs` become the node's edges in order.
/// What is made of mixed samples, or of samples that the value does not know, is mixed; in a
/// micro-batch it is not recorded (StateError).
template <class Op, class Fill, class... Inputs>
Variable record(Tensor value, Fill&& fill, const Inputs&... inputs) {
  const SampleAxis axis = value.sample_axis();
  const bool mixed = axis.is_mixed() || (inputs.value().sample_axis().is_mixed() || ...) ||
                     (!axis.known() && (inputs.value().sample_axis().known() || ...));
  if (mixed) value = value.with_sample_axis(SampleAxis::mixed());
  if (!(is_recorded(inputs) || ...)) return Variable(std::move(value));
  Ref<Op> op(new Op);
  op->inputs = {edge(inputs)...};
  fill(*op);
  if (mixed) check_not_mixed(SampleAxis::mixed(), op->name());
  return Variable(std::move(value), Ref<Node>(op.get()));
}

/// The edge to `input`: empty when it needs no gradient; counts the use of a parameter.
Edge edge(const Variable& input);

}  // namespace accrue
