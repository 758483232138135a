// DistributedDataParallel: a model whose gradients are averaged over ranks, in plain autograd.
#pragma once

#include "accrue/train/rank_mean.h"

#include <concepts>
#include <memory>
#include <utility>

namespace accrue::train {

struct DistributedDataParallelOptions {
  /// The ranks that train together, borrowed; null: those the launcher started, else this process.
  dist::ProcessGroup* process_group = nullptr;
  bool broadcast_buffers = true;  ///< all ranks get rank 0's after each pass that averages
};

/// What DistributedDataParallel does whatever the model's type.
class GradientAveraging {
 public:
  /// While one lives, backward() keeps gradients local.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(GradientAveraging& owner) : owner_(owner) { ++owner_.num_no_sync_; }
    ~NoSync() { --owner_.num_no_sync_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    GradientAveraging& owner_;
  };

  GradientAveraging(const nn::Module& model, const DistributedDataParallelOptions& options);
  GradientAveraging(const GradientAveraging&) = delete;
  GradientAveraging& operator=(const GradientAveraging&) = delete;

  void backward(const Variable& loss, const Tensor& gradient = {}, BackwardOptions options = {});
  NoSync no_sync() { return NoSync(*this); }
  dist::ProcessGroup& process_group() const { return *group_; }

 private:
  std::shared_ptr<dist::ProcessGroup> owned_;  ///< the launcher's
  dist::ProcessGroup* group_;
  bool broadcasts_buffers_;
  std::vector<Tensor> buffers_;   ///< with several ranks
  std::optional<RankMean> mean_;  ///< with several ranks
  int num_no_sync_ = 0;
};

/// Wraps a model for training on several ranks without an Accelerator:
///
///     train::DistributedDataParallel model(net);
///     model.backward(loss_of(model(x), y));   // on every rank
///     optimizer.step();
///
/// backward() runs the pass, then the gradients of all ranks are averaged, also of parameters that
/// some ranks did not use; one that none used keeps having none. Passes under no_sync() add up
/// locally until one that averages. It is the call of backward() that counts, wherever the forward
/// passes ran. loss.backward() stays local. Bits depend on the number of ranks: Accelerator is
/// where they do not.
///
/// Order:    those of RankMean. Buffers are copied when the pass has ended, never in forward, so
///           several forward passes may precede a backward pass.
/// Errors:   of the constructor: MismatchError, the same on all ranks, where models differ. Of
///           backward(): those of Variable::backward, then DistributedError naming it on the other
///           ranks, where gradients stay local; those of RankMean.
/// Threads:  belongs to one thread. Lifetime: borrows the model. The constructor and a backward()
///           outside no_sync() are collective calls.
template <std::derived_from<nn::Module> Model>
class DistributedDataParallel : public GradientAveraging {
 public:
  explicit DistributedDataParallel(Model& model, const DistributedDataParallelOptions& options = {})
      : GradientAveraging(model, options), model_(model) {}

  template <class... Inputs>
  decltype(auto) operator()(Inputs&&... inputs) {
    return model_(std::forward<Inputs>(inputs)...);
  }
  Model& module() const { return model_; }

 private:
  Model& model_;
};

}  // namespace accrue::train
