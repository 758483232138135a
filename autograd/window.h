// Window: the samples between two optimizer steps, as the graph sees them.
#pragma once

#include "accrue/autograd/lane_accumulator.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

class Leaf;
class Variable;

/// Told, while a backward pass runs, which parameters it adds no more rows to.
class CompletionObserver {
 public:
  virtual void complete(Leaf& leaf) = 0;

 protected:
  ~CompletionObserver() = default;
};

/// Collects the parameter gradients of one window on one rank. The trainer owns one; operations
/// find it through the micro-batch that is open on their thread.
/// Threads: belongs to the thread that opened the micro-batch.
class Window {
 public:
  Window();
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Starts a window. Partial gradients of a window that was not finished are dropped.
  /// `number` tells the windows of a run apart: dropout depends on it.
  void begin(const WindowSpan& span, std::int64_t number = 0);
  /// After each backward pass. Errors: StateError of Leaf::check_uses.
  void check_uses();
  /// Ends the window: every parameter used in it gets its gradient, the merged root of its uses
  /// divided once by `weight`; hooks run. Errors: StateError for a poisoned window.
  void finish(double weight);
  /// Ends the window without gradients.
  void drop();

  // Where several ranks share the window, instead of finish():
  /// Tells `observer` of parameters until the window ends; null: nobody. A parameter is complete
  /// when the pass has reached all its uses of the micro-batch, so some never are.
  void observe(CompletionObserver* observer) { observer_ = observer; }
  CompletionObserver* observer() const { return observer_; }
  /// The parameters with sums in this window.
  std::span<const Ref<Leaf>> leaves() const { return touched_; }
  /// Ends the window: parameters[i] gets gradients[i] where that is defined; hooks run.
  void publish(std::span<const Variable> parameters, std::span<const Tensor> gradients);

  bool is_open() const { return open_; }
  const WindowSpan& span() const { return span_; }
  std::int64_t number() const { return number_; }
  /// The seed of default_generator() when the window began.
  std::uint64_t seed() const { return seed_; }
  /// Whether a module drew random numbers from it in this window.
  bool has_draws() const { return has_draws_; }

  /// After an exception at its end some gradients are final and some are not: only drop() ends it.
  bool is_poisoned() const { return poisoned_; }

 private:
  friend class Leaf;
  friend class MicroBatch;

  void advance(std::int64_t begin, std::int64_t end);
  void check_complete() const;

  WindowSpan span_;
  std::int64_t number_ = 0;
  std::uint64_t seed_ = 0;
  std::int64_t next_position_ = 0;  ///< no later micro-batch begins before it
  std::vector<Ref<Leaf>> touched_;  ///< parameters with sums in this window
  CompletionObserver* observer_ = nullptr;
  bool has_draws_ = false;
  bool open_ = false;
  bool poisoned_ = false;
};

/// The micro-batch open on this thread: window positions [begin, end).
class MicroBatch {
 public:
  /// Opens a micro-batch of `window` on this thread while it lives; they do not nest, and follow
  /// each other by position.
  /// Errors: StateError when one is open already, the window is not, or the positions do not fit.
  MicroBatch(Window& window, std::int64_t begin, std::int64_t end);
  ~MicroBatch();
  MicroBatch(const MicroBatch&) = delete;
  MicroBatch& operator=(const MicroBatch&) = delete;

  /// The one open on this thread, or null.
  static MicroBatch* current();

  Window& window() const { return window_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  std::int64_t size() const { return end_ - begin_; }
  std::uint64_t id() const { return id_; }

  /// How often this was called with `path` before: numbers the random draws of a module.
  std::uint64_t next_draw(std::string_view path);
  /// Marks the one backward pass a micro-batch may have. Errors: StateError at the second.
  void claim_backward();

 private:
  Window& window_;
  std::int64_t begin_;
  std::int64_t end_;
  std::uint64_t id_;  ///< differs between all micro-batches of the process
  std::map<std::string, std::uint64_t> draws_;
  bool used_ = false;
};

/// Rows of each sample when the dimensions of `tensor` but the last `inner_dims` are flattened.
/// Inside a micro-batch the tensor must be sample-major (contract 13); outside the result is 1.
/// Errors: StateError naming `operation` and `what`.
std::int64_t rows_per_sample(const Tensor& tensor,
                             int inner_dims,
                             const char* operation,
                             const char* what);

/// Refuses, inside a micro-batch, an operation that mixes samples (contract 13).
void check_keeps_samples(bool keeps_samples, const char* operation, const char* what);

/// Refuses, inside a micro-batch, to record `operation` on values that are mixed (contract 13).
void check_not_mixed(SampleAxis axis, const char* operation);

}  // namespace accrue
