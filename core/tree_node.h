// TreeNode: a partial sum and the lanes it covers in the aligned binary tree (contract 6).
#pragma once

#include "accrue/core/tensor.h"

namespace accrue {

/// Node (level, index) covers lanes [index << level, (index + 1) << level).
struct TreeNode {
  int level = 0;
  int index = 0;
  Tensor partial;
};

}  // namespace accrue
