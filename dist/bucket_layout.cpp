#include "accrue/dist/bucket_layout.h"

namespace accrue::dist {

std::vector<Bucket> bucket_layout(std::span<const BucketParameter> parameters,
                                  std::int64_t first_bytes,
                                  std::int64_t cap_bytes) {
  std::vector<Bucket> buckets;
  std::int64_t filled = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const DType dtype = parameters[i].dtype;
    const std::int64_t cap = buckets.size() < 2 ? first_bytes : cap_bytes;
    if (buckets.empty() || filled >= cap || buckets.back().dtype != dtype ||
        buckets.back().device != parameters[i].device) {
      buckets.push_back(
          {.dtype = dtype, .device = parameters[i].device, .parameters = {}, .offsets = {}});
      filled = 0;
    }
    Bucket& bucket = buckets.back();
    const Shape& shape = parameters[i].shape;
    const std::int64_t numel = product(shape, 0, shape.rank()), width = size_of(dtype);
    const std::int64_t step = kBucketAlignment / width;
    bucket.parameters.push_back(i);
    bucket.offsets.push_back(bucket.numel);
    bucket.numel += (numel + step - 1) / step * step;
    filled += numel * width;
  }
  return buckets;
}

}  // namespace accrue::dist
