// The note which dimension counts samples, through views: it is kept only where it stays true.
#include "accrue/core/sample_axis.h"

#include "accrue/core/tensor.h"
#include "accrue/tests/core/view_model.h"

#include <algorithm>

using accrue::SampleAxis;
using accrue::Shape;
using accrue::Tensor;
using accrue::test::check_property;
using accrue::test::Model;
using accrue::test::pick;

namespace {

SampleAxis axis(int dim, std::int64_t rows = 1) { return {dim, rows}; }

/// Six samples of two rows of four entries.
Tensor batch() { return Tensor::zeros({12, 4}).with_sample_axis(axis(0, 2)); }

}  // namespace

TEST_CASE("core.sample_axis: samples are whole entries of an existing dimension") {
  CHECK(!Tensor::zeros({2}).sample_axis().known());
  CHECK(batch().sample_axis() == axis(0, 2));
  CHECK(batch().sample_axis().is_major());
  CHECK(batch().with_sample_axis({}).sample_axis() == SampleAxis{});
  CHECK_THROWS_WITH_AS(Tensor::zeros({12, 4}).with_sample_axis(axis(0, 5)),
                       "[with_sample_axis] samples must be whole entries of a dimension, got "
                       "dimension 0 with 5 rows per sample for shape [12, 4]",
                       accrue::ShapeError);
  CHECK_THROWS_AS(batch().with_sample_axis(axis(2)), accrue::ShapeError);
  CHECK_THROWS_AS(batch().with_sample_axis(axis(0, 0)), accrue::ShapeError);
}

TEST_CASE("core.sample_axis: views move it") {
  CHECK(batch().transpose(0, 1).sample_axis() == axis(1, 2));
  CHECK(batch().unsqueeze(0).sample_axis() == axis(1, 2));
  CHECK(batch().unsqueeze(0).squeeze(0).sample_axis() == axis(0, 2));
  CHECK(batch().select(1, 0).sample_axis() == axis(0, 2));
  CHECK(batch().narrow(1, 1, 2).sample_axis() == axis(0, 2));
  CHECK(batch().expand({3, 12, 4}).sample_axis() == axis(1, 2));
  CHECK(batch().view({6, 8}).sample_axis() == axis(0, 1));
  CHECK(batch().flatten().sample_axis() == axis(0, 8));
  CHECK(batch().reshape({12, 2, 2}).sample_axis() == axis(0, 2));
  CHECK(batch().clone().sample_axis() == axis(0, 2));
  CHECK(batch().to(accrue::DType::float64).sample_axis() == axis(0, 2));
}

TEST_CASE("core.sample_axis: samples of no rows are counted") {
  const Tensor empty = Tensor::zeros({4, 0, 3}).with_sample_axis(axis(0)).reshape({0, 3});
  CHECK(empty.sample_axis() == axis(0, -4));
  CHECK(empty.reshape({4, 0, 3}).sample_axis() == axis(0));
  CHECK(empty.reshape({8, 0}).sample_axis() == axis(0, 2));
  CHECK(empty.reshape({6, 0}).sample_axis().is_mixed());
  CHECK(empty.transpose(0, 1).sample_axis() == axis(1, -4));
  CHECK_THROWS_AS(batch().with_sample_axis(axis(0, -6)), accrue::ShapeError);
}

TEST_CASE("core.sample_axis: cat keeps what all parts know, and mixes all else") {
  const auto joined = [](const Tensor& a, const Tensor& b, int dim) {
    return cat(std::vector{a, b}, dim).sample_axis();
  };
  CHECK(joined(batch(), batch(), 1) == axis(0, 2));
  CHECK(joined(Tensor::ones({2}), Tensor::ones({2}), 0) == SampleAxis{});
  CHECK(joined(batch(), batch(), 0).is_mixed());
  CHECK(joined(batch(), Tensor::ones({12, 4}), 1).is_mixed());
  CHECK(joined(Tensor::ones({12, 4}), batch(), 1).is_mixed());
  CHECK(joined(batch(), batch().with_sample_axis(axis(0)), 1).is_mixed());
}

TEST_CASE("core.sample_axis: a copy of mixed samples marks all that share the storage") {
  const Tensor mixed = Tensor::ones({1, 4}).with_sample_axis(SampleAxis::mixed());
  Tensor target = Tensor::zeros({12, 4});
  const Tensor view = target[3];
  target.narrow(0, 0, 2).copy_from(mixed);
  for (const Tensor& marked : {target,
                               view,
                               target.clone(),
                               target.to(accrue::DType::float64),
                               cat(std::vector{Tensor::zeros({1, 4}), mixed})})
    CHECK(marked.sample_axis().is_mixed());
  target[0].fill(0);
  target[1].copy_from(view);
  CHECK(target.sample_axis().is_mixed());
  target.fill(0);
  CHECK(!view.sample_axis().is_mixed());
  target.copy_from(mixed);
  target.copy_from(batch());
  CHECK(!view.sample_axis().is_mixed());
}

TEST_CASE("core.sample_axis: views that take samples apart drop it") {
  CHECK(!batch()[0].sample_axis().known());
  CHECK(!batch().narrow(0, 0, 2).sample_axis().known());
  CHECK(!batch().slice(0, 0, 12, 2).sample_axis().known());
  CHECK(!batch().view({3, 16}).sample_axis().known());
  CHECK(!batch().transpose(0, 1).reshape({48}).sample_axis().known());
}

TEST_CASE("core.sample_axis: where it is kept, entry i belongs to sample i / rows") {
  int num_kept = 0;
  check_property("chains of views of samples", 3000, [&] {
    const std::int64_t rows = pick(0, 3), samples = pick(0, 3);
    Shape shape;
    for (std::int64_t d = pick(0, 2); d > 0; --d) shape.push_back(pick(1, 3));
    const int dim = static_cast<int>(pick(0, shape.rank()));
    shape.insert(dim, rows * samples);
    Tensor tensor = Tensor::arange(samples).unsqueeze(1).expand({samples, rows}).reshape({-1});
    for (int d = dim + 1; d < shape.rank(); ++d) tensor = tensor.unsqueeze(-1);
    tensor = tensor.expand(shape).clone().with_sample_axis(axis(dim,
                                                                rows > 0      ? rows
                                                                : samples > 0 ? -samples
                                                                              : 1));
    Model unused{tensor.shape(), accrue::test::values(tensor)};
    for (std::int64_t i = pick(1, 6); i > 0; --i) {
      accrue::test::kAllSteps[pick(0, std::size(accrue::test::kAllSteps) - 1)](tensor, unused);
      const SampleAxis kept = tensor.sample_axis();
      if (!kept.known()) break;
      ++num_kept;
      RC_ASSERT(kept.dim < tensor.rank());
      RC_ASSERT(kept.rows > 0 || kept.rows == -samples);
      RC_ASSERT(tensor.size(kept.dim) == samples * std::max<std::int64_t>(kept.rows, 0));
      for (std::int64_t entry = 0; entry < samples * kept.rows; ++entry) {
        for (const auto sample : accrue::test::values(tensor.select(kept.dim, entry))) {
          RC_ASSERT(sample == entry / kept.rows);
        }
      }
    }
  });
  CHECK(num_kept > 3000);
  MESSAGE("views that kept the sample axis: " << num_kept);
}
