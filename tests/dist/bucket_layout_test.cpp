// The layout of buckets: order, caps and places.
#include "accrue/dist/bucket_layout.h"

#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::dist;

namespace {

/// The parameters of each bucket.
std::vector<std::vector<std::size_t>> dealt(const std::vector<BucketParameter>& parameters,
                                            std::int64_t first_bytes,
                                            std::int64_t cap_bytes) {
  std::vector<std::vector<std::size_t>> result;
  for (const Bucket& bucket : bucket_layout(parameters, first_bytes, cap_bytes)) {
    result.push_back(bucket.parameters);
  }
  return result;
}

using Dealt = std::vector<std::vector<std::size_t>>;

}  // namespace

TEST_CASE("dist.bucket_layout: the last parameter comes first, in a bucket of its own cap") {
  const std::vector<BucketParameter> five(5, {"", {100}});
  CHECK(dealt(five, 1, 1 << 20) == Dealt{{4}, {3, 2, 1, 0}});
  CHECK(dealt(five, 800, 400) == Dealt{{4, 3}, {2}, {1}, {0}});
  CHECK(dealt(five, 1 << 20, 1) == Dealt{{4, 3, 2, 1, 0}});
  CHECK(dealt({}, 1, 1).empty());
}

TEST_CASE("dist.bucket_layout: a bucket closes when it is full, and no tensor is split") {
  const std::vector<BucketParameter> parameters = {
      {"a", {10}}, {"b", {1000000}}, {"c", {10}}, {"d", {10}}, {"e", {1}}};
  CHECK(dealt(parameters, 4, 60) == Dealt{{4}, {3, 2}, {1}, {0}});
  CHECK(dealt(parameters, 4, 81) == Dealt{{4}, {3, 2, 1}, {0}});
}

TEST_CASE("dist.bucket_layout: a bucket holds one dtype") {
  const std::vector<BucketParameter> parameters = {
      {"a", {10}}, {"b", {10}, DType::float64}, {"c", {10}, DType::float64}, {"d", {10}}};
  CHECK(dealt(parameters, 1 << 20, 1 << 20) == Dealt{{3}, {2, 1}, {0}});
}

TEST_CASE("dist.bucket_layout: places begin at multiples of 256 bytes") {
  const std::vector<BucketParameter> parameters = {
      {"a", {65}}, {"b", {64}}, {"c", {0, 3}}, {"d", {}}};
  const Bucket bucket = bucket_layout(parameters, 1 << 20, 1 << 20).at(0);
  CHECK(bucket.parameters == std::vector<std::size_t>{3, 2, 1, 0});
  CHECK(bucket.offsets == std::vector<std::int64_t>{0, 64, 64, 128});
  CHECK(bucket.numel == 256);
  const std::vector<BucketParameter> doubles = {{"a", {33}, DType::float64},
                                                {"b", {1}, DType::float64}};
  CHECK(bucket_layout(doubles, 1 << 20, 1 << 20).at(0).offsets == std::vector<std::int64_t>{0, 32});
}
