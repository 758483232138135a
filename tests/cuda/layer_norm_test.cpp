// Layer and RMS normalisation on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <cmath>
#include <random>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

std::vector<float> numbers(std::int64_t count, unsigned seed, float offset = 0) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = engine() % 50 == 0 ? -0.0f : normal(engine) + offset;
  return values;
}

DeviceFloats unwritten(std::size_t count) { return DeviceFloats(DeviceFloats::unwritten(count)); }

/// Rows of x lie `cols + cols % 3` elements apart, all others are dense.
struct Problem {
  std::int64_t rows, cols;
  NormKind kind;
  bool has_weight, has_bias;
  std::vector<float> x = numbers(rows * (cols + cols % 3), 1, 3), w = numbers(cols, 2),
                     b = numbers(cols, 3), dy = numbers(rows * cols, 4);

  LayerNormForward<float> forward(const float* from, const float* weight, const float* bias) const {
    LayerNormForward<float> args;
    args.kind = kind;
    args.eps = 1e-5;
    args.x = {from, rows, cols, cols + cols % 3, 1};
    args.weight = has_weight ? weight : nullptr;
    args.bias = has_bias ? bias : nullptr;
    return args;
  }
  LayerNormBackward<float> backward(const LayerNormForward<float>& it, const float* from) const {
    LayerNormBackward<float> args;
    args.kind = kind;
    args.x = it.x;
    args.weight = it.weight;
    args.dy = row_major(from, rows, cols);
    args.mean = it.mean;
    args.rstd = it.rstd;
    return args;
  }
  Matrix<float> dense(float* data) const { return row_major(data, rows, cols); }
};

/// Both directions on both devices; "" if the bits agree.
std::string examine_problem(const Problem& p) {
  std::vector<float> y(p.dy.size()), dx = y, n = y, mean(static_cast<std::size_t>(p.rows)),
                                     rstd = mean;
  auto forward = p.forward(p.x.data(), p.w.data(), p.b.data());
  const auto write = [&](LayerNormForward<float>& args, float* to, float* means, float* roots) {
    args.y = p.dense(to);
    args.mean = means;
    args.rstd = roots;
  };
  write(forward, y.data(), mean.data(), rstd.data());
  launch_cpu(forward);
  auto backward = p.backward(forward, p.dy.data());
  backward.dx = p.dense(dx.data());
  backward.n = p.dense(n.data());
  launch_cpu(backward);

  DeviceFloats x(p.x), w(p.w), b(p.b), dy(p.dy),
      out_y = unwritten(y.size()), out_dx = unwritten(y.size()), out_n = unwritten(y.size()),
      in_place(p.dy), out_mean = unwritten(mean.size()), out_rstd = unwritten(mean.size());
  return examine({{"y", &out_y, y},
                  {"mean", &out_mean, mean},
                  {"rstd", &out_rstd, rstd},
                  {"dx", &out_dx, dx},
                  {"n", &out_n, n},
                  {"dx over dy", &in_place, dx}},
                 [&] {
                   auto args = p.forward(x.data(), w.data(), b.data());
                   write(args, out_y.data(), out_mean.data(), out_rstd.data());
                   launch_cuda(args, {});
                   auto gradient = p.backward(args, dy.data());
                   gradient.dx = p.dense(out_dx.data());
                   launch_cuda(gradient, {});
                   gradient.dx = {};
                   gradient.n = p.dense(out_n.data());
                   launch_cuda(gradient, {});
                   gradient.n = {};
                   gradient.dy = gradient.dx = p.dense(in_place.data());
                   launch_cuda(gradient, {});
                 });
}

}  // namespace

TEST_CASE("cuda.layer_norm: outputs, statistics and gradients have the CPU's bits") {
  int num_problems = 0;
  for (const std::int64_t cols : {1, 3, 31, 32, 33, 1000, 1024, 1025, 3000, 20001}) {
    if ((kAddressSanitizer || kThreadSanitizer) && cols > 3000) continue;
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      for (const int affine : {0, 1, 2}) {
        CAPTURE(cols);
        CAPTURE(affine);
        const Problem p{cols <= 1000 ? 11 : 3, cols, kind, affine > 0, affine > 1};
        CHECK(examine_problem(p) == "");
        ++num_problems;
      }
    }
  }
  MESSAGE(num_problems, " problems under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.layer_norm: rows behind the first 2^31 elements are right") {
  constexpr std::int64_t kCols = 1 << 16, kRows = (1 << 15) + 2;
  const simt::GuardedMemory x(kRows * kCols * 4, 0, simt::GuardedMemory::kWideFence);
  const Matrix<float> all = row_major(reinterpret_cast<float*>(x.data()), kRows, kCols);
  DeviceVector<float> mean(kRows), rstd(kRows);
  for (std::int64_t c = 0; c < kCols; c += 2) all(kRows - 1, c) = 2;
  LayerNormForward<float> args{.x = all, .y = all, .mean = mean.data(), .rstd = rstd.data()};
  simt::run_options() = {.block_begin = kRows - 1};
  launch_cuda(args, {});
  CHECK(mean.back() == 1);
  CHECK(rstd.back() == 1);
  CHECK(all(kRows - 1, 0) == 1);
  CHECK(all(kRows - 1, kCols - 1) == -1);
  LayerNormBackward<float> gradient;
  gradient.x = gradient.dy = gradient.dx = all;
  gradient.mean = mean.data();
  gradient.rstd = rstd.data();
  launch_cuda(gradient, {});
  simt::run_options() = {};
  CHECK(all(kRows - 1, kCols - 1) == 1);  // dy is -1 and n is -2, so k is 1 and the mean of dy 0
}

TEST_CASE("cuda.layer_norm: rows without elements write statistics alone, other shapes throw") {
  LayerNormForward<float> args{.x = {nullptr, 2, 0, 0, 1}, .y = {nullptr, 2, 0, 0, 1}};
  DeviceFloats mean = unwritten(2), rstd = unwritten(2);
  CHECK(examine({{"mean", &mean, {NAN, NAN}}, {"rstd", &rstd, {NAN, NAN}}}, [&] {
          args.mean = mean.data();
          args.rstd = rstd.data();
          launch_cuda(args, {});
        }) == "");
  args.y.cols = 3;
  CHECK_THROWS_AS(launch_cuda(args, {}), ShapeError);
}
