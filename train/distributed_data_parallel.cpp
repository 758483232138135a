#include "accrue/train/distributed_data_parallel.h"

#include "accrue/dist/caught_text.h"
#include "accrue/dist/world.h"
#include "accrue/train/model_broadcast.h"

namespace accrue::train {

GradientAveraging::GradientAveraging(const nn::Module& model,
                                     const DistributedDataParallelOptions& options)
    : owned_(options.process_group ? nullptr : dist::world()),
      group_(options.process_group ? options.process_group : owned_.get()),
      broadcasts_buffers_(options.broadcast_buffers) {
  if (group_->size() == 1) return;
  broadcast_model(*group_, model);
  mean_.emplace(*group_, model.named_parameters());
  for (const auto& [name, buffer] : model.named_buffers()) buffers_.push_back(buffer);
}

void GradientAveraging::backward(const Variable& loss,
                                 const Tensor& gradient,
                                 BackwardOptions options) {
  const bool averages = mean_ && num_no_sync_ == 0;
  try {
    loss.backward(gradient, options);
  } catch (...) {
    if (averages) mean_->fail(dist::caught_text());
    throw;
  }
  if (!averages) return;
  mean_->reduce();
  if (!broadcasts_buffers_) return;
  for (Tensor& buffer : buffers_) group_->broadcast(buffer);
}

}  // namespace accrue::train
