// WindowReduction: sums windows over all ranks while the last backward pass of each runs.
#pragma once

#include "accrue/autograd/window_sum.h"
#include "accrue/train/training_window.h"

#include <unordered_map>

namespace accrue::train {

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

  /// Before the backward pass that ends the window; `weight` is this rank's whole.
  void begin(Window& window, const LossWeight& weight);
  void complete(Leaf& leaf) override;
  /// Collective: ends the window; begins it first where that was left out.
  ///
  /// Errors:  those of dist::Bucketer::finish(); what a hook throws, DistributedError on the other
  ///          ranks; StateError when a parameter outside `parameters` was used, or ranks have
  ///          different class weights; MismatchError where they differ in what they train, draw or
  ///          noted.
  WindowTotals finish(Window& window, const LossWeight& weight, WindowSum& loss);
  /// Instead: finish() throws `reason` on the other ranks. This rank has an exception to throw.
  void fail(Window& window, const std::string& reason) noexcept;
  /// One line, without its end, that all ranks must note before the next window ends.
  void note(const std::string& deed) { deeds_ += deeds_.empty() ? deed : ", " + deed; }

 private:
  void hand_over_rest(const Window& window);
  void publish(Window& window);

  nn::NamedParameters parameters_;
  std::unordered_map<const Leaf*, std::size_t> numbers_;
  dist::Bucketer bucketer_;
  std::string deeds_;  ///< since the last window ended
};

}  // namespace accrue::train
