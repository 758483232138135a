// Views: each operation's limits, and random chains of views against a naive model of indices.
#include "accrue/core/tensor.h"
#include "accrue/tests/core/view_model.h"

#include <numeric>

using accrue::DType;
using accrue::IndexError;
using accrue::Shape;
using accrue::ShapeError;
using accrue::Tensor;
using accrue::ValueError;
using accrue::test::check_property;
using accrue::test::Index;
using accrue::test::kAllSteps;
using accrue::test::kSharingSteps;
using accrue::test::Model;
using accrue::test::pick;
using accrue::test::pick_base;
using accrue::test::pick_shape;
using accrue::test::values;

namespace {

constexpr std::int64_t kTwo40 = std::int64_t{1} << 40;
constexpr std::int64_t kTwo62 = std::int64_t{1} << 62;

}  // namespace

TEST_CASE("core.tensor_views: random chains of views agree with the naive model") {
  int num_steps = 0;
  check_property("chains of up to 8 views", 3000, [&] {
    Tensor tensor = pick_base();
    Model model{tensor.shape(), values(tensor)};
    for (std::int64_t i = pick(1, 8); i > 0; --i) {
      kAllSteps[pick(0, std::size(kAllSteps) - 1)](tensor, model);
      RC_ASSERT(tensor.shape() == model.shape);
      RC_ASSERT(tensor.numel() == static_cast<std::int64_t>(model.elements.size()));
      RC_ASSERT(values(tensor) == model.elements);
      ++num_steps;
    }
  });
  MESSAGE("views compared: " << num_steps);
}

TEST_CASE(
    "core.tensor_views: view() succeeds exactly where strides exist, and reshape shares then") {
  check_property("views of chains of strided views", 3000, [] {
    Tensor tensor = pick_base();
    Model model{tensor.shape(), values(tensor)};
    for (std::int64_t i = pick(1, 5); i > 0; --i) {
      kSharingSteps[pick(0, std::size(kSharingSteps) - 1)](tensor, model);
    }
    // Elements are their own offsets, so strides exist if the elements are affine in the index.
    const Model target{pick_shape(tensor.numel()), model.elements};
    Index strides(static_cast<std::size_t>(target.shape.rank()), 0);
    for (std::size_t d = 0; d < strides.size() && tensor.numel() > 0; ++d) {
      Index unit(strides.size(), 0);
      unit[d] = target.shape[static_cast<int>(d)] > 1;
      strides[d] = target.at(unit) - target.elements[0];
    }
    bool affine = true;
    target.gather(target.shape, [&](const Index& index) {
      const std::int64_t offset =
          std::inner_product(index.begin(), index.end(), strides.begin(), target.elements[0]);
      affine = affine && offset == target.at(index);
      return index;
    });
    if (affine) {
      const Tensor view = tensor.view(target.shape);
      RC_ASSERT(view.shares_storage(tensor));
      RC_ASSERT(values(view) == model.elements);
    } else {
      RC_ASSERT_THROWS_AS(tensor.view(target.shape), ShapeError);
    }
    RC_ASSERT(tensor.reshape(target.shape).shares_storage(tensor) == affine);
    RC_ASSERT(values(tensor.reshape(target.shape)) == model.elements);
  });
}

TEST_CASE("core.tensor_views: writing through a view changes its elements and no others") {
  check_property("fills through chains of strided views", 2000, [] {
    const Tensor base = pick_base();
    Tensor view = base;
    Model model{base.shape(), values(base)};
    for (std::int64_t i = pick(1, 5); i > 0; --i) {
      const accrue::test::Step step = kSharingSteps[pick(0, std::size(kSharingSteps) - 1)];
      if (step != accrue::test::expand) step(view, model);
    }
    view.fill(-1);
    std::vector<std::int64_t> expected(static_cast<std::size_t>(base.numel()));
    std::iota(expected.begin(), expected.end(), 0);
    for (const std::int64_t offset : model.elements)
      expected[static_cast<std::size_t>(offset)] = -1;
    RC_ASSERT(values(base) == expected);
  });
}

TEST_CASE("core.tensor_views: select takes indices from either end") {
  const Tensor t = Tensor::arange(6).view({3, 2});
  CHECK(values(t[-1]) == Index{4, 5});
  CHECK(values(t.select(-1, 1)) == Index{1, 3, 5});
  CHECK_THROWS_WITH_AS(
      t[3], "[select] index must lie in [-3, 2], got 3 for dimension 0 of [3, 2]", IndexError);
  CHECK_THROWS_AS(t[-4], IndexError);
  CHECK_THROWS_AS(t[INT64_MIN], IndexError);
  CHECK_THROWS_WITH_AS(t.select(2, 0), "[select] dim must lie in [-2, 1], got 2", IndexError);
  CHECK_THROWS_AS(t.select(-3, 0), IndexError);
  CHECK_THROWS_WITH_AS(
      Tensor::scalar(1.0f)[0], "[select] tensor must have a dimension, got a scalar", IndexError);
}

TEST_CASE("core.tensor_views: narrow stays inside its dimension") {
  const Tensor t = Tensor::arange(5);
  CHECK(values(t.narrow(0, 2, 3)) == Index{2, 3, 4});
  CHECK(t.narrow(0, 5, 0).shape() == Shape{0});
  CHECK_THROWS_WITH_AS(t.narrow(0, 3, 3),
                       "[narrow] [start, start + length) must lie in [0, 5), got start 3 and "
                       "length 3",
                       IndexError);
  CHECK_THROWS_AS(t.narrow(0, -1, 1), IndexError);
  CHECK_THROWS_AS(t.narrow(0, 0, -1), IndexError);
  CHECK_THROWS_AS(t.narrow(0, 6, 0), IndexError);
  CHECK_THROWS_AS(t.narrow(0, 1, INT64_MAX), IndexError);
}

TEST_CASE("core.tensor_views: slice clips its ends and takes any step above 0") {
  const Tensor t = Tensor::arange(10).view({5, 2});
  CHECK(values(t.slice(0, 1, INT64_MAX, 3)) == Index{2, 3, 8, 9});
  CHECK(values(t.slice(0, -2, 100, INT64_MAX)) == Index{6, 7});
  CHECK(t.slice(0, INT64_MIN, INT64_MAX).shape() == Shape{5, 2});
  CHECK(t.slice(0, 3, 1).shape() == Shape{0, 2});
  CHECK_THROWS_WITH_AS(t.slice(0, 0, 5, 0), "[slice] step must be >= 1, got 0", ValueError);
  CHECK_THROWS_AS(t.slice(0, 0, 5, -1), ValueError);
  CHECK_THROWS_AS(t.slice(2, 0, 1), IndexError);
}

TEST_CASE("core.tensor_views: permute names each dimension once") {
  const Tensor t = Tensor::zeros({2, 3, 4});
  CHECK(t.permute({2, 0, 1}).shape() == Shape{4, 2, 3});
  CHECK_THROWS_WITH_AS(t.permute({0, 1, -2}),
                       "[permute] dims must name each dimension once, got 1 twice",
                       ShapeError);
  CHECK_THROWS_WITH_AS(t.permute({0, 1}),
                       "[permute] dims must name each of the 3 dimensions once, got 2 entries",
                       ShapeError);
  CHECK_THROWS_AS(t.permute({0, 1, 3}), IndexError);
  CHECK_THROWS_AS(t.transpose(0, 3), IndexError);
}

TEST_CASE("core.tensor_views: expand stretches ones and checks the count") {
  const Tensor t = Tensor::zeros({2, 1});
  CHECK(t.expand({3, -1, 4}).shape() == Shape{3, 2, 4});
  CHECK(t.expand({2, 0}).numel() == 0);
  CHECK_THROWS_WITH_AS(Tensor::zeros({2, 3}).expand({2, 4}),
                       "[expand] only sizes of 1 can be stretched, got [2, 3] to [2, 4]",
                       ShapeError);
  CHECK_THROWS_AS(t.expand({-1, 2, 1}), ShapeError);
  CHECK_THROWS_AS(t.expand({2, -2}), ShapeError);
  CHECK_THROWS_WITH_AS(
      t.expand({2}), "[expand] the new shape must have at least 2 dimensions, got [2]", ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::zeros({1, 1}).expand({kTwo40, kTwo40}),
                       "[expand] the product of the sizes must fit in 63 bits, got "
                       "[1099511627776, 1099511627776]",
                       ShapeError);
  CHECK(Tensor::of<float>({7}).expand({kTwo62})[-1].item<float>() == 7);
}

TEST_CASE("core.tensor_views: reshape resolves one -1 and keeps the count") {
  const Tensor t = Tensor::arange(6);
  CHECK(t.reshape({2, -1}).shape() == Shape{2, 3});
  CHECK(Tensor::zeros({0, 3}).reshape({-1, 3}).shape() == Shape{0, 3});
  CHECK_THROWS_WITH_AS(Tensor::zeros({0, 3}).reshape({-1, 0}),
                       "[reshape] -1 must have one possible value, got [-1, 0] for an empty "
                       "tensor; give all sizes",
                       ShapeError);
  CHECK_THROWS_WITH_AS(
      t.reshape({-1, -1}), "[reshape] at most one size may be -1, got [-1, -1]", ShapeError);
  CHECK_THROWS_WITH_AS(
      t.reshape({4, 2}), "[reshape] shape must hold 6 elements, got [4, 2]", ShapeError);
  CHECK_THROWS_WITH_AS(
      t.reshape({-1, -2}), "[reshape] sizes must be >= -1, got [-1, -2]", ShapeError);
  CHECK_THROWS_AS(t.reshape({4, -1}), ShapeError);
  CHECK_THROWS_AS(t.view({kTwo40, kTwo40}), ShapeError);
  CHECK_THROWS_WITH_AS(t.view({2, 3}).transpose(0, 1).view({6}),
                       "[view] the strides must allow a view, got shape [3, 2] with strides "
                       "[1, 3] as [6]; use reshape()",
                       ShapeError);
}

TEST_CASE("core.tensor_views: unsqueeze, squeeze and flatten check their dimensions") {
  CHECK(Tensor::scalar(1.0f).unsqueeze(-1).shape() == Shape{1});
  CHECK(Tensor::scalar(1.0f).flatten().shape() == Shape{1});
  CHECK(Tensor::scalar(1.0f).squeeze(0).shape() == Shape{});
  CHECK_THROWS_AS(Tensor::scalar(1.0f).unsqueeze(1), IndexError);
  CHECK_THROWS_AS(Tensor::scalar(1.0f).flatten(0, 1), IndexError);
  CHECK_THROWS_AS(Tensor::zeros({2}).squeeze(1), IndexError);
  CHECK_THROWS_AS(Tensor::zeros({2}).unsqueeze(2), IndexError);
  CHECK_THROWS_WITH_AS(Tensor::zeros({2, 3}).flatten(1, 0),
                       "[flatten] start must not lie behind end, got 1 and 0",
                       ShapeError);
}

TEST_CASE("core.tensor_views: cat joins along any dimension") {
  const Tensor a = Tensor::arange(4).view({2, 2}), b = Tensor::arange(2).view({2, 1});
  const std::vector<Tensor> both{a, b, a.transpose(0, 1)};
  CHECK(values(accrue::cat(both, 1)) == Index{0, 1, 0, 0, 2, 2, 3, 1, 1, 3});
  CHECK(values(accrue::cat(both, -1)) == values(accrue::cat(both, 1)));
  CHECK(values(accrue::cat(std::vector<Tensor>{a, Tensor::empty({0, 2}, DType::int64)})) ==
        values(a));
  CHECK_THROWS_WITH_AS(accrue::cat(both, 0),
                       "[cat] shapes must agree except in dimension 0, got [2, 2] and [2, 1]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(
      accrue::cat({}), "[cat] at least one tensor must be given, got none", ValueError);
  CHECK_THROWS_WITH_AS(accrue::cat(std::vector<Tensor>{a, Tensor::zeros({2, 2})}),
                       "[cat] dtypes must agree, got int64 and float32; convert with to()",
                       accrue::DTypeError);
  CHECK_THROWS_AS(accrue::cat(std::vector<Tensor>{a, Tensor::empty({0}, DType::int64)}),
                  ShapeError);
  CHECK_THROWS_AS(accrue::cat(both, 2), IndexError);
  CHECK_THROWS_AS(accrue::cat(std::vector<Tensor>{Tensor::scalar(1.0f)}), ShapeError);
  const Tensor wide = Tensor::empty({kTwo62, 0});
  CHECK_THROWS_AS(accrue::cat(std::vector<Tensor>{wide, wide}), ShapeError);
}
