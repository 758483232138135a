// Losses of batches: a sum and its weight, which Accelerator divides once per window.
#pragma once

#include "accrue/autograd/loss.h"
#include "accrue/autograd/ops/linear_cross_entropy.h"

namespace accrue::nn {

/// Cross-entropy between logits and class indices; weight: targets that are not ignored, or the
/// sum of their class weights.
///
/// Shapes:  logits [..., C], labels [...] int64: any number of rows per sample. The classes are
///          the last dimension, also where torch puts them second.
/// Errors:  ShapeError, and those of cross_entropy_rows.
Loss cross_entropy(const Variable& logits,
                   const Tensor& labels,
                   const CrossEntropyOptions& options = {});

/// cross_entropy(linear(hidden, weight, bias), labels) in the same bits, without all logits in
/// memory (autograd/ops/linear_cross_entropy.h).
///
/// Shapes:  hidden [..., H], weight [C, H], bias [C] or undefined, labels [...] int64.
/// Errors:  ShapeError, and those of linear_cross_entropy_rows.
Loss linear_cross_entropy(const Variable& hidden,
                          const Variable& weight,
                          const Variable& bias,
                          const Tensor& labels,
                          const CrossEntropyOptions& options = {});

/// The loss of a causal language model: the logits hidden weight^T of position t are held against
/// label t + 1. Labels are shifted here and nowhere else: pass the tokens themselves. The last
/// position of a sequence has no label and counts for nothing, as ignored labels do.
///
/// Shapes:  hidden [N, T, H], weight [C, H], labels [N, T] int64.
/// Errors:  ShapeError, and those of linear_cross_entropy.
Loss causal_lm_loss(const Variable& hidden,
                    const Variable& weight,
                    const Tensor& labels,
                    const CrossEntropyOptions& options = {});

/// Squared error; weight: elements.
///
/// Shapes:  x, y equal; a row is one innermost vector, or one element of a batch [N] from a loader.
/// Grad:    to both.
/// Errors:  those of mse_rows.
Loss mse(const Variable& x, const Variable& y);

/// nn::mse as an object.
struct MSELoss {
  Loss operator()(const Variable& x, const Variable& y) const { return nn::mse(x, y); }
};

/// nn::cross_entropy with its options.
struct CrossEntropyLoss {
  CrossEntropyOptions options = {};

  Loss operator()(const Variable& logits, const Tensor& labels) const {
    return nn::cross_entropy(logits, labels, options);
  }
};

}  // namespace accrue::nn
