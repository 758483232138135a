// DistributedDataParallel: a model whose gradients are averaged over ranks, in plain autograd.
#pragma once

#include "accrue/train/process_state.h"
#include "accrue/train/replicas.h"

#include <concepts>
#include <memory>
#include <utility>

namespace accrue::train {

struct DistributedDataParallelOptions {
  /// The ranks that train together, borrowed; null: those the launcher started, else this process.
  dist::ProcessGroup* process_group = nullptr;
  bool broadcast_buffers = true;  ///< all ranks get rank 0's after each pass that averages
};

/// Keeps the gradients of plain passes local until the C++ scope ends.
class [[nodiscard]] NoSyncScope {
 public:
  explicit NoSyncScope(int& depth) : depth_(++depth) {}
  ~NoSyncScope() { --depth_; }
  NoSyncScope(const NoSyncScope&) = delete;
  NoSyncScope& operator=(const NoSyncScope&) = delete;

 private:
  int& depth_;
};

/// What DistributedDataParallel does whatever the model's type.
class GradientAveraging {
 public:
  GradientAveraging(const nn::Module& model, const DistributedDataParallelOptions& options);
  GradientAveraging(const GradientAveraging&) = delete;
  GradientAveraging& operator=(const GradientAveraging&) = delete;

  void backward(const Variable& loss, const Tensor& gradient = {}, BackwardOptions options = {});
  NoSyncScope no_sync() { return NoSyncScope(num_no_sync_); }
  dist::ProcessGroup& process_group() const { return replicas_.group(); }

 private:
  ProcessState ranks_;
  Replicas replicas_;
  bool broadcasts_buffers_;
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
