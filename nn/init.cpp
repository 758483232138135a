#include "accrue/nn/init.h"

#include "accrue/core/error.h"

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

}  // namespace accrue::nn::init
