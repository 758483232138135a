// The models that accumulation_invariance trains, each described once and trained twice: by the
// library and by the scalar reference model.
#pragma once

#include "accrue/tests/support/reference_model.h"
#include "accrue/train/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace accrue::bench {

/// A model before training. Its data set has `num_samples` samples; take as many as needed.
struct InvarianceCase {
  std::string name;
  reference::Model model = {};
  std::vector<reference::Sample> samples = {};
};

/// A linear layer; an MLP of 11,332 parameters that uses one layer twice; a model of padded token
/// sequences with cross-entropy, where some labels, and all labels of some samples, are ignored.
std::vector<InvarianceCase> invariance_cases(std::int64_t num_samples);

/// Trains a copy of the case by the library, with loader, Accelerator, clipping and SGD, in
/// micro-batches of training.micro_batch_size. `options` adds ranks and their dealing.
std::vector<reference::Step> train_by_library(const InvarianceCase& start,
                                              const reference::Training& training,
                                              const train::AcceleratorOptions& options = {});

}  // namespace accrue::bench
