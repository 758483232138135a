#include "accrue/nn/init.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace accrue::nn::init {

double kaiming_uniform_bound(std::int64_t fan_in, double slope) {
  ACCRUE_CHECK(
      fan_in >= 0, ValueError, "kaiming_uniform_bound", "fan_in must be >= 0, got ", fan_in);
  if (fan_in == 0) return 0;
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  const double std = gain / std::sqrt(static_cast<double>(fan_in));
  return std::sqrt(3.0) * std;
}

void uniform(Tensor& tensor, double bound, Generator& generator) {
  visit_floating(tensor.dtype(), "uniform", [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(tensor.numel()));
    generator.uniform(std::span<T>(values), -bound, bound);
    tensor.copy_from(Tensor::from(values, tensor.shape()));
  });
}

void normal(Tensor& tensor, double mean, double std, Generator& generator) {
  visit_floating(tensor.dtype(), "normal", [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(tensor.numel()));
    generator.normal(std::span<T>(values), mean, std);
    tensor.copy_from(Tensor::from(values, tensor.shape()));
  });
}

Fans fans_of(const Shape& weight) {
  ACCRUE_CHECK(weight.rank() >= 2,
               ShapeError,
               "init",
               "a weight must have two dimensions or more, got ",
               weight);
  const std::int64_t field = product(weight, 2, weight.rank());
  return {weight[1] * field, weight[0] * field};
}

double gain_of(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      return 1;
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2.0 / (1 + slope * slope));
    case Nonlinearity::selu:
      break;
  }
  return 3.0 / 4;
}

namespace {

double xavier_deviation(const Tensor& tensor, double gain) {
  const Fans fans = fans_of(tensor.shape());
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

double kaiming_deviation(const Tensor& tensor, const KaimingOptions& options) {
  const Fans fans = fans_of(tensor.shape());
  const std::int64_t fan = options.mode == FanMode::in ? fans.in : fans.out;
  return gain_of(options.nonlinearity, options.slope) / std::sqrt(static_cast<double>(fan));
}

}  // namespace

void xavier_uniform(Tensor& tensor, double gain, Generator& generator) {
  const double std = xavier_deviation(tensor, gain);
  if (tensor.numel() > 0) uniform(tensor, std::sqrt(3.0) * std, generator);
}

void xavier_normal(Tensor& tensor, double gain, Generator& generator) {
  const double std = xavier_deviation(tensor, gain);
  if (tensor.numel() > 0) normal(tensor, 0, std, generator);
}

void kaiming_uniform(Tensor& tensor, const KaimingOptions& options, Generator& generator) {
  const double std = kaiming_deviation(tensor, options);
  if (tensor.numel() > 0) uniform(tensor, std::sqrt(3.0) * std, generator);
}

void kaiming_normal(Tensor& tensor, const KaimingOptions& options, Generator& generator) {
  const double std = kaiming_deviation(tensor, options);
  if (tensor.numel() > 0) normal(tensor, 0, std, generator);
}

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Makes each vector orthogonal to those before it and gives it length 1. The second round removes
/// what rounding left in the first.
void orthonormalize(std::vector<std::vector<double>>& vectors) {
  for (std::size_t j = 0; j < vectors.size(); ++j) {
    std::vector<double>& v = vectors[j];
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < j; ++i) {
        const double along = dot(vectors[i], v);
        for (std::size_t k = 0; k < v.size(); ++k) v[k] -= along * vectors[i][k];
      }
      const double length = std::sqrt(dot(v, v));
      for (double& x : v) x /= length;
    }
  }
}

}  // namespace

void orthogonal(Tensor& tensor, double gain, Generator& generator) {
  fans_of(tensor.shape());  // refuses vectors
  if (tensor.numel() == 0) return;
  const auto rows = static_cast<std::size_t>(tensor.size(0));
  const std::size_t cols = static_cast<std::size_t>(tensor.numel()) / rows;
  visit_floating(tensor.dtype(), "orthogonal", [&]<class T>(T) {
    std::vector<T> values(rows * cols);
    generator.normal(std::span<T>(values), 0, 1);
    const bool by_rows = rows < cols;
    const std::size_t count = std::min(rows, cols), size = std::max(rows, cols);
    const auto at = [&](std::size_t vector, std::size_t i) -> T& {
      return by_rows ? values[vector * cols + i] : values[i * cols + vector];
    };
    std::vector<std::vector<double>> vectors(count, std::vector<double>(size));
    for (std::size_t v = 0; v < count; ++v) {
      for (std::size_t i = 0; i < size; ++i) vectors[v][i] = static_cast<double>(at(v, i));
    }
    orthonormalize(vectors);
    for (std::size_t v = 0; v < count; ++v) {
      for (std::size_t i = 0; i < size; ++i) at(v, i) = static_cast<T>(gain * vectors[v][i]);
    }
    tensor.copy_from(Tensor::from(values, tensor.shape()));
  });
}

}  // namespace accrue::nn::init
