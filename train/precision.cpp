#include "accrue/train/precision.h"

#include <cstdlib>

namespace accrue::train {
namespace {

constexpr const char* kVariable = "ACCELERATE_MIXED_PRECISION";

std::optional<MixedPrecision> find(std::string_view name) {
  for (const auto precision : {MixedPrecision::no, MixedPrecision::bf16, MixedPrecision::fp16}) {
    if (name == name_of(precision)) return precision;
  }
  return std::nullopt;
}

/// Gradients of a sum are larger than those of a mean by the weight.
optim::GradScalerOptions scaler_options(const AcceleratorOptions& options) {
  optim::GradScalerOptions standard;
  if (!options.compat.upstream_accumulation) standard.init_scale = 1024;
  return options.grad_scaler.value_or(standard);
}

}  // namespace

const char* name_of(MixedPrecision precision) {
  constexpr const char* kNames[] = {"no", "bf16", "fp16"};
  return kNames[static_cast<int>(precision)];
}

MixedPrecision mixed_precision_of(std::string_view name) {
  const auto found = find(name);
  ACCRUE_CHECK(found,
               ValueError,
               "accelerator",
               "mixed_precision must be no, bf16 or fp16, got '",
               name,
               "'");
  return *found;
}

MixedPrecision mixed_precision_or_environment(std::optional<MixedPrecision> given) {
  const char* const name = std::getenv(kVariable);
  if (given || !name) return given.value_or(MixedPrecision::no);
  const auto found = find(name);
  ACCRUE_CHECK(found,
               ValueError,
               "accelerator",
               kVariable,
               " must be no, bf16 or fp16, got '",
               name,
               "'; unset it, or give mixed_precision");
  return *found;
}

std::optional<DType> dtype_of_products(MixedPrecision precision) {
  if (precision == MixedPrecision::no) return std::nullopt;
  return precision == MixedPrecision::bf16 ? DType::bfloat16 : DType::float16;
}

LossScale::LossScale(const AcceleratorOptions& options) {
  if (options.mixed_precision == MixedPrecision::fp16) scaler_.emplace(scaler_options(options));
}

bool LossScale::unscale(const optim::ParameterList& parameters, dist::ProcessGroup& group) {
  drop();
  const double scale = scaler_->scale();
  bool overflowed = optim::unscale_gradients(parameters, scale);
  if (group.size() > 1) {
    const Tensor mine = Tensor::of<double>({overflowed ? 1.0 : 0.0, scale});
    const std::vector<double> told = group.all_gather(mine).to_vector<double>();
    for (std::size_t rank = 0; 2 * rank < told.size(); ++rank) {
      ACCRUE_CHECK(told[2 * rank + 1] == told[1],
                   MismatchError,
                   "accelerator",
                   "all ranks must scale the loss alike, got ",
                   told[1],
                   " on rank 0 and ",
                   told[2 * rank + 1],
                   " on rank ",
                   rank,
                   "; load the same scaler state everywhere");
      overflowed |= told[2 * rank] != 0;
    }
  }
  scaler_->update(overflowed);
  return overflowed;
}

}  // namespace accrue::train
