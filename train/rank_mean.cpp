#include "accrue/train/rank_mean.h"

#include "accrue/autograd/leaf.h"
#include "accrue/train/bucket_parameters.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace accrue::train {
namespace {

double divisor_of(std::span<const std::string> weights) {
  double sum = 0;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    ACCRUE_CHECK(weights[rank].size() == weights[0].size(),
                 MismatchError,
                 "backward",
                 "all ranks must call backward() alike, got a loss without weight on some, rank ",
                 weights[0].empty() ? 0 : rank,
                 " among them; pass a Loss or a Variable everywhere");
    double weight = 1;
    std::memcpy(&weight, weights[rank].data(), weights[rank].size());
    sum += weight;
  }
  return sum;
}

}  // namespace

RankMean::RankMean(dist::ProcessGroup& group, nn::NamedParameters parameters)
    : rank_(group.rank()),
      parameters_(std::move(parameters)),
      bucketer_(group,
                bucket_parameters(parameters_),
                divisor_of,
                {.lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(group.size()))),
                 .overlap = false}) {}

double RankMean::reduce() {
  const auto grad_of = [](const Variable& parameter) { return parameter.grad(); };
  const auto set = [](const Variable& parameter, const Tensor& grad) {
    parameter.node()->as_leaf()->replace_grad(grad);
  };
  return reduce("", grad_of, set, false, {});
}

double RankMean::reduce(const GradientSums& sums, double weight, std::span<dist::NodeSum> more) {
  std::string told(sizeof(double), '\0');
  std::memcpy(told.data(), &weight, sizeof(double));
  const auto sum_of = [&](const Variable& parameter) { return sums.of(parameter); };
  const bool has_hooks = std::ranges::any_of(parameters_, [](const auto& entry) {
    return entry.second.node()->as_leaf()->has_final_hooks();
  });
  return reduce(std::move(told), sum_of, GradientSums::publish, has_hooks, more);
}

double RankMean::reduce(std::string told,
                        auto gradient_of,
                        auto publish,
                        bool may_throw,
                        std::span<dist::NodeSum> more) {
  bucketer_.begin(step_++, std::move(told));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = gradient_of(parameters_[i].second);
    if (grad.defined()) bucketer_.ready(i, {{{0, rank_, grad}}});
  }
  const double divisor = bucketer_.finish(more, may_throw);
  if (divisor == 0) return divisor;
  bucketer_.confirm_after([&] {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor grad = bucketer_.gradient(i);
      if (grad.defined()) publish(parameters_[i].second, grad);
    }
  });
  return divisor;
}

void RankMean::fail(const std::string& reason) { bucketer_.give_up(step_++, reason); }

}  // namespace accrue::train
