// Losses: row losses of cross-entropy and squared error, and torch's reductions of them.
#pragma once

#include "accrue/autograd/variable.h"

namespace accrue {

enum class Reduction : unsigned char { none, sum, mean };

struct CrossEntropyOptions {
  Tensor class_weights = {};         ///< [C] or undefined
  std::int64_t ignore_index = -100;  ///< rows with this target count for nothing
  double label_smoothing = 0;        ///< in [0, 1]
};

/// Cross-entropy of each row: -log_softmax(logits)[target], smoothed and weighted as torch does.
///
/// Shapes:  logits [N, C], target [N] int64, result [N]. C >= 1 unless N = 0.
/// Units:   nats.
/// Order:   over C in the shape of core/sum_order.h; rows do not depend on each other.
/// Grad:    to logits only; an ignored row gives +0, also when it holds NaN.
/// Errors:  IndexError (target outside [0, C), before any other memory is read), ShapeError,
///          DTypeError, ValueError (label_smoothing).
Variable cross_entropy_rows(const Variable& logits,
                            const Tensor& target,
                            const CrossEntropyOptions& options = {});

/// Sum over the last dimension of (x - y)^2 for each row.
///
/// Shapes:  x, y [..., C] equal, result [...]. A sample-major vector [N] has N rows.
/// Order:   core/sum_order.h with fma per element.
/// Errors:  ShapeError (no broadcasting), DTypeError.
Variable mse_rows(const Variable& x, const Variable& y);

/// torch's cross_entropy: the rows, their sum, or their mean over the weights of the targets (NaN
/// for none). In a window use nn::cross_entropy. Errors: as cross_entropy_rows.
Variable cross_entropy(const Variable& logits,
                       const Tensor& target,
                       const CrossEntropyOptions& options = {},
                       Reduction reduction = Reduction::mean);

/// torch's mse_loss: elements, their sum, or their mean (NaN for none). Errors: as mse_rows.
Variable mse_loss(const Variable& x, const Variable& y, Reduction reduction = Reduction::mean);

/// The weights of the targets that are not ignored: a count, or counts per class with the weights.
/// Errors: IndexError (target outside the class weights), DTypeError.
class LossWeight cross_entropy_weight(const Tensor& target, const CrossEntropyOptions& options);

/// For operations: the sample axis of row losses, from that of the logits' rows.
SampleAxis row_axis(SampleAxis logits, const Tensor& target, const CrossEntropyOptions& options);

/// For operations. Errors: DTypeError, ShapeError naming `operation` unless target is int64 and the
/// class weights, if any, are [num_classes] of `dtype`.
void check_cross_entropy_options(const char* operation,
                                 const Tensor& target,
                                 const CrossEntropyOptions& options,
                                 std::int64_t num_classes,
                                 DType dtype);

}  // namespace accrue
