// Collating: the samples of a micro-batch become tensors whose sample axis is known.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/data/dataset.h"

#include <span>
#include <vector>

namespace accrue::data {

/// Stacks each field along a new first dimension.
///
/// Shapes:  N samples of fields [*] give tensors [N, *] with sample axis 0.
/// Errors:  ValueError for no samples or no fields; ShapeError, DTypeError naming the sample.
std::vector<Tensor> default_collate(std::span<const Sample> samples);

/// Joins sequences of unequal length, as torch.nn.utils.rnn.pad_sequence does.
///
/// Shapes:  sequences [T_i, *] give [N, max T, *], or [max T, N, *] unless `batch_first`; the
///          sample axis is set.
/// Errors:  ValueError for no sequences; ShapeError, DTypeError naming the sequence.
Tensor pad_sequence(std::span<const Tensor> sequences,
                    double padding_value = 0,
                    bool batch_first = true);

/// Pads the sequences of each field to the longest of the micro-batch; stacks scalar fields.
///
/// Field f is padded with padding_values[f], fields beyond the list with 0. The default pads tokens
/// with 0 and labels with -100, the label that losses ignore.
/// Errors:  as default_collate; lengths may differ.
struct PadCollate {
  std::vector<double> padding_values = {0, -100};

  std::vector<Tensor> operator()(std::span<const Sample> samples) const;
};

}  // namespace accrue::data
