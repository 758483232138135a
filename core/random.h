// Tensors of random numbers, with the bits of torch's functions on a CPU after manual_seed().
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>

namespace accrue {

// All draw from default_generator() in row-major order, and nothing where they throw. A window
// takes what they give for constants: see rule 13 of docs/numerics.md.

/// Uniform on [0, 1). Errors: DTypeError unless float32 or float64, ShapeError.
Tensor rand(const Shape& shape, DType dtype = DType::float32, Device device = {});

/// Normal with mean 0 and deviation 1. Fewer than 16 numbers share none with more: see
/// core/generator.h. Errors: as rand.
Tensor randn(const Shape& shape, DType dtype = DType::float32, Device device = {});

/// Errors: as rand; ValueError for a negative std.
Tensor normal(
    double mean, double std, const Shape& shape, DType dtype = DType::float32, Device device = {});

/// int64 in [low, high). Errors: ValueError unless low < high, ShapeError.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Device device = {});

/// 0, 1, ..., n - 1 in a random order, int64. Errors: ValueError for n < 0.
Tensor randperm(std::int64_t n, Device device = {});

/// 1 with the probability in each element of `p`, else 0. Mixed where p knows samples: what one
/// draws depends on those before it. Errors: DTypeError unless float32; ValueError outside [0, 1].
Tensor bernoulli(const Tensor& p);

}  // namespace accrue
