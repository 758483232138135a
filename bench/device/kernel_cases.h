// Kernel cases: each kernel of a device with operands, at the sizes of a benchmark and at a small
// one.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/matrix.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace accrue::bench {

using Sizes = std::vector<std::int64_t>;

/// A kernel with its operands.
struct Work {
  std::function<void()> launch;  ///< may be called again
  std::vector<Tensor> results;   ///< float32, what the first launch writes
};

enum class Counted : std::uint8_t { flops, bytes };

struct KernelCase {
  std::string name;  ///< torch_rates.py has a twin of this name
  Counted counted;
  std::vector<Sizes> sizes;       ///< for rates
  Sizes small;                    ///< for bits: not a multiple of tiles or vectors
  double (*count)(const Sizes&);  ///< floating point operations, or bytes that no kernel can save
  Work (*make)(const Sizes&, Device);
};

std::vector<KernelCase> product_cases();
std::vector<KernelCase> image_cases();
std::vector<KernelCase> loss_cases();
std::vector<KernelCase> row_cases();
std::vector<KernelCase> element_cases();
/// All of the above.
std::vector<KernelCase> kernel_cases();

// ---- operands ----

/// Numbers in [-1, 1), the same on every device; they repeat after 2^20 elements.
Tensor numbers(const Shape& shape, Device device, std::uint64_t seed);
/// Integers in [0, limit).
Tensor indices(std::int64_t count, std::int64_t limit, Device device);
Tensor unwritten(const Shape& shape, Device device);

inline kernels::Matrix<const float> rows_of(const Tensor& x) {
  return kernels::row_major(x.data<float>(), x.size(0), x.size(1));
}
inline kernels::Matrix<float> out_rows_of(Tensor& x) {
  return kernels::row_major(x.mutable_data<float>(), x.size(0), x.size(1));
}

/// The product of all sizes, times `factor`.
inline double product(const Sizes& sizes, double factor) {
  for (const std::int64_t size : sizes) factor *= static_cast<double>(size);
  return factor;
}

}  // namespace accrue::bench
