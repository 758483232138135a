// bucket_parameters: what a bucketer must know of a model's parameters.
#pragma once

#include "accrue/dist/bucket_layout.h"
#include "accrue/nn/module.h"

namespace accrue::train {

inline std::vector<dist::BucketParameter> bucket_parameters(const nn::NamedParameters& parameters) {
  std::vector<dist::BucketParameter> result;
  for (const auto& [name, parameter] : parameters)
    result.push_back({name, parameter.shape(), parameter.dtype(), parameter.value().device()});
  return result;
}

}  // namespace accrue::train
