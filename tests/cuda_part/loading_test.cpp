// The CUDA part of a build by nvcc, which is loaded when a device is first asked for.
#include "accrue/core/device_backend.h"
#include "accrue/core/error.h"
#include "accrue/core/tensor.h"
#include "accrue/tests/support/doctest.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace accrue;

namespace {

bool is_loaded(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

/// Milliseconds of processor time from the start of a program to its end, which are those of the
/// clock where nothing else runs. The dynamic loader writes what it loads to the file `loaded`.
double time_program(const char* program, const char* loaded = nullptr) {
  std::fflush(stdout);  // else the child would print it too
  const pid_t child = fork();
  if (child == 0) {
    if (loaded != nullptr && std::freopen(loaded, "w", stderr) != nullptr) {
      setenv("LD_DEBUG", "files", 1);
    }
    if (std::freopen("/dev/null", "w", stdout) != nullptr) execl(program, program, nullptr);
    _exit(127);
  }
  int status = 0;
  rusage used;
  wait4(child, &status, 0, &used);
  CHECK(status == 0);
  const auto milliseconds = [](timeval t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return milliseconds(used.ru_utime) + milliseconds(used.ru_stime);
}

}  // namespace

TEST_CASE("cuda_part.loading: the CUDA part is loaded when a device is asked for, not before") {
  CHECK(Tensor::ones({2}).to_vector<float>().size() == 2);
  CHECK(!is_loaded("libaccrue_cuda_part.so"));
  CHECK(!is_loaded("libcudart"));
  const int count = cuda_device_count();
  CHECK(is_loaded("libaccrue_cuda_part.so"));
  if (count > 0) {
    const Tensor far = Tensor::of<float>({1, 2}).to(Device::cuda());
    CHECK(far.to_vector<float>() == std::vector<float>{1, 2});
    return;
  }
  const std::string why = why_no_cuda();
  CAPTURE(why);
  CHECK(why.find("this machine has no CUDA d") == 0);
  CHECK_THROWS_WITH_AS(Tensor::ones({2}).to(Device::cuda()),
                       ("[allocate] device must be cpu here, got cuda:0; " + why).c_str(),
                       DeviceError);
}

TEST_CASE(
    "cuda_part.loading: a CPU program of a CUDA build starts in 15 ms, or 15 times what any "
    "takes") {
  const auto median = [](const char* program) {
    std::vector<double> times;
    for (int i = 0; i < 31; ++i) times.push_back(time_program(program));
    std::ranges::sort(times);
    return times[15];
  };
  const double time = median(ACCRUE_CPU_PROGRAM), least = median("/bin/true");
  MESSAGE("docs_plain_loop: ", time, " ms; a program that does nothing: ", least);
  CHECK(time < 15 * std::max(1.0, least));  // under some virtual machines none starts in 1 ms
}

TEST_CASE("cuda_part.loading: a CPU program of a CUDA build loads nothing of CUDA") {
  time_program(ACCRUE_CPU_PROGRAM, "loaded.txt");
  std::ifstream file("loaded.txt");
  const std::string loaded(std::istreambuf_iterator<char>(file), {});
  CHECK(loaded.find("libstdc++.so") != std::string::npos);
  for (const char* library : {"libaccrue_cuda", "libcuda", "libcublas", "libnccl"}) {
    CAPTURE(library);
    CHECK(loaded.find(library) == std::string::npos);
  }
}
