#include "accrue/train/distributed_data_parallel.h"

#include "accrue/dist/world.h"
#include "accrue/train/model_broadcast.h"

namespace accrue::train {

GradientAveraging::GradientAveraging(nn::Module& model,
                                     const DistributedDataParallelOptions& options)
    : owned_(options.process_group ? nullptr : dist::world()),
      group_(options.process_group ? options.process_group : owned_.get()),
      model_(model),
      broadcast_buffers_(options.broadcast_buffers) {
  if (group_->size() == 1) return;
  broadcast_model(*group_, model_);
  mean_.emplace(*group_, model_.named_parameters());
}

void GradientAveraging::backward(const Variable& loss,
                                 const Tensor& gradient,
                                 BackwardOptions options) {
  const bool averages = mean_ && num_no_sync_ == 0;
  try {
    loss.backward(gradient, options);
  } catch (const std::exception& error) {
    if (averages) mean_->fail(error.what());
    throw;
  }
  if (!averages) return;
  mean_->reduce();
  if (broadcast_buffers_) broadcast_buffers(*group_, model_);
}

}  // namespace accrue::train
