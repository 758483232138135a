// What a CUDA build does on a machine without a GPU.
#include "accrue/core/error.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;

TEST_CASE("cuda.no_gpu: a launch without a GPU is an error that names the kernel and the way out") {
  float x[2] = {1, 2}, y[1] = {7};
  std::string message;
  try {
    launch_cuda(RowSum<float>{row_major<const float>(x, 1, 2), y}, {});
  } catch (const DeviceError& error) {
    message = error.what();
  }
  if (message.empty()) {
    MESSAGE("skipped: this machine has a GPU");
    return;
  }
  CHECK(message.find("[row_sum] cudaError") == 0);
  CHECK(message.find("without a GPU and its driver use the CPU") != std::string::npos);
  CHECK(y[0] == 7);
}
