// Batches of products: matrices of tensors with leading dimensions.
#pragma once

#include "accrue/kernels/cuda/product.h"
#include "accrue/kernels/matrices.h"

#include <array>
#include <vector>

namespace accrue::kernels::cuda {

/// How many elements a, b and slots of a product lie behind those of the first.
using BatchOffsets = std::vector<std::array<std::int64_t, 3>>;

template <class T>
std::int64_t offset_of(const Matrices<T>& matrices, std::int64_t index) {
  return matrices[index].data - matrices[0].data;
}

/// Launches a product for each of `offsets`.
inline void launch_batch(const char* name,
                         Product product,
                         const BatchOffsets& offsets,
                         Stream stream) {
  const std::size_t bytes = offsets.size() * sizeof(offsets[0]);
  Workspace table(bytes, stream);
  table.upload(offsets.data(), bytes);
  product.offsets = table.as<const std::int64_t[3]>();
  product.batch = std::ssize(offsets);
  launch_product(name, product, stream);
}

}  // namespace accrue::kernels::cuda
