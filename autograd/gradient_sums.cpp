#include "accrue/autograd/gradient_sums.h"

#include "accrue/autograd/leaf.h"
#include "accrue/autograd/variable.h"

#include <algorithm>
#include <utility>

namespace accrue {

GradientSums::GradientSums() = default;
GradientSums::~GradientSums() { drop(); }

void GradientSums::finish(double divisor) {
  std::vector<Ref<Leaf>> leaves = std::exchange(leaves_, {});
  std::erase_if(leaves, [this](const auto& leaf) { return leaf->sums_ != this; });  // published
  std::vector<Tensor> sums;
  for (const Ref<Leaf>& leaf : leaves) sums.push_back(leaf->take_sum());
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i]->finish({{sums[i]}}, divisor);
}

Tensor GradientSums::of(const Variable& parameter) const {
  const Leaf& leaf = *parameter.node()->as_leaf();
  return leaf.sums_ == this ? leaf.sum_ : Tensor();
}

void GradientSums::publish(const Variable& parameter, const Tensor& gradient) {
  Leaf& leaf = *parameter.node()->as_leaf();
  leaf.take_sum();
  leaf.publish(gradient);
}

void GradientSums::drop() {
  for (const Ref<Leaf>& leaf : std::exchange(leaves_, {})) {
    if (leaf->sums_ == this) leaf->take_sum();
  }
}

bool GradientSums::has_hooks() const {
  return std::ranges::any_of(leaves_, [this](const Ref<Leaf>& leaf) {
    return leaf->sums_ == this && leaf->has_final_hooks();
  });
}

}  // namespace accrue
