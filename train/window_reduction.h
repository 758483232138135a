// WindowReduction: sums windows over all ranks while the last backward pass of each runs.
#pragma once

#include "accrue/dist/bucketer.h"
#include "accrue/nn/module.h"
#include "accrue/train/loader.h"

#include <unordered_map>

namespace accrue::train {

struct WindowTotals {
  double weight = 0;
  double loss = 0;               ///< the sum of row losses
  DType dtype = DType::float32;  ///< of row losses
};

/// Hands a bucketer the sums of parameters as they become complete, and gives parameters its
/// gradients, divided by the weight of all ranks. A window of weight 0 is dropped.
///
/// Order:   that of one rank: lanes by the tree, then uses (contract 6, 7, 9, 14, 18).
class WindowReduction final : public CompletionObserver {
 public:
  /// Collective. Errors: those of dist::Bucketer.
  WindowReduction(dist::ProcessGroup& group,
                  const nn::NamedParameters& parameters,
                  const dist::BucketerOptions& options);

  /// Before the backward pass that ends the pass's window; `weight` is this rank's whole.
  void begin(LoaderPass& pass, const LossWeight& weight);
  void complete(Leaf& leaf) override;
  /// Collective: ends the window; begins it first where that was left out.
  ///
  /// Errors:  those of dist::Bucketer::finish(); what a hook throws, DistributedError on the other
  ///          ranks; StateError when a parameter outside `parameters`
  ///          was used, or ranks have different class weights.
  WindowTotals finish(LoaderPass& pass);
  /// Instead: finish() throws `reason` on the other ranks. This rank has an exception to throw.
  void fail(LoaderPass& pass, const std::string& reason) noexcept;

 private:
  void hand_over_rest(const Window& window);
  void publish(Window& window);

  std::vector<Variable> parameters_;
  std::unordered_map<const Leaf*, std::size_t> numbers_;
  dist::Bucketer bucketer_;
};

}  // namespace accrue::train
