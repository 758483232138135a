// BucketLayout: which bucket holds the gradient of which parameter, and where.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace accrue::dist {

/// What a bucketer must know of a parameter.
struct BucketParameter {
  std::string name;  ///< as errors call it
  Shape shape;
  DType dtype = DType::float32;
  Device device = {};
};

/// The gradients that travel together, side by side in one buffer.
struct Bucket {
  DType dtype = DType::float32;
  Device device = {};
  std::vector<std::size_t> parameters;  ///< in the order of their places
  std::vector<std::int64_t> offsets;    ///< elements from the buffer's first, one per parameter
  std::int64_t numel = 0;               ///< of the buffer, padding included
};

/// Deals parameters to buckets in reverse definition order, in which backward passes tend to
/// complete gradients. A bucket takes tensors until they fill `first_bytes` (the first bucket) or
/// `cap_bytes`, so it may exceed that by a part of its last tensor; no tensor is split. A bucket
/// holds one dtype on one device. Places begin at multiples of kBucketAlignment.
std::vector<Bucket> bucket_layout(std::span<const BucketParameter> parameters,
                                  std::int64_t first_bytes,
                                  std::int64_t cap_bytes);

constexpr std::int64_t kBucketAlignment = 256;  ///< bytes

}  // namespace accrue::dist
