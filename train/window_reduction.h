// The reduction of a window over all ranks: weight, loss and gradients.
#pragma once

#include "accrue/dist/process_group.h"
#include "accrue/train/loader.h"

#include <span>

namespace accrue::train {

struct WindowTotals {
  double weight = 0;
  double loss = 0;  ///< the sum of row losses
};

/// Collective: sums the window over all ranks. Each parameter that any rank used gets its gradient,
/// divided by the weight of all; a window of weight 0 is dropped.
///
/// Order:   that of one rank: lanes by the tree, then uses (contract 6, 7, 9, 14, 18).
/// Errors:  those of dist::sum_nodes; StateError when ranks have different class weights or a
///          parameter outside `parameters` was used; DTypeError unless all is float32.
WindowTotals reduce_window(dist::ProcessGroup& group,
                           std::span<const Variable> parameters,
                           LoaderPass& pass);

}  // namespace accrue::train
