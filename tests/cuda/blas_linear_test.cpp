// Linear layers and matrix products in the speed modes: near the true result, by cuBLAS; and in
// ieee, where cuBLAS is not asked.
#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/lane_sums.h"
#include "accrue/kernels/simt/cublas/calls.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr MatmulPrecision kSpeedModes[] = {MatmulPrecision::tf32, MatmulPrecision::bf16};

/// What an element may be off, with operands below 1 and `terms` products.
double bound(MatmulPrecision precision, std::int64_t terms) {
  return static_cast<double>(terms) * (precision == MatmulPrecision::tf32 ? 0x1p-10 : 0x1p-7);
}

/// Values in (-1, 1) in device memory, in a layout of Operand.
struct Numbers {
  Operand<> host;
  DeviceFloats storage;
  Matrix<float> view;

  Numbers(std::int64_t rows, std::int64_t cols, int layout, Dice& dice)
      : host(rows, cols, layout, dice), storage(tame(host.storage, dice)), view(host.view) {
    view.data = storage.data() + (host.view.data - host.storage.data());
  }

 private:
  static const std::vector<float>& tame(std::vector<float>& values, Dice& dice) {
    for (float& value : values) value = static_cast<float>(dice.below(2001) - 1000) / 1001;
    return values;
  }
};

double largest_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(double{got[i]} - expected[i]);
    most = error <= most ? most : error;  // NaN counts
  }
  return most;
}

std::vector<float> zeros(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

/// How often cuBLAS was asked meanwhile.
template <class Run>
std::int64_t calls_in(const Run& run) {
  const std::int64_t before = simt::num_cublas_calls();
  run();
  return simt::num_cublas_calls() - before;
}

}  // namespace

TEST_CASE("cuda.blas_linear: forward, input gradient and product are near in the speed modes") {
  Dice dice{std::mt19937(1)};
  const std::int64_t m = 5, n = 9, k = 33;
  for (const MatmulPrecision precision : kSpeedModes) {
    for (int layout = 0; layout < 4; ++layout) {
      const Numbers a(m, k, layout, dice), b(k, n, 0, dice), bias(1, n, 0, dice);
      std::vector<float> expected = zeros(m * n);
      const auto out = [&](float* data) { return row_major(data, m, n); };
      const std::vector<float> unwritten = DeviceFloats::unwritten(45);
      DeviceFloats y(unwritten), dx(unwritten), c(unwritten);
      const std::int64_t calls = calls_in([&] {
        launch_cuda(
            LinearForward<float>{
                a.view, b.view.transposed(), bias.view.data, out(y.data()), precision},
            {});
        launch_cuda(LinearInputGrad<float>{a.view, b.view, out(dx.data()), precision}, {});
        launch_cuda(Matmul<float>{a.view, b.view, out(c.data()), precision}, {});
      });
      CAPTURE(layout);
      CHECK(calls == (layout < 2 ? 3 : 0));  // the other layouts are the kernels'
      launch_cpu(Matmul<float>{a.host.view, b.host.view, out(expected.data())});
      CHECK(largest_error(dx.values(), expected) <= bound(precision, k));
      CHECK(largest_error(c.values(), expected) <= bound(precision, k));
      if (layout < 2) CHECK(c.values() != expected);
      if (layout >= 2) CHECK(c.values() == expected);
      launch_cpu(LinearForward<float>{
          a.host.view, b.host.view.transposed(), bias.host.view.data, out(expected.data())});
      CHECK(largest_error(y.values(), expected) <= bound(precision, k));
    }
  }
}

TEST_CASE("cuda.blas_linear: a weight gradient is one product for rows that follow each other") {
  using It = LaneInstruction;
  Dice dice{std::mt19937(2)};
  const std::int64_t rows = 40, o = 6, in = 7;
  // Two open buffers, of which one takes part in a node that moves into the other's place.
  const Program moving{{It::load(1),
                        It::chain(0, 10),
                        It::close(),
                        It::merge(0),
                        It::store(1),
                        It::zero(),
                        It::chain(10, 40),
                        It::store(0)},
                       2,
                       0,
                       {true, true}};
  const Program empty{{It::zero(), It::chain(5, 5), It::store(0)}, 1, 0, {false}};
  const Program gap{{It::zero(), It::chain(0, 5), It::chain(9, 9), It::chain(7, 40), It::store(0)},
                    1,
                    0,
                    {false}};
  const Program moved{{It::load(1), It::store(0)}, 2, 0, {true, true}};
  const std::pair<Program, int> cases[] = {{lane_tree({40}, true), 1},
                                           {lane_tree({8, 8, 20, 33, 40}, false), 1},
                                           {lane_tree({8, 8, 20, 33, 40}, true), 1},
                                           {moving, 2},
                                           {empty, 0},
                                           {gap, 2},
                                           {moved, 0}};
  for (const MatmulPrecision precision : kSpeedModes) {
    int number = 0;
    for (const auto& [program, num_products] : cases) {
      CAPTURE(number++);
      const Numbers dy(rows, o, number % 2, dice), x(rows, in, number / 2 % 2, dice);
      std::vector<std::vector<float>> expected;
      std::vector<std::unique_ptr<DeviceFloats>> arrays;
      std::vector<float*> host, device;
      for (int i = 0; i < program.num_buffers; ++i) {
        const bool is_loaded = program.loaded[static_cast<std::size_t>(i)];
        expected.push_back(is_loaded ? std::vector<float>(42, 0.5f + static_cast<float>(i))
                                     : DeviceFloats::unwritten(42));
        arrays.push_back(std::make_unique<DeviceFloats>(expected.back()));
        device.push_back(arrays.back()->data());
      }
      for (auto& values : expected) host.push_back(values.data());
      const std::int64_t calls = calls_in([&] {
        launch_cuda(LinearWeightGrad<float>{dy.view, x.view, program.view(), device, precision},
                    {});
      });
      CHECK(calls == num_products);
      launch_cpu(LinearWeightGrad<float>{dy.host.view, x.host.view, program.view(), host});
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        CHECK(largest_error(arrays[i]->values(), expected[i]) <= bound(precision, rows));
        CHECK(arrays[i]->is_intact());
      }
    }
  }
}

TEST_CASE("cuda.blas_linear: programs that use a value twice or swap buffers are the kernel's") {
  using It = LaneInstruction;
  const auto is_taken = [](const std::vector<It>& program) {
    std::vector<cuda::LaneSum> sums;
    return cuda::find_lane_sums({program, 2, 1}, sums);
  };
  CHECK(is_taken({It::load(0), It::merge(1), It::store(0), It::zero(), It::store(1)}));
  CHECK_FALSE(is_taken({It::load(0), It::store(1), It::chain(0, 3), It::store(0)}));
  CHECK_FALSE(is_taken({It::load(0), It::store(1), It::load(0), It::chain(0, 3), It::store(0)}));
  CHECK_FALSE(
      is_taken({It::load(0), It::store(2), It::load(1), It::store(0), It::load(2), It::store(1)}));
}

TEST_CASE("cuda.blas_linear: batches are near for any leading dimensions, a call for equal steps") {
  Dice dice{std::mt19937(3)};
  const auto numbers = [&](const Shape& shape) {
    Tensor values = Tensor::empty(shape);
    float* const out = values.mutable_data<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      out[i] = static_cast<float>(dice.below(2001) - 1000) / 1001;
    }
    return values;
  };
  const auto check = [&](const Tensor& a, const Tensor& b, std::int64_t num_calls) {
    for (const MatmulPrecision precision : kSpeedModes) {
      Tensor c = Tensor::empty({2, 3, 5, 7}), expected = Tensor::empty({2, 3, 5, 7});
      launch_cpu(BatchedMatmul{a, b, expected});
      CHECK(calls_in([&] { launch_cuda(BatchedMatmul{a, b, c, precision}, {}); }) == num_calls);
      CHECK(largest_error(c.to_vector<float>(), expected.to_vector<float>()) <=
            bound(precision, 4));
      CHECK_FALSE(equal_bits(c, expected));
    }
  };
  const Tensor a = numbers({2, 3, 5, 4}), b = numbers({2, 3, 4, 7});
  check(a, b, 1);
  check(a, numbers({2, 3, 7, 4}).transpose(-2, -1), 1);
  check(a, numbers({4, 7}).expand({2, 3, 4, 7}), 1);
  check(a, numbers({3, 4, 7}).expand({2, 3, 4, 7}), 2);      // the second begins anew
  check(numbers({2, 5, 3, 4}).permute({0, 2, 1, 3}), b, 2);  // heads between rows
  check(numbers({3, 2, 5, 4}).transpose(0, 1), b, 2);
  const Tensor sparse = numbers({2, 3, 5, 8}).slice(-1, 0, 8, 2);
  Tensor c = Tensor::empty({2, 3, 5, 7}), expected = Tensor::empty({2, 3, 5, 7});
  launch_cpu(BatchedMatmul{sparse, b, expected});
  CHECK(calls_in([&] {
          launch_cuda(BatchedMatmul{sparse, b, c, MatmulPrecision::tf32}, {});
        }) == 0);
  CHECK(equal_bits(c, expected));
}
