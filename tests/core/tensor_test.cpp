// Tensors: making them, looking at them, undefined ones, sharing, sizes above 2^31, threads.
#include "accrue/core/tensor.h"

#include "accrue/core/allocator.h"
#include "accrue/tests/support/doctest.h"

#include <limits>
#include <thread>
#include <utility>

using accrue::DType;
using accrue::DTypeError;
using accrue::IndexError;
using accrue::Shape;
using accrue::ShapeError;
using accrue::StateError;
using accrue::Tensor;
using accrue::ValueError;

namespace {

constexpr std::int64_t kTwo31 = std::int64_t{1} << 31;
constexpr std::int64_t kTwo40 = std::int64_t{1} << 40;
constexpr std::int64_t kTwo62 = std::int64_t{1} << 62;
constexpr const char* kUndefined =
    "[tensor] tensor must be defined, got a default-constructed or moved-from one";

}  // namespace

TEST_CASE("core.tensor: constructors fill every dtype") {
  for (int i = 0; i < 6; ++i) {
    const auto dtype = static_cast<DType>(i);
    accrue::visit_dtype(dtype, [&]<class T>(T) {
      CHECK(Tensor::zeros({2, 3}, dtype).to_vector<T>() == std::vector<T>(6, T(0)));
      CHECK(Tensor::ones({2, 3}, dtype).to_vector<T>() == std::vector<T>(6, T(1)));
      CHECK(Tensor::full({3}, 7, dtype).to_vector<T>() == std::vector<T>(3, T(7)));
      const Tensor scalar = Tensor::scalar(T(1));
      CHECK(scalar.item<T>() == T(1));
      CHECK(scalar.dtype() == dtype);
      CHECK(Tensor::zeros({0, 3}, dtype).to_vector<T>().empty());
      CHECK(Tensor::arange(3, dtype).to_vector<T>() == std::vector<T>{T(0), T(1), T(2)});
    });
  }
}

TEST_CASE("core.tensor: values in braces give rank 1 and 2") {
  const Tensor row = Tensor::of<float>({1, 2, 3});
  CHECK(row.shape() == Shape{3});
  const Tensor matrix = Tensor::of<std::int64_t>({{1, 2, 3}, {4, 5, 6}});
  CHECK(matrix.shape() == Shape{2, 3});
  CHECK(matrix.strides() == Shape{3, 1});
  CHECK(matrix.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  const Tensor flags = Tensor::of<bool>({{true, false}, {false, true}});
  CHECK(flags.to_vector<bool>() == std::vector<bool>{true, false, false, true});
  CHECK_THROWS_WITH_AS(Tensor::of<float>({{1, 2}, {3, 4, 5}}),
                       "[of] rows must have equal length, got 2 and 3",
                       ShapeError);
}

TEST_CASE("core.tensor: from copies as many values as the shape holds") {
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  Tensor tensor = Tensor::from(values, {2, 3});
  tensor.mutable_data<double>()[0] = 9;
  CHECK(values[0] == 1);
  CHECK(tensor.dtype() == DType::float64);
  CHECK_THROWS_WITH_AS(Tensor::from(values, {2, 2}),
                       "[from] shape must hold as many elements as were given, got [2, 2] for 6 "
                       "values",
                       ShapeError);
}

TEST_CASE("core.tensor: sizes are checked before memory is asked for") {
  CHECK_THROWS_AS(Tensor::zeros({2, -1}), ShapeError);
  CHECK_THROWS_AS(Tensor::zeros({kTwo40, kTwo40}), ShapeError);
  CHECK_THROWS_AS(Tensor::zeros({0, kTwo62, kTwo62}), ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::zeros({kTwo62}),
                       "[empty] the bytes of a tensor must fit in 62 bits, got shape "
                       "[4611686018427387904] of float32",
                       ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::arange(-1), "[arange] count must be >= 0, got -1", ValueError);
}

TEST_CASE("core.tensor: 2^45 floats are an OutOfMemoryError and the process goes on") {
  const auto before = accrue::cpu_memory_stats().allocated_bytes;
  CHECK_THROWS_WITH_AS(Tensor::zeros({std::int64_t{1} << 45}),
                       "[allocate] the system must provide 140737488355392 bytes, got none; use "
                       "smaller tensors or a smaller micro-batch",
                       accrue::OutOfMemoryError);
  CHECK(accrue::cpu_memory_stats().allocated_bytes == before);
  CHECK(Tensor::ones({2}).to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("core.tensor: rank 0 and rank 8 work, rank 9 is refused") {
  const Tensor scalar = Tensor::scalar(3.0f);
  CHECK(scalar.rank() == 0);
  CHECK(scalar.numel() == 1);
  CHECK(scalar.is_contiguous());
  CHECK_THROWS_WITH_AS(
      scalar.size(0), "[size] tensor must have a dimension, got a scalar", IndexError);
  const Tensor eight = Tensor::arange(256).view({2, 2, 2, 2, 2, 2, 2, 2});
  CHECK(eight[1][1][1][1][1][1][1][1].item<std::int64_t>() == 255);
  CHECK(eight.size(-8) == 2);
  CHECK_THROWS_AS(eight.size(-9), IndexError);
  CHECK_THROWS_AS(eight.unsqueeze(0), ShapeError);
  CHECK_THROWS_AS(eight.expand({1, 2, 2, 2, 2, 2, 2, 2, 2}), ShapeError);
}

TEST_CASE("core.tensor: item needs exactly one element of the asked type") {
  CHECK(Tensor::full({1, 1}, 2.5).item<float>() == 2.5f);
  CHECK_THROWS_WITH_AS(Tensor::zeros({2}).item<float>(),
                       "[item] tensor must have exactly one element, got shape [2]; select one "
                       "first",
                       ShapeError);
  CHECK_THROWS_AS(Tensor::zeros({0}).item<float>(), ShapeError);
  CHECK_THROWS_WITH_AS(Tensor::zeros({1}).item<double>(),
                       "[data] element type must be float32, got float64; convert with to()",
                       DTypeError);
}

TEST_CASE("core.tensor: an undefined tensor throws a StateError in every operation") {
  const auto check_undefined = [](Tensor& t) {
    CHECK(!t.defined());
    CHECK(!t.shares_storage(t));
    CHECK_THROWS_WITH_AS(t.device(), kUndefined, StateError);
    CHECK_THROWS_WITH_AS(t.clone(), kUndefined, StateError);
    CHECK_THROWS_AS(t.version(), StateError);
    CHECK_THROWS_AS(t.owns_storage(), StateError);
    CHECK_THROWS_AS(t.data<float>(), StateError);
    CHECK_THROWS_AS(t.mutable_data<float>(), StateError);
    CHECK_THROWS_AS(t.to_vector<float>(), StateError);
    CHECK_THROWS_AS(t.contiguous(), StateError);
    CHECK_THROWS_AS(t.to(DType::int64), StateError);
    CHECK_THROWS_AS(t.fill(0), StateError);
    CHECK_THROWS_AS(t.copy_from(Tensor::zeros({2})), StateError);
    CHECK_THROWS_AS(Tensor::zeros({2}).copy_from(t), StateError);
    CHECK_THROWS_AS(t.select(0, 0), StateError);
    CHECK_THROWS_AS(t.narrow(0, 0, 1), StateError);
    CHECK_THROWS_AS(t.slice(0, 0, 1), StateError);
    CHECK_THROWS_AS(t.permute({0}), StateError);
    CHECK_THROWS_AS(t.transpose(0, 0), StateError);
    CHECK_THROWS_AS(t.expand({2}), StateError);
    CHECK_THROWS_AS(t.view({2}), StateError);
    CHECK_THROWS_AS(t.reshape({2}), StateError);
    CHECK_THROWS_AS(t.unsqueeze(0), StateError);
    CHECK_THROWS_AS(t.squeeze(0), StateError);
    CHECK_THROWS_AS(t.flatten(), StateError);
    CHECK_THROWS_AS(t.with_sample_axis({}), StateError);
    CHECK_THROWS_AS(t.str(), StateError);
    CHECK_THROWS_AS(equal_bits(t, Tensor::zeros({2})), StateError);
    CHECK_THROWS_AS(equal_bits(Tensor::zeros({2}), t), StateError);
    CHECK_THROWS_AS(accrue::cat(std::vector<Tensor>{t}), StateError);
    CHECK_THROWS_AS(accrue::cat(std::vector<Tensor>{Tensor::zeros({2}), t}), StateError);
  };
  Tensor never;
  check_undefined(never);
  Tensor source = Tensor::zeros({2});
  const Tensor target = std::move(source);
  check_undefined(source);
  CHECK(target.numel() == 2);
}

TEST_CASE("core.tensor: self-assignment and self-move keep a tensor as it is") {
  Tensor tensor = Tensor::of<float>({1, 2});
  Tensor& same = tensor;
  tensor = same;
  CHECK(tensor.to_vector<float>() == std::vector<float>{1, 2});
  tensor = std::move(same);
  CHECK(tensor.to_vector<float>() == std::vector<float>{1, 2});
  tensor = Tensor();
  CHECK(!tensor.defined());
  tensor = Tensor::of<float>({3});
  CHECK(tensor.item<float>() == 3);
}

TEST_CASE("core.tensor: the strides of dimensions of size 1 do not matter for being contiguous") {
  const Tensor column = Tensor::zeros({3, 1});
  CHECK(column.transpose(0, 1).is_contiguous());
  CHECK(column.transpose(0, 1).contiguous().shares_storage(column));
  CHECK(column.expand({1, 3, 1}).is_contiguous());
  CHECK(Tensor::zeros({0, 5}).transpose(0, 1).is_contiguous());
  CHECK(!Tensor::zeros({2, 3}).transpose(0, 1).is_contiguous());
  CHECK(!column.expand({2, 3, 1}).is_contiguous());
}

TEST_CASE("core.tensor: copies share elements, a view outlives its base") {
  Tensor view;
  {
    Tensor base = Tensor::arange(6, DType::float32).view({2, 3});
    const Tensor copy = base;
    base.mutable_data<float>()[5] = 50;
    CHECK(copy[1][2].item<float>() == 50);
    CHECK(copy.shares_storage(base));
    CHECK(!base.owns_storage());
    CHECK(!base.clone().shares_storage(base));
    view = base[1];
  }
  CHECK(view.owns_storage());
  CHECK(view.to_vector<float>() == std::vector<float>{3, 4, 50});
}

TEST_CASE("core.tensor: every write counts one version of the whole storage") {
  Tensor base = Tensor::zeros({4});
  const Tensor view = base.narrow(0, 0, 2);
  const auto before = view.version();
  base.mutable_data<float>();
  base.fill(1);
  base.copy_from(Tensor::ones({4}));
  CHECK(view.version() == before + 3);
  CHECK(base.data<float>() != nullptr);
  CHECK(view.version() == before + 3);
}

TEST_CASE("core.tensor: offsets above 2^31 are exact without touching the bytes between") {
  Tensor huge = Tensor::empty({kTwo31 + 16}, DType::uint8);
  huge.narrow(0, kTwo31, 16).copy_from(Tensor::arange(16, DType::uint8));
  CHECK(huge.data<std::uint8_t>()[kTwo31 + 15] == 15);
  CHECK(huge[-1].item<std::uint8_t>() == 15);
  CHECK(huge.slice(0, kTwo31 + 1, kTwo31 + 16, 7).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{1, 8, 15});
  // Rows of 2^27 bytes: the last row begins at 2^31.
  const Tensor rows = huge.narrow(0, 16, kTwo31).view({16, kTwo31 / 16});
  CHECK(rows.transpose(0, 1)[-1][-1].item<std::uint8_t>() == 15);
  Tensor ends = rows.slice(1, kTwo31 / 16 - 1, kTwo31 / 16);
  CHECK(ends.strides() == Shape{kTwo31 / 16, 1});
  ends.fill(3);
  CHECK(huge[kTwo31 + 15].item<std::uint8_t>() == 3);
  CHECK(huge[kTwo31 + 14].item<std::uint8_t>() == 14);
}

TEST_CASE("core.tensor: several threads may read one tensor at once") {
  const Tensor shared = Tensor::arange(1000, DType::float32).view({10, 100});
  const std::string expected = shared.str();
  std::vector<int> num_wrong(2, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        num_wrong[t] += !equal_bits(shared.transpose(0, 1).clone().transpose(0, 1), shared);
        num_wrong[t] += shared[9][99].item<float>() != 999;
        num_wrong[t] += shared.str() != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == std::vector<int>{0, 0});
}

TEST_CASE("core.tensor: a tensor over a storage views its first elements") {
  auto storage = accrue::Storage::allocate(24, accrue::Device::cpu());
  Tensor matrix = Tensor::over(storage, {2, 3});
  matrix.fill(2);
  const Tensor pair = Tensor::over(storage, {2}, DType::float32);
  CHECK(pair.shares_storage(matrix));
  CHECK(pair.to_vector<float>() == std::vector<float>{2, 2});
  CHECK_THROWS_WITH_AS(Tensor::over(storage, {7}),
                       "[over] the storage must hold shape [7] of float32, got 24 bytes",
                       ShapeError);
  CHECK_THROWS_AS(Tensor::over({}, {1}), StateError);
}

TEST_CASE("core.tensor: elements on a device that this machine lacks are not read") {
  std::byte* const address = reinterpret_cast<std::byte*>(64);  // reading it ends the process
  const auto storage = accrue::Storage::adopt(address, 16, accrue::Device::cuda(2));
  Tensor far = Tensor::over(storage, {2, 2});
  CHECK(far.device() == accrue::Device::cuda(2));
  CHECK(far.data<float>() == reinterpret_cast<float*>(address));
  CHECK(far.transpose(0, 1)[1].data<float>() == reinterpret_cast<float*>(address) + 1);
  Tensor near = Tensor::zeros({2, 2});
  using accrue::DeviceError;
  CHECK_THROWS_AS(far[0][0].item<float>(), DeviceError);
  CHECK_THROWS_AS(far.to_vector<float>(), DeviceError);
  CHECK_THROWS_AS(far.str(), DeviceError);
  CHECK_THROWS_AS(far.fill(1), DeviceError);
  CHECK_THROWS_AS(far.clone(), DeviceError);
  CHECK_THROWS_AS(far.to(DType::float64), DeviceError);
  CHECK_THROWS_AS(far.transpose(0, 1).contiguous(), DeviceError);
  CHECK_THROWS_AS(far.copy_from(near), DeviceError);
  CHECK_THROWS_AS(near.copy_from(far), DeviceError);
  CHECK_THROWS_AS(accrue::equal_bits(near, far), DeviceError);
  CHECK_THROWS_AS(accrue::equal_bits(far, near), DeviceError);
}
