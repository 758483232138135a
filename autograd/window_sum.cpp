#include "accrue/autograd/window_sum.h"

#include "accrue/kernels/launch.h"
#include "accrue/kernels/linear.h"

namespace accrue {

void WindowSum::add(const MicroBatch& batch, const Tensor& rows, std::int64_t rows_per_sample) {
  if (!lanes_) {
    lanes_.emplace(batch.window().span());
    if (!like_.defined() || like_.dtype() != rows.dtype() || like_.device() != rows.device())
      like_ = Tensor::empty({1}, rows.dtype(), rows.device());
  }
  LaneTarget target = lanes_->plan(batch.begin(), batch.end(), rows_per_sample, like_);
  if (target.instructions.empty()) return;
  visit_floating(rows.dtype(), "loss", [&]<class T>(T) {
    const std::vector<T*> buffers = target.pointers<T>();
    kernels::launch(
        rows.device(),
        kernels::LinearBiasGrad<T>{
            {rows.data<T>(), rows.numel(), 1, rows.strides()[0], 1}, target.program(), buffers});
  });
}

std::vector<TreeNode> WindowSum::close() {
  if (!lanes_) return {};
  std::vector<TreeNode> nodes = lanes_->finish(like_);
  for (TreeNode& node : nodes) node.partial = node.partial.to(Device::cpu());
  lanes_.reset();
  return nodes;
}

double WindowSum::finish() {
  if (!lanes_) return 0;
  const std::vector<TreeNode>& nodes = lanes_->finish(like_);
  const Tensor root = nodes.empty() ? Tensor() : nodes.front().partial;
  lanes_.reset();
  if (!root.defined()) return 0;
  return visit_floating(root.dtype(), "loss", [&]<class T>(T) -> double { return root.item<T>(); });
}

}  // namespace accrue
