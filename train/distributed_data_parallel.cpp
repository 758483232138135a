#include "accrue/train/distributed_data_parallel.h"

namespace accrue::train {

GradientAveraging::GradientAveraging(const nn::Module& model,
                                     const DistributedDataParallelOptions& options)
    : ranks_(options.process_group),
      replicas_(ranks_.process_group()),
      broadcasts_buffers_(options.broadcast_buffers) {
  replicas_.add(model);
  if (replicas_.are_several()) replicas_.mean();
}

void GradientAveraging::backward(const Variable& loss,
                                 const Tensor& gradient,
                                 BackwardOptions options) {
  const bool averages = replicas_.are_several() && num_no_sync_ == 0;
  replicas_.run(averages, [&] { loss.backward(gradient, options); });
  if (averages && broadcasts_buffers_) replicas_.broadcast_buffers();
}

}  // namespace accrue::train
