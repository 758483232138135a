// TensorDataset: samples as views, and refused tensors.
#include "accrue/data/tensor_dataset.h"

#include "accrue/core/error.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <vector>

using namespace accrue;
using accrue::data::Sample;
using accrue::data::TensorDataset;
using accrue::test::There;

TEST_CASE("data.tensor_dataset: sample i is entry i of every tensor, as a view") {
  const Tensor x = There::of<float>({{1, 2}, {3, 4}, {5, 6}});
  const Tensor y = There::of<std::int64_t>({7, 8, 9});
  const TensorDataset dataset({x, y});
  CHECK(dataset.size() == 3);
  const Sample sample = dataset.get(1);
  REQUIRE(sample.fields.size() == 2);
  CHECK(sample.index == 1);
  CHECK(sample.fields[0].to_vector<float>() == std::vector<float>{3, 4});
  CHECK(sample.fields[1].item<std::int64_t>() == 8);
  CHECK(sample.fields[0].shares_storage(x));
}

TEST_CASE("data.tensor_dataset: no samples are a data set of size 0") {
  CHECK(TensorDataset({There::zeros({0, 3})}).size() == 0);
  TensorDataset moved({There::zeros({2})});
  const TensorDataset target(std::move(moved));
  CHECK(target.size() == 2);
  CHECK(moved.size() == 0);  // NOLINT(bugprone-use-after-move)
  CHECK_THROWS_AS(moved.get(0), IndexError);
}

TEST_CASE("data.tensor_dataset: an index outside the data set is an index error") {
  const TensorDataset dataset({There::zeros({3})});
  CHECK_THROWS_WITH_AS(
      dataset.get(3), "[tensor_dataset] index must lie in [0, 3), got 3", IndexError);
  CHECK_THROWS_AS(dataset.get(-1), IndexError);
}

TEST_CASE("data.tensor_dataset: tensors that do not fit together are refused") {
  CHECK_THROWS_WITH_AS(TensorDataset({There::zeros({3, 2}), There::zeros({4})}),
                       "[tensor_dataset] tensors must hold equally many samples, got shapes [3, 2] "
                       "and [4]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(TensorDataset({There::scalar(1.0f)}),
                       "[tensor_dataset] the first dimension must count the samples, got a scalar; "
                       "unsqueeze(0) it",
                       ShapeError);
  CHECK_THROWS_WITH_AS(TensorDataset(std::vector<Tensor>{}),
                       "[tensor_dataset] at least one tensor must be given, got none",
                       ValueError);
}
