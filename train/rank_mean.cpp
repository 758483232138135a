#include "accrue/train/rank_mean.h"

#include "accrue/autograd/leaf.h"
#include "accrue/dist/caught_text.h"

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

std::vector<dist::BucketParameter> bucket_parameters(const nn::NamedParameters& parameters) {
  std::vector<dist::BucketParameter> result;
  for (const auto& [name, parameter] : parameters)
    result.push_back({name, parameter.shape(), parameter.dtype(), parameter.value().device()});
  return result;
}

bool have_final_hooks(const nn::NamedParameters& parameters) {
  return std::ranges::any_of(parameters, [](const auto& entry) {
    return entry.second.node()->as_leaf()->has_final_hooks();
  });
}

RankMean::RankMean(dist::ProcessGroup& group, nn::NamedParameters parameters)
    : rank_(group.rank()),
      parameters_(std::move(parameters)),
      bucketer_(group,
                bucket_parameters(parameters_),
                divisor_of,
                {.lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(group.size()))),
                 .overlap = false}) {}

double RankMean::reduce(GradientSums* sums, double weight, std::span<dist::NodeSum> more) {
  const bool may_throw = sums && (sums->has_hooks() || have_final_hooks(parameters_));
  std::string told(sums ? sizeof(double) : 0, 0);
  std::memcpy(told.data(), &weight, told.size());
  bucketer_.begin(step_++, std::move(told));
  try {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Variable& parameter = parameters_[i].second;
      const Tensor mine = sums ? sums->of(parameter) : parameter.grad();
      if (mine.defined()) bucketer_.ready(i, {{{0, rank_, mine}}});
    }
  } catch (...) {  // a window still adds up a gradient
    bucketer_.give_up(step_, dist::caught_text());
    throw;
  }
  const double divisor = bucketer_.finish(more, may_throw);
  if (divisor == 0) return divisor;
  bucketer_.confirm_after([&] {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor grad = bucketer_.gradient(i);
      if (!grad.defined()) continue;
      const Variable& parameter = parameters_[i].second;
      sums ? GradientSums::publish(parameter, grad)
           : parameter.node()->as_leaf()->replace_grad(grad);
    }
    if (sums && weight != 0) sums->finish(weight);
  });
  return divisor;
}

void RankMean::fail(const std::string& reason) { bucketer_.give_up(step_++, reason); }

}  // namespace accrue::train
