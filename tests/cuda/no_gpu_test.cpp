// What a CUDA build does on a machine without a GPU.
#include "accrue/core/error.h"
#include "accrue/dist/device_link.h"
#include "accrue/dist/nccl/communicator.h"
#include "accrue/dist/nccl/link.h"
#include "accrue/dist/process_group.h"
#include "accrue/kernels/cuda/blas.h"
#include "accrue/kernels/cuda/check.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"

#include <cuda_runtime.h>

#include <cstring>
#include <set>

using namespace accrue;
using namespace accrue::kernels;
using test::message;

namespace {

/// These tests have nothing to say where there is a GPU.
bool has_gpu() {
  int count = 0;
  const bool is_there = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  if (is_there) MESSAGE("skipped: this machine has a GPU");
  return is_there;
}

struct Idle final : dist::nccl::Progress {
  void note_issued() override {}
  bool is_done() noexcept override { return true; }
  void note_lost(const std::exception_ptr&) noexcept override {}
};

}  // namespace

TEST_CASE("cuda.no_gpu: a launch without a GPU is an error that names the kernel and the way out") {
  if (has_gpu()) return;
  float x[2] = {1, 2}, y[1] = {7};
  const std::string said = message<DeviceError>([&] {
    launch_cuda(RowSum<float>{row_major<const float>(x, 1, 2), y}, {});
  });
  CHECK(said.starts_with("[row_sum] cudaError"));
  CHECK(said.find("without a GPU and its driver use the CPU") != std::string::npos);
  CHECK(y[0] == 7);
}

TEST_CASE("cuda.no_gpu: an error of an earlier kernel says that the device is lost") {
  const std::string said =
      message<DeviceError>([] { cuda::check(cudaErrorIllegalAddress, "cudaMemcpyAsync"); });
  CHECK(said.starts_with("[cudaMemcpyAsync] cudaErrorIllegalAddress"));
  CHECK(said.find("the device is lost to the process: start it again") != std::string::npos);
}

TEST_CASE("cuda.no_gpu: NCCL is there and makes identities that differ") {
  int version = 0;
  REQUIRE(ncclGetVersion(&version) == ncclSuccess);
  CHECK(version >= 22800);
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.insert(accrue_cuda_transport()->make_id());
  CHECK(ids.size() == 3);
  CHECK(ids.begin()->size() == sizeof(ncclUniqueId));
  MESSAGE("NCCL ", version);
}

TEST_CASE("cuda.no_gpu: a communicator without a GPU is an error that says what to do") {
  if (has_gpu()) return;
  ncclUniqueId id;
  const std::string bytes = accrue_cuda_transport()->make_id();
  std::memcpy(id.internal, bytes.data(), bytes.size());
  Idle idle;
  const std::string said =
      message<DeviceError>([&] { dist::nccl::Communicator(id, *dist::self_group(), idle); });
  CHECK(said.starts_with("[ncclCommInitRankConfig] unhandled cuda error"));
  CHECK(said.find("every rank needs an NVIDIA GPU of its own and its driver, else keep tensors on "
                  "the CPU") != std::string::npos);
}

TEST_CASE("cuda.no_gpu: connecting ranks without GPUs names a rank and the call that failed") {
  if (has_gpu()) return;
  const auto self = dist::self_group();
  const std::string said = message<DeviceError>(
      [&] { dist::connect_devices(*self, *accrue_cuda_transport(), Device::cuda(0)); });
  CHECK(
      said.starts_with("[connect_devices] all ranks must have a GPU, got a failure on rank 0: "
                       "[cudaDeviceGetPCIBusId] cudaError"));
}

TEST_CASE("cuda.no_gpu: a handle of cuBLAS without a GPU is an error that says what to do") {
  if (has_gpu()) return;
  CHECK(
      message<DeviceError>([] { cuda::Blas blas; }) ==
      "[cublasCreate] CUBLAS_STATUS_NOT_INITIALIZED: the library was not initialized; speed modes "
      "need an NVIDIA GPU and its driver, else use MatmulPrecision::ieee");
}
