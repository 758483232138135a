// Initial values of parameters, with torch's bits.
#pragma once

#include "accrue/core/generator.h"
#include "accrue/core/tensor.h"

namespace accrue::nn::init {

/// The bound of torch's kaiming_uniform_ for leaky ReLU, as nn.Linear uses it, in double:
/// sqrt(3) * (sqrt(2 / (1 + slope^2)) / sqrt(fan_in)). 0 for fan_in 0.
/// Errors: ValueError for a negative fan_in.
double kaiming_uniform_bound(std::int64_t fan_in, double slope);

/// Fills `tensor` from [-bound, bound) in row-major order. No draw for no elements.
/// Errors: DTypeError unless floating point; ValueError for a bound that is negative or not finite.
void uniform(Tensor& tensor, double bound, Generator& generator = default_generator());

}  // namespace accrue::nn::init
