#include "accrue/nn/loss.h"

#include "accrue/autograd/ops/views.h"

namespace accrue::nn {
namespace {

/// The labels as a vector. Errors: ShapeError naming `operation` unless each row of x has one.
Tensor flat_labels(const char* operation,
                   const Variable& x,
                   const char* must,
                   const Tensor& labels,
                   const char* advice) {
  Shape rows = x.shape();
  if (rows.rank() > 0) rows.erase(rows.rank() - 1);
  ACCRUE_CHECK(x.rank() >= 2 && labels.shape() == rows,
               ShapeError,
               operation,
               must,
               " and labels [...], got ",
               x.shape(),
               " and ",
               labels.shape(),
               advice);
  return labels.flatten();
}

Variable flat_rows(const Variable& x) { return x.rank() == 2 ? x : flatten(x, 0, -2); }

}  // namespace

Loss cross_entropy(const Variable& logits,
                   const Tensor& labels,
                   const CrossEntropyOptions& options) {
  const Tensor targets = flat_labels("cross_entropy",
                                     logits,
                                     "logits must be [..., C]",
                                     labels,
                                     "; move the classes to the last dimension");
  return Loss::from_rows(cross_entropy_rows(flat_rows(logits), targets, options),
                         cross_entropy_weight(targets, options));
}

Loss linear_cross_entropy(const Variable& hidden,
                          const Variable& weight,
                          const Variable& bias,
                          const Tensor& labels,
                          const CrossEntropyOptions& options) {
  const Tensor targets = flat_labels("linear_cross_entropy",
                                     hidden,
                                     "hidden must be [..., H]",
                                     labels,
                                     "; give each hidden row one label");
  return Loss::from_rows(
      linear_cross_entropy_rows(flat_rows(hidden), weight, bias, targets, options),
      cross_entropy_weight(targets, options));
}

Loss causal_lm_loss(const Variable& hidden,
                    const Variable& weight,
                    const Tensor& labels,
                    const CrossEntropyOptions& options) {
  ACCRUE_CHECK(hidden.rank() == 3 && labels.rank() == 2 && labels.size(0) == hidden.size(0) &&
                   labels.size(1) == hidden.size(1),
               ShapeError,
               "causal_lm_loss",
               "hidden must be [N, T, H] and labels [N, T], got ",
               hidden.shape(),
               " and ",
               labels.shape(),
               "; pass a label for each position, not shifted");
  ACCRUE_CHECK(labels.dtype() == DType::int64,
               DTypeError,
               "causal_lm_loss",
               "labels must be int64, got ",
               labels.dtype(),
               "; convert with to()");
  const std::int64_t last = labels.shape()[1] - 1;
  Tensor next = Tensor::empty(labels.shape(), DType::int64, labels.device());
  if (next.numel() > 0) {
    const Tensor none = Tensor::of<std::int64_t>({options.ignore_index}).to(labels.device());
    next.narrow(1, 0, last).copy_from(labels.narrow(1, 1, last));
    next.narrow(1, last, 1).copy_from(none.expand({labels.size(0), 1}));
  }
  return linear_cross_entropy(
      hidden, weight, {}, next.with_sample_axis(labels.sample_axis()), options);
}

Loss mse(const Variable& x, const Variable& y) {
  const Variable rows = mse_rows(x, y);
  return Loss::from_rows(rows.rank() > 0 ? rows : reshape(rows, {1}), x.numel());
}

}  // namespace accrue::nn
