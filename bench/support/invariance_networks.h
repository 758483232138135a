// The networks that accumulation_invariance trains by the library alone: too large to be written
// down a second time.
#pragma once

#include "accrue/accrue.h"
#include "accrue/tests/support/reference_model.h"

#include <memory>
#include <string>
#include <vector>

namespace accrue::bench {

struct Network {
  std::string name;
  std::unique_ptr<nn::Layer> (*make)();  ///< the same weights each time
  std::unique_ptr<optim::Optimizer> (*optimizer_of)(const nn::Layer& net);
  std::vector<Tensor> data;  ///< inputs and labels, samples first
};

/// A GPT of two blocks with dropout, a few labels ignored, by AdamW; a net of two convolutions with
/// max and average pooling, by Adam. As many samples as asked for.
std::vector<Network> networks(std::int64_t num_samples);

/// Trains a new copy on the first `num_samples` samples.
std::vector<reference::Step> train_by_library(const Network& network,
                                              std::int64_t num_samples,
                                              const reference::Training& training,
                                              const train::AcceleratorOptions& options = {});

}  // namespace accrue::bench
