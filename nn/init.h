// Initial values of parameters, with torch's bits.
#pragma once

#include "accrue/core/generator.h"
#include "accrue/core/tensor.h"

namespace accrue::nn::init {

// Bounds and deviations are computed in double, as torch does. Errors of all functions that fill:
// DTypeError unless floating point; others where said.

/// The bound of torch's kaiming_uniform_ for leaky ReLU, as nn.Linear uses it, in double:
/// sqrt(3) * (sqrt(2 / (1 + slope^2)) / sqrt(fan_in)). 0 for fan_in 0.
/// Errors: ValueError for a negative fan_in.
double kaiming_uniform_bound(std::int64_t fan_in, double slope);

/// Fills `tensor` from [-bound, bound) in row-major order. No draw for no elements.
/// Errors also: ValueError for a bound that is negative or not finite.
void uniform(Tensor& tensor, double bound, Generator& generator = default_generator());

/// Fills `tensor` with normal numbers in row-major order: torch's bits, which follow one rule below
/// 16 elements and another from there on.
/// Errors also: ValueError for a negative std.
void normal(Tensor& tensor,
            double mean = 0,
            double std = 1,
            Generator& generator = default_generator());

/// Inputs and outputs of one unit of a weight [out, in, ...]: sizes 1 and 0, each times the sizes
/// behind them.
struct Fans {
  std::int64_t in = 0, out = 0;
};
/// Errors: ShapeError below two dimensions.
Fans fans_of(const Shape& weight);

/// What follows the layer, for the gain of torch's calculate_gain.
enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// 1, 1, 5/3, sqrt(2), sqrt(2 / (1 + slope^2)), 3/4.
double gain_of(Nonlinearity nonlinearity, double slope = 0.01);

enum class FanMode : std::uint8_t { in, out };

/// Uniform within gain * sqrt(6 / (fan in + fan out)).
/// Errors of these and what follows also: ShapeError below two dimensions.
void xavier_uniform(Tensor& tensor, double gain = 1, Generator& generator = default_generator());
/// Normal with deviation gain * sqrt(2 / (fan in + fan out)).
void xavier_normal(Tensor& tensor, double gain = 1, Generator& generator = default_generator());

/// What kaiming_uniform and kaiming_normal take, with torch's defaults.
struct KaimingOptions {
  double slope = 0;  ///< of leaky ReLU
  FanMode mode = FanMode::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
/// Uniform within sqrt(3) * gain / sqrt(fan).
void kaiming_uniform(Tensor& tensor,
                     const KaimingOptions& options = {},
                     Generator& generator = default_generator());
/// Normal with deviation gain / sqrt(fan).
void kaiming_normal(Tensor& tensor,
                    const KaimingOptions& options = {},
                    Generator& generator = default_generator());

/// An orthogonal matrix times `gain`: of the weight as [out, rest], the rows or the columns,
/// whichever are fewer, are orthogonal and have length `gain`. The normal numbers drawn are
/// torch's; their QR decomposition, with a positive diagonal of R, is computed in double by
/// Gram-Schmidt, twice over, so the result is within rounding of torch's.
void orthogonal(Tensor& tensor, double gain = 1, Generator& generator = default_generator());

}  // namespace accrue::nn::init
