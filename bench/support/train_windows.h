// train_windows(): training as a user writes it, with a record of every step.
#pragma once

#include "accrue/accrue.h"
#include "accrue/tests/support/reference_model.h"

#include <vector>

namespace accrue::bench {

using LossFunction = Loss (*)(const Variable& outputs, const Tensor& labels);

inline Loss mse(const Variable& outputs, const Tensor& labels) { return nn::mse(outputs, labels); }
inline Loss cross_entropy(const Variable& outputs, const Tensor& labels) {
  return nn::cross_entropy(outputs, labels);
}

/// Trains `net` with loader, Accelerator and clipping for training.epochs, in windows of
/// training.global_batch_size and training.half precision. `batches` has batches of at most
/// training.micro_batch_size. The rest of the Accelerator's options is `options`.
std::vector<reference::Step> train_windows(nn::Layer& net,
                                           optim::Optimizer& optimizer,
                                           data::DataLoader& batches,
                                           LossFunction loss_of,
                                           const reference::Training& training,
                                           train::AcceleratorOptions options = {});

}  // namespace accrue::bench
