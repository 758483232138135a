// Elements of tensors: converting, filling, copying between layouts, overlap, comparing bits.
#include "accrue/core/bits.h"
#include "accrue/core/tensor.h"
#include "accrue/tests/support/property.h"

#include <cmath>
#include <limits>

using accrue::DType;
using accrue::Shape;
using accrue::ShapeError;
using accrue::StateError;
using accrue::Tensor;
using accrue::ValueError;
using accrue::test::check_property;
using accrue::test::pick;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
T converted(double value) {
  const Tensor result = Tensor::scalar(value).to(accrue::dtype_of<T>);
  return result.item<T>();
}

/// A tensor of the shape whose memory layout is drawn: permuted and sliced with gaps.
Tensor random_layout(const Shape& shape, DType dtype) {
  std::vector<int> order;
  for (int d = 0; d < shape.rank(); ++d) {
    order.insert(order.begin() + pick(0, static_cast<std::int64_t>(order.size())), d);
  }
  Shape wide;
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    wide.push_back(2 * shape[order[i]] + 1);
    back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  Tensor result = Tensor::full(wide, 77, dtype).permute(back);
  for (int d = 0; d < shape.rank(); ++d) {
    const std::int64_t step = pick(1, 2), start = pick(0, 1);
    result = result.slice(d, start, start + step * shape[d], step);
  }
  return result;
}

}  // namespace

TEST_CASE("core.tensor_values: integers truncate floats and refuse what does not fit") {
  CHECK(converted<std::int64_t>(-2.9) == -2);
  CHECK(converted<std::int64_t>(-0x1p63) == INT64_MIN);
  CHECK(converted<std::int32_t>(2147483647.9) == 2147483647);
  CHECK(converted<std::int32_t>(-2147483648.9) == INT32_MIN);
  CHECK(converted<std::uint8_t>(255.9) == 255);
  CHECK(converted<std::uint8_t>(-0.9) == 0);
  for (const double bad : {kNan, kInf, -kInf, 1e30, -1e30, 0x1p63, -0x1.0000000000001p63}) {
    CHECK_THROWS_AS(converted<std::int64_t>(bad), ValueError);
    CHECK_THROWS_AS(converted<std::int32_t>(bad), ValueError);
    CHECK_THROWS_AS(converted<std::uint8_t>(bad), ValueError);
    CHECK_THROWS_AS(Tensor::scalar(static_cast<float>(bad)).to(DType::int32), ValueError);
  }
  CHECK_THROWS_AS(converted<std::int32_t>(2147483648.0), ValueError);
  CHECK_THROWS_AS(converted<std::int32_t>(-2147483649.0), ValueError);
  CHECK_THROWS_AS(converted<std::uint8_t>(256.0), ValueError);
  CHECK_THROWS_AS(converted<std::uint8_t>(-1.0), ValueError);
  CHECK_THROWS_WITH_AS(Tensor::of<std::int64_t>({1, 3000000000}).to(DType::int32),
                       "[to] values must fit int32, got 3000000000; clamp or mask first",
                       ValueError);
  CHECK_THROWS_AS(Tensor::of<std::int32_t>({-1}).to(DType::uint8), ValueError);
}

TEST_CASE("core.tensor_values: floats round to nearest and keep NaN, infinities and -0") {
  CHECK(converted<float>(0.1) == 0.1f);
  CHECK(converted<float>(1e300) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(converted<float>(kNan)));
  CHECK(std::signbit(converted<float>(-0.0)));
  CHECK(Tensor::scalar(std::int64_t{16777217}).to(DType::float32).item<float>() == 16777216.0f);
  CHECK(Tensor::of<bool>({true, false}).to(DType::float32).to_vector<float>() ==
        std::vector<float>{1, 0});
}

TEST_CASE("core.tensor_values: bool is true for all but zero") {
  CHECK(converted<bool>(0.5));
  CHECK(converted<bool>(kNan));
  CHECK(!converted<bool>(-0.0));
  CHECK(Tensor::of<std::int64_t>({0, 256}).to(DType::boolean).to_vector<bool>() ==
        std::vector<bool>{false, true});
}

TEST_CASE("core.tensor_values: converting reads any layout and to the same dtype shares") {
  const Tensor base = Tensor::arange(6).view({2, 3});
  CHECK(base.transpose(0, 1).to(DType::float64).to_vector<double>() ==
        std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(base.to(DType::int64).shares_storage(base));
  CHECK(base.select(1, 1).expand({2, 2}).to(DType::int32).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{1, 4, 1, 4});
}

TEST_CASE("core.tensor_values: arange, full and fill refuse what the dtype does not hold") {
  CHECK_THROWS_WITH_AS(Tensor::arange(257, DType::uint8),
                       "[arange] values must fit uint8, got 256; clamp or mask first",
                       ValueError);
  CHECK(Tensor::arange(256, DType::uint8)[-1].item<std::uint8_t>() == 255);
  CHECK_THROWS_WITH_AS(Tensor::full({2}, kNan, DType::int64),
                       "[fill] values must fit int64, got nan; clamp or mask first",
                       ValueError);
  Tensor tensor = Tensor::ones({2}, DType::uint8);
  const auto version = tensor.version();
  CHECK_THROWS_AS(tensor.fill(-1), ValueError);
  CHECK(tensor.version() == version);
  CHECK(tensor.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 1});
}

TEST_CASE("core.tensor_values: copies between all layouts and dtypes are exact") {
  check_property("copies from one drawn layout to another", 2000, [] {
    Shape shape, source_shape;
    for (std::int64_t d = pick(0, 4); d > 0; --d) shape.push_back(pick(0, 3));
    for (int d = 0; d < shape.rank(); ++d) source_shape.push_back(pick(0, 3) ? shape[d] : 1);
    const auto dtype = static_cast<DType>(pick(0, 5));
    Tensor target = random_layout(shape, dtype);
    Tensor source = random_layout(source_shape, dtype);
    source.copy_from(Tensor::arange(source.numel(), dtype).view(source_shape));
    target.copy_from(source);
    const Tensor expected = Tensor::arange(source.numel(), dtype).view(source_shape).expand(shape);
    RC_ASSERT(equal_bits(target, expected));
    RC_ASSERT(equal_bits(target.clone(), expected.contiguous()));
  });
}

TEST_CASE("core.tensor_values: a copy leaves the elements between alone") {
  Tensor base = Tensor::zeros({3, 4});
  base.slice(1, 0, 4, 2).transpose(0, 1).copy_from(Tensor::of<float>({{1, 2, 3}, {4, 5, 6}}));
  CHECK(base.to_vector<float>() == std::vector<float>{1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0});
}

TEST_CASE("core.tensor_values: a source must expand to the target and have its dtype") {
  Tensor target = Tensor::zeros({2, 3});
  target.copy_from(Tensor::of<float>({1, 2, 3}));
  CHECK(target.to_vector<float>() == std::vector<float>{1, 2, 3, 1, 2, 3});
  CHECK_THROWS_WITH_AS(target.copy_from(Tensor::zeros({2, 4})),
                       "[copy_from] shapes must broadcast, got [2, 4] and [2, 3], which differ at "
                       "dimension -1 (4 and 3)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(target.copy_from(Tensor::zeros({1, 2, 3})),
                       "[copy_from] the source must expand to [2, 3], got [1, 2, 3]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(target.copy_from(Tensor::zeros({3}, DType::float64)),
                       "[copy_from] dtypes must agree, got float32 from float64; convert with to()",
                       accrue::DTypeError);
}

TEST_CASE("core.tensor_values: writing to elements that share a location is a StateError") {
  Tensor expanded = Tensor::zeros({3}).expand({2, 3});
  CHECK_THROWS_WITH_AS(expanded.fill(1),
                       "[fill] elements must not share a location, got shape [2, 3] with strides "
                       "[0, 1]; clone() the expanded tensor first",
                       StateError);
  CHECK_THROWS_AS(expanded.copy_from(Tensor::zeros({2, 3})), StateError);
  CHECK_THROWS_AS(expanded.mutable_data<float>(), StateError);
  CHECK_THROWS_AS(expanded.view({2, 3, 1}).fill(1), StateError);
  CHECK(expanded.to_vector<float>() == std::vector<float>(6, 0));
  Tensor once = Tensor::zeros({3}).expand({1, 3});
  CHECK_NOTHROW(once.fill(1));
  Tensor none = Tensor::zeros({1, 0}).expand({2, 0});
  CHECK_NOTHROW(none.fill(1));
}

TEST_CASE("core.tensor_values: source and target may be the same elements or none of them") {
  Tensor a = Tensor::arange(9, DType::float32).view({3, 3});
  a.copy_from(a);
  a[0].copy_from(a.narrow(0, 0, 1).squeeze(0));
  a.narrow(0, 0, 1).copy_from(a[0]);
  CHECK(equal_bits(a, Tensor::arange(9, DType::float32).view({3, 3})));
  a.select(1, 0).copy_from(a.select(1, 2));
  CHECK(a.to_vector<float>() == std::vector<float>{2, 1, 2, 5, 4, 5, 8, 7, 8});
  CHECK_THROWS_WITH_AS(a.narrow(0, 1, 2).copy_from(a.narrow(0, 0, 2)),
                       "[copy_from] source and target must not overlap partly, got two views of "
                       "one storage with shapes [2, 3] and [2, 3]; clone() the source first",
                       StateError);
  CHECK_THROWS_AS(a.copy_from(a.transpose(0, 1)), StateError);
  CHECK_THROWS_AS(a.copy_from(a[1]), StateError);
  CHECK_THROWS_AS(a[1].copy_from(a.select(1, 0)), StateError);
  CHECK(a.to_vector<float>() == std::vector<float>{2, 1, 2, 5, 4, 5, 8, 7, 8});
}

TEST_CASE("core.tensor_values: overlap is found exactly") {
  check_property("pairs of views of one storage", 2000, [] {
    Tensor base = Tensor::arange(36).view({6, 6});
    const auto draw = [&] {
      Tensor view = pick(0, 1) ? base : base.transpose(0, 1);
      for (const int d : {0, 1}) {
        const std::int64_t step = pick(1, 3), start = pick(0, 5 - step);
        view = view.slice(d, start, start + step + 1, step);
      }
      return view;
    };
    Tensor target = draw();
    const Tensor source = draw();
    const auto to = target.to_vector<std::int64_t>(), from = source.to_vector<std::int64_t>();
    std::vector<std::int64_t> expected = base.to_vector<std::int64_t>();
    bool in_common = false;
    for (std::size_t i = 0; i < to.size(); ++i) {
      for (const std::int64_t position : from) in_common = in_common || position == to[i];
      expected[static_cast<std::size_t>(to[i])] = from[i];
    }
    if (to == from || !in_common) {
      target.copy_from(source);
      RC_ASSERT(base.to_vector<std::int64_t>() == expected);
    } else {
      RC_ASSERT_THROWS_AS(target.copy_from(source), StateError);
    }
  });
}

TEST_CASE("core.tensor_values: equal_bits tells -0 from 0 and takes every NaN for the same") {
  const float other_nan = accrue::float_of(0xffc12345U);
  CHECK(equal_bits(Tensor::of<float>({1, NAN}), Tensor::of<float>({1, other_nan})));
  CHECK(!equal_bits(Tensor::of<float>({0.0f}), Tensor::of<float>({-0.0f})));
  CHECK(!equal_bits(Tensor::of<float>({1, 2}), Tensor::of<float>({1, 3})));
  CHECK(!equal_bits(Tensor::of<float>({1}), Tensor::of<double>({1})));
  CHECK(!equal_bits(Tensor::zeros({2, 3}), Tensor::zeros({3, 2})));
  CHECK(equal_bits(Tensor::zeros({0, 3}), Tensor::zeros({0, 3})));
  const Tensor a = Tensor::arange(6, DType::uint8).view({2, 3});
  CHECK(equal_bits(a.transpose(0, 1), a.transpose(0, 1).clone()));
  CHECK(!equal_bits(a, a.expand({2, 3}).slice(1, 0, 3).flatten().view({3, 2}).transpose(0, 1)));
}
