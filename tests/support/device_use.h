// DeviceUse: finds test cases that compute on the CPU where they should on a device.
#pragma once

#include "accrue/kernels/cuda/allocator.h"
#include "accrue/tests/support/device.h"

#include <cstdio>

namespace accrue::kernels::cuda {

// Null in programs without the CUDA part.
[[gnu::weak]] MemoryStats memory_stats(int device);
[[gnu::weak]] void reset_peak_memory(int device);

}  // namespace accrue::kernels::cuda

namespace accrue::test {

/// What test cases take of the memory of tensors, in a run on a device; on the CPU it sees nothing.
class DeviceUse {
 public:
  void begin(const char* test_case) {
    if (!sees()) return;
    test_case_ = test_case;
    reset_peak_cpu_memory();
    for (int i = 0; i < kNumDevices; ++i) kernels::cuda::reset_peak_memory(i);
    of_cpu_ = cpu_memory_stats().peak_bytes;
    of_devices_ = peak_of_devices();
  }
  /// False where the case made tensors, all of them on the CPU.
  bool end() const {
    if (!sees() || peak_of_devices() > of_devices_) return true;
    const bool has_tensors = cpu_memory_stats().peak_bytes > of_cpu_;
    std::printf("%s: %s\n",
                has_tensors ? "computes on the CPU, so tests/support/cpu_only.h must say why"
                            : "not on a device, since it makes no tensors",
                test_case_);
    return !has_tensors;
  }

 private:
  static constexpr int kNumDevices = 4;  // of the simulator

  static bool sees() {
    return !device_under_test().is_cpu() && kernels::cuda::memory_stats != nullptr;
  }
  static std::int64_t peak_of_devices() {
    std::int64_t bytes = 0;
    for (int i = 0; i < kNumDevices; ++i) bytes += kernels::cuda::memory_stats(i).peak_bytes;
    return bytes;
  }

  const char* test_case_ = "";
  std::int64_t of_cpu_ = 0, of_devices_ = 0;
};

}  // namespace accrue::test
