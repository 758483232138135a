#include "accrue/nn/loss.h"

#include "accrue/autograd/ops/views.h"

namespace accrue::nn {

Loss cross_entropy(const Variable& logits,
                   const Tensor& labels,
                   const CrossEntropyOptions& options) {
  Shape rows = logits.shape();
  if (rows.rank() > 0) rows.erase(rows.rank() - 1);
  ACCRUE_CHECK(logits.rank() >= 2 && labels.shape() == rows,
               ShapeError,
               "cross_entropy",
               "logits must be [..., C] and labels [...], got ",
               logits.shape(),
               " and ",
               labels.shape(),
               "; move the classes to the last dimension");
  const Variable flat = logits.rank() == 2 ? logits : flatten(logits, 0, -2);
  const Tensor targets = labels.flatten();
  return Loss::from_rows(cross_entropy_rows(flat, targets, options),
                         cross_entropy_weight(targets, options));
}

Loss mse(const Variable& x, const Variable& y) {
  const Variable rows = mse_rows(x, y);
  return Loss::from_rows(rows.rank() > 0 ? rows : reshape(rows, {1}), x.numel());
}

}  // namespace accrue::nn
