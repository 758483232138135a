// Replicas: the prepared models, which all ranks hold alike, and the sums of their gradients.
#pragma once

#include "accrue/optim/parameter_list.h"
#include "accrue/train/rank_mean.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace accrue::train {

class WindowReduction;

/// Threads: belongs to one thread. Lifetime: borrows the group, shares the parameters.
class Replicas {
 public:
  explicit Replicas(dist::ProcessGroup& group, const dist::BucketerOptions& options = {});
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  dist::ProcessGroup& group() const { return group_; }
  bool are_several() const { return group_.size() > 1; }

  /// Collective: copies rank 0's parameters and buffers to all ranks, once all have the same names,
  /// shapes, dtypes and frozen parameters in the same order. Buckets are built anew for a further
  /// model. Errors: those of dist::ProcessGroup; MismatchError, the same on all ranks, that names
  /// the first parameter or buffer in which a rank differs from rank 0; StateError, the same on all
  /// ranks, while buckets exist and on any rank gradients are alive or a window has sums of them.
  void add(const nn::Module& model);
  /// What a prepared optimizer moves.
  void add(const optim::ParameterList& optimized) { optimized_.append(optimized); }

  /// As prepared models, else optimizers, call it.
  std::string name_of(const Leaf& leaf) const;
  /// All parameters whose gradients came since the last call, each once.
  optim::ParameterList take_new_gradients();

  // With several ranks, of the models' parameters; collective calls when they build buckets.
  WindowReduction& reduction();
  /// Errors also: StateError for parameters of prepared optimizers that no prepared model has.
  RankMean& mean();
  /// Collective: all ranks get those of rank 0, between two steps.
  void broadcast_buffers();
  /// A plain pass; where `averages`, collective: gradients become the mean of what ranks have.
  /// Errors: of the pass, then DistributedError on the other ranks; of RankMean.
  template <class Pass>
  void run(bool averages, const Pass& pass) {
    if (averages) mean();
    try {
      pass();
    } catch (...) {
      if (averages) tell_caught();
      throw;
    }
    if (averages) mean().reduce();
  }
  /// What all ranks must do alike at the end of a window: compared where the next one ends.
  void note(std::string_view deed, std::span<const double> numbers);

 private:
  void check_free();
  void tell_caught();
  optim::ParameterList all() const;
  bool has(const Variable& parameter) const;

  dist::ProcessGroup& group_;
  dist::BucketerOptions options_;
  nn::NamedParameters parameters_;  ///< of the models, each once
  optim::ParameterList optimized_;  ///< of the optimizers, which may share some
  std::vector<Tensor> buffers_;     ///< with several ranks
  std::unique_ptr<WindowReduction> reduction_;
  std::optional<RankMean> mean_;
};

}  // namespace accrue::train
