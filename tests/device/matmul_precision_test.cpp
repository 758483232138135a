// set_matmul_precision: which products go to cuBLAS, and that none does in ieee.
#include "accrue/accrue.h"
#include "accrue/kernels/simt/cublas/calls.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/precision_runs.h"

using namespace accrue;
using namespace accrue::tests;

namespace {

const Device kGpu = Device::cuda(0);

class PrecisionScope {
 public:
  explicit PrecisionScope(MatmulPrecision precision) { set_matmul_precision(precision); }
  ~PrecisionScope() { set_matmul_precision(MatmulPrecision::ieee); }
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;
};

template <class Run>
std::int64_t calls_in(const Run& run) {
  const std::int64_t before = simt::num_cublas_calls();
  run();
  return simt::num_cublas_calls() - before;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    most = difference <= most ? most : difference;
  }
  return most;
}

}  // namespace

TEST_CASE("device.matmul_precision: ieee asks cuBLAS for nothing, before and after speed modes") {
  const Report wanted = train_net({}, kWindow);
  for (const auto precision : {MatmulPrecision::tf32, MatmulPrecision::bf16}) {
    Report report;
    CHECK(calls_in([&] { report = train_net({.device = kGpu}, 4); }) == 0);
    CHECK(report == wanted);
    const PrecisionScope scope(precision);
    CHECK(calls_in([&] { report = train_net({.device = kGpu}, 4); }) > 0);
    CHECK(report.weights != wanted.weights);
  }
}

TEST_CASE("device.matmul_precision: a step of two layers is five products, whatever the lanes") {
  const Report wanted = train_net({}, kWindow);
  for (const auto& [precision, tolerance] :
       {std::pair(MatmulPrecision::tf32, 2e-3), std::pair(MatmulPrecision::bf16, 2e-2)}) {
    const PrecisionScope scope(precision);
    for (const std::int64_t batch_size : {2, 8}) {
      CAPTURE(batch_size);
      const std::int64_t num_batches = 2 * ((kSamples + batch_size - 1) / batch_size);
      Report report;
      CHECK(calls_in([&] { report = train_net({.device = kGpu}, batch_size); }) == 5 * num_batches);
      CHECK(largest_difference(report.weights.back(), wanted.weights.back()) < tolerance);
    }
  }
}

TEST_CASE("device.matmul_precision: ranks share the mode and keep one set of weights") {
  const PrecisionScope scope(MatmulPrecision::tf32);
  const auto reports = on_ranks(2, [](dist::ProcessGroup& group) {
    return train_net(
        {.device = kGpu, .process_group = &group, .mixed_precision = train::MixedPrecision::fp16},
        4);
  });
  CHECK(reports[0] == reports[1]);
}

TEST_CASE("device.matmul_precision: matmul and the fused loss go to cuBLAS with their gradients") {
  const auto leaf = [](const Shape& shape, Device device) {
    Tensor values = Tensor::empty(shape);
    Generator(7).normal({values.mutable_data<float>(), static_cast<std::size_t>(values.numel())});
    return Variable::leaf(values.to(device));
  };
  const auto run_matmul = [&](Device device) {
    const Variable a = leaf({2, 3, 4}, device), b = leaf({2, 4, 5}, device);
    matmul(a, b).backward(Tensor::ones({2, 3, 5}).to(device));
    return cat(std::vector<Tensor>{a.grad().flatten(), b.grad().flatten()}).to_vector<float>();
  };
  const auto run_loss = [&](Device device) {
    const Variable x = leaf({4, 3}, device), w = leaf({5, 3}, device);
    const Tensor labels = Tensor::of<std::int64_t>({0, 1, 2, 4}).to(device);
    linear_cross_entropy_rows(x, w, {}, labels).backward(Tensor::ones({4}).to(device));
    return cat(std::vector<Tensor>{x.grad().flatten(), w.grad().flatten()}).to_vector<float>();
  };
  const PrecisionScope scope(MatmulPrecision::bf16);
  const auto check = [](const auto& body) {
    std::vector<float> near, far;
    CHECK(calls_in([&] { near = body(Device::cpu()); }) == 0);
    CHECK(calls_in([&] { far = body(kGpu); }) == 3);
    CHECK(near != far);
    CHECK(largest_difference(near, far) < 0.05);
  };
  check(run_matmul);
  check(run_loss);
}

TEST_CASE("device.matmul_precision: the CPU ignores it") {
  const Report wanted = train_net({}, 4);
  const PrecisionScope scope(MatmulPrecision::bf16);
  CHECK(train_net({}, 4) == wanted);
}
