#include "accrue/train/precision.h"

#include <cstdlib>

namespace accrue::train {
namespace {

constexpr const char* kVariable = "ACCELERATE_MIXED_PRECISION";

MixedPrecision find(const char* what, std::string_view name, const char* advice) {
  for (const auto precision : {MixedPrecision::no, MixedPrecision::bf16, MixedPrecision::fp16}) {
    if (name == name_of(precision)) return precision;
  }
  throw ValueError(
      text("[accelerator] ", what, " must be no, bf16 or fp16, got '", name, "'", advice));
}

}  // namespace

const char* name_of(MixedPrecision precision) {
  constexpr const char* kNames[] = {"no", "bf16", "fp16"};
  return kNames[static_cast<int>(precision)];
}

MixedPrecision mixed_precision_of(std::string_view name) {
  return find("mixed_precision", name, "");
}

MixedPrecision mixed_precision_or_environment(std::optional<MixedPrecision> given) {
  const char* const name = std::getenv(kVariable);
  if (given || !name) return given.value_or(MixedPrecision::no);
  return find(kVariable, name, "; unset it, or give mixed_precision");
}

std::optional<DType> dtype_of_products(MixedPrecision precision) {
  if (precision == MixedPrecision::no) return std::nullopt;
  return precision == MixedPrecision::bf16 ? DType::bfloat16 : DType::float16;
}

/// Gradients of a sum are larger than those of a mean by the weight.
std::optional<optim::GradScaler> scaler_for(const AcceleratorOptions& options) {
  if (options.mixed_precision != MixedPrecision::fp16) return std::nullopt;
  optim::GradScalerOptions standard;
  if (!options.compat.upstream_accumulation) standard.init_scale = 1024;
  return optim::GradScaler(options.grad_scaler.value_or(standard));
}

bool unscale(optim::GradScaler& scaler,
             const optim::ParameterList& parameters,
             double scale,
             dist::ProcessGroup& group) {
  bool overflowed = optim::unscale_gradients(parameters, scale);
  if (group.size() > 1) {
    const Tensor mine = Tensor::of<double>({overflowed ? 1.0 : 0.0, scale});
    const std::vector<double> told = group.all_gather(mine).to_vector<double>();
    for (std::size_t rank = 0; 2 * rank < told.size(); ++rank) {
      const double theirs = told[2 * rank + 1];
      ACCRUE_CHECK(theirs == told[1],
                   MismatchError,
                   "accelerator",
                   "all ranks must scale the loss alike, got ",
                   text(told[1], " on rank 0 and ", theirs, " on rank ", rank),
                   "; load the same scaler state everywhere");
      overflowed |= told[2 * rank] != 0;
    }
  }
  scaler.update(overflowed);
  return overflowed;
}

}  // namespace accrue::train
