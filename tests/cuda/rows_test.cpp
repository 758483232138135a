// The row kernels on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <random>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

std::vector<float> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(engine()) / 0x1p29 - 4);
    if (engine() % 50 == 0) value = engine() % 2 == 0 ? 0.0f : -0.0f;
  }
  return values;
}

std::vector<float> unwritten(std::int64_t count) {
  return DeviceFloats::unwritten(static_cast<std::size_t>(count));
}

struct Size {
  std::int64_t rows, cols;
};

/// Around the borders of warps, blocks of the sum, teams and turns.
std::vector<Size> sizes() {
  std::vector<Size> out = {{1, 1}, {9, 3}, {8, 32}, {17, 33}, {3, 1024}, {2, 1025}, {2, 2100}};
  if (!kAddressSanitizer && !kThreadSanitizer) {
    for (const Size more : {Size{1, 8192}, Size{2, 8193}, Size{1, 41000}}) out.push_back(more);
  }
  return out;
}

Matrix<const float> view(const std::vector<float>& values, Size size) {
  return row_major<const float>(values.data(), size.rows, size.cols);
}

Matrix<float> view(DeviceFloats& values, Size size) {
  return row_major(values.data(), size.rows, size.cols);
}

}  // namespace

TEST_CASE("cuda.rows: squared error has the CPU's bits") {
  for (const Size size : sizes()) {
    const std::int64_t count = size.rows * size.cols;
    const auto x = numbers(count, 1), y = numbers(count, 2), dloss = numbers(size.rows, 3);
    std::vector<float> loss(dloss.size()), dx(x.size()), dy(x.size());
    launch_cpu(MseForward<float>{view(x, size), view(y, size), loss.data()});
    launch_cpu(MseBackward<float>{view(x, size),
                                  view(y, size),
                                  dloss.data(),
                                  1,
                                  row_major(dx.data(), size.rows, size.cols),
                                  row_major(dy.data(), size.rows, size.cols)});
    DeviceFloats device_x(x), device_y(y), device_dloss(dloss), out(unwritten(size.rows)),
        out_dx(unwritten(count)), out_dy(unwritten(count));
    CAPTURE(size.cols);
    CHECK(examine({{"loss", &out, loss}, {"dx", &out_dx, dx}, {"dy", &out_dy, dy}}, [&] {
            const auto a = view(device_x, size), b = view(device_y, size);
            launch_cuda(MseForward<float>{a, b, out.data()}, {});
            launch_cuda(
                MseBackward<float>{
                    a, b, device_dloss.data(), 1, view(out_dx, size), view(out_dy, size)},
                {});
          }) == "");
  }
  MESSAGE(sizes().size(), " shapes under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.rows: softmax and its logarithm have the CPU's bits, in place too") {
  for (const Size size : sizes()) {
    for (const auto kind : {SoftmaxKind::plain, SoftmaxKind::log}) {
      const std::int64_t count = size.rows * size.cols;
      const auto x = numbers(count, 4), dy = numbers(count, 5);
      std::vector<float> y(x.size()), dx(x.size());
      const auto out = [&](std::vector<float>& values) {
        return row_major(values.data(), size.rows, size.cols);
      };
      launch_cpu(SoftmaxForward<float>{kind, view(x, size), out(y)});
      launch_cpu(SoftmaxBackward<float>{kind, view(y, size), view(dy, size), out(dx)});
      DeviceFloats device_x(x), out_y(unwritten(count)), in_place(x), gradient(dy);
      CAPTURE(size.cols);
      CHECK(examine({{"y", &out_y, y}, {"x", &in_place, y}, {"dx", &gradient, dx}}, [&] {
              launch_cuda(SoftmaxForward<float>{kind, view(device_x, size), view(out_y, size)}, {});
              launch_cuda(SoftmaxForward<float>{kind, view(in_place, size), view(in_place, size)},
                          {});
              launch_cuda(
                  SoftmaxBackward<float>{
                      kind, view(out_y, size), view(gradient, size), view(gradient, size)},
                  {});
            }) == "");
    }
  }
  MESSAGE((2 * sizes().size()), " shapes and kinds under ", all_schedules().size(), " schedules");
}
