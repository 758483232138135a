// Kernel cases: each kernel of a device with operands, at a small size and, where rates say
// something, at the sizes of a benchmark.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/matrix.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace accrue::bench {

using Sizes = std::vector<std::int64_t>;

/// A kernel with its operands.
struct Work {
  std::function<void()> launch;  ///< may be called again
  std::vector<Tensor> results;   ///< what the first launch writes
};

enum class Counted : std::uint8_t { flops, bytes };

struct KernelCase {
  std::string name;  ///< torch_rates.py has a twin of this name if there are sizes
  Counted counted;
  std::vector<Sizes> sizes;       ///< for rates; none where bits are enough
  Sizes small;                    ///< for bits: not a multiple of tiles or vectors
  double (*count)(const Sizes&);  ///< floating point operations, or bytes that no kernel can save
  std::function<Work(const Sizes&, Device)> make;
};

/// A case of which no rate is wanted.
inline KernelCase bits_alone(std::string name,
                             Sizes small,
                             std::function<Work(const Sizes&, Device)> make) {
  return {std::move(name), Counted::bytes, {}, std::move(small), nullptr, std::move(make)};
}

std::vector<KernelCase> product_cases();
std::vector<KernelCase> image_cases();
std::vector<KernelCase> loss_cases();
std::vector<KernelCase> row_cases();
std::vector<KernelCase> sum_cases();
std::vector<KernelCase> function_cases();
std::vector<KernelCase> copy_cases();
std::vector<KernelCase> optimizer_cases();
/// All of the above.
std::vector<KernelCase> kernel_cases();

// ---- operands ----

/// Float32 numbers in [low, high), the same on every device; they repeat after 2^20 elements.
Tensor numbers(
    const Shape& shape, Device device, std::uint64_t seed, double low = -1, double high = 1);
/// The same tensor, dense, whose first elements are now values that formulas treat apart: zeros,
/// infinities, NaN, ... A second operand with `is_second` meets each of them in every pair.
Tensor with_edges(const Tensor& x, bool is_second = false);
/// Integers in [0, limit).
Tensor indices(std::int64_t count, std::int64_t limit, Device device, std::uint64_t seed = 9);
Tensor unwritten(const Shape& shape, Device device, DType dtype = DType::float32);

/// Splits the rows into 2^depth lanes and merges them by the aligned tree; needs `depth` scratch
/// slots beside one buffer.
std::vector<kernels::LaneInstruction> lane_program(std::int64_t rows, int depth);

template <class T = float>
kernels::Matrix<const T> rows_of(const Tensor& x) {
  return kernels::row_major(x.data<T>(), x.size(0), x.size(1));
}
inline kernels::Matrix<float> out_rows_of(Tensor& x) {
  return kernels::row_major(x.mutable_data<float>(), x.size(0), x.size(1));
}

// ---- work ----

/// The product of all sizes, times `factor`.
inline double product(const Sizes& sizes, double factor) {
  for (const std::int64_t size : sizes) factor *= static_cast<double>(size);
  return factor;
}

/// Bytes of so many passes over a float32 tensor.
template <int kPasses>
double passes(const Sizes& s) {
  return product(s, 4 * kPasses);
}

}  // namespace accrue::bench
