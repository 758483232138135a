// RankMean: the gradients of plain backward passes, summed over ranks and divided.
#pragma once

#include "accrue/autograd/gradient_sums.h"
#include "accrue/dist/bucketer.h"
#include "accrue/nn/module.h"

#include <span>

namespace accrue::train {

/// What a bucketer must know of them.
std::vector<dist::BucketParameter> bucket_parameters(const nn::NamedParameters& parameters);
/// Whether hooks, which may throw, run on a finished gradient of any of them.
bool have_final_hooks(const nn::NamedParameters& parameters);

/// Reduces what plain backward passes left in grad(), where windows have no part. Each rank's
/// gradient is one node of the tree.
///
/// Order:    parameters apart; ranks by the aligned binary tree over rank numbers, left + right;
///           then one division.
/// Errors:   those of dist::Bucketer; DTypeError for gradients that are not float32.
/// Threads:  belongs to one thread. Lifetime: shares the parameters.
class RankMean {
 public:
  /// Collective: compares names, shapes and dtypes.
  RankMean(dist::ProcessGroup& group, nn::NamedParameters parameters);

  /// Collective: each parameter that has a gradient on any rank gets the sum over all ranks,
  /// divided by their number. Returns the divisor.
  ///
  /// With `sums` the same of these, whose parameters have no gradient yet, divided by the sum of
  /// what ranks pass as `weight`; those of other parameters are divided by this rank's. A weight of
  /// 0 leaves gradients as they are. `more` are summed too. Hooks run: where one throws, all ranks
  /// throw. Errors also: MismatchError on all ranks when some reduce without `sums`.
  double reduce(GradientSums* sums = nullptr,
                double weight = 0,
                std::span<dist::NodeSum> more = {});
  /// Collective, where the others reduce(): they throw DistributedError with `reason`.
  void fail(const std::string& reason);

 private:
  int rank_;
  nn::NamedParameters parameters_;
  dist::Bucketer bucketer_;
  std::int64_t step_ = 0;
};

}  // namespace accrue::train
