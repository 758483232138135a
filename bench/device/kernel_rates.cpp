// Measures each kernel on a CUDA device beside what the card can do: a line of JSON for each.
//
// {"copy": seconds, "bytes"}, then {"cublas": "ieee" | "tf32" | "bf16", "sizes", "flops",
// "seconds"}, then {"kernel", "sizes", "counted", "work", "extra_bytes", "seconds"}, or "left_out"
// with a reason. Extra bytes are the most that a launch holds beside what was there before it.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/core/device_backend.h"
#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/cuda/blas.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/cuda/runtime.h"
#include "accrue/kernels/cuda/stream_timer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace accrue::bench {
namespace {

namespace cuda = kernels::cuda;
using nlohmann::json;

struct Settings {
  bool small = false;
  Device device = Device::cuda(0);
  double budget = 0.2;  ///< seconds of measuring per kernel
};

/// Median seconds of one launch. Launches that follow each other hide the host's time.
double seconds_of(const std::function<void()>& launch, const Settings& settings) {
  constexpr double kTurn = 2e-3;
  const cuda::DeviceScope scope(settings.device.index);
  cuda::StreamTimer timer(cuda::current_stream(settings.device.index));
  const auto turn = [&](int launches) {
    timer.start();
    for (int i = 0; i < launches; ++i) launch();
    return timer.stop() / launches;
  };
  const double cold = turn(1), first = settings.small ? cold : turn(1);
  if (settings.small) return first;
  const int launches = static_cast<int>(std::clamp(kTurn / first, 1.0, 100.0));
  const int turns = static_cast<int>(std::clamp(settings.budget / first / launches, 3.0, 15.0));
  std::vector<double> times;
  for (int i = 0; i < turns; ++i) times.push_back(turn(launches));
  return median(times);
}

/// The most memory that one launch holds beside what is in use.
std::int64_t extra_bytes_of(const std::function<void()>& launch, const Settings& settings) {
  const int device = settings.device.index;
  const std::int64_t before = cuda::memory_stats(device).allocated_bytes;
  cuda::reset_peak_memory(device);
  launch();
  return cuda::memory_stats(device).peak_bytes - before;
}

void print_line(const json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void measure_copy(std::int64_t count, const Settings& settings) {
  const Tensor from = numbers({count}, settings.device, 1);
  Tensor to = unwritten({count}, settings.device);
  const double seconds = seconds_of(
      [&] {
        cuda::copy(to.mutable_data<float>(),
                   from.data<float>(),
                   static_cast<std::size_t>(4 * count),
                   cuda::current_stream(settings.device.index));
      },
      settings);
  print_line({{"copy", seconds}, {"bytes", 8 * count}});
}

/// c = a b of the sizes rows, inner, columns.
void measure_cublas(const Sizes& s, const Settings& settings) {
  using enum MatmulPrecision;
  const cuda::DeviceScope scope(settings.device.index);
  cuda::Blas blas;
  const Tensor a = numbers({s[0], s[1]}, settings.device, 1),
               b = numbers({s[1], s[2]}, settings.device, 2);
  Tensor c = unwritten({s[0], s[2]}, settings.device);
  for (const auto& [name, precision] : {std::pair("ieee", ieee), {"tf32", tf32}, {"bf16", bf16}}) {
    const auto call = [&, precision = precision] {
      const cuda::Stream stream = cuda::current_stream(settings.device.index);
      blas.multiply(precision, {rows_of(a), rows_of(b), out_rows_of(c)}, stream);
    };
    print_line({{"cublas", name},
                {"sizes", s},
                {"flops", product(s, 2)},
                {"seconds", seconds_of(call, settings)}});
  }
}

void measure(const KernelCase& kernel, const Sizes& sizes, const Settings& settings) {
  json line = {{"kernel", kernel.name},
               {"sizes", sizes},
               {"counted", kernel.counted == Counted::flops ? "flops" : "bytes"},
               {"work", kernel.count(sizes)}};
  try {
    const Work work = kernel.make(sizes, settings.device);
    line["extra_bytes"] = extra_bytes_of(work.launch, settings);
    line["seconds"] = seconds_of(work.launch, settings);
  } catch (const OutOfMemoryError& error) {
    line["left_out"] = error.what();
  }
  print_line(line);
}

int run(int argc, char** argv) {
  Settings settings;
  Options options("Measures each kernel on a CUDA device. A line of JSON for each.");
  options.device(settings.device);
  options.flag("small", settings.small, "one launch at a small size, which measures nothing");
  options.parse(argc, argv);
  if (settings.device.is_cpu()) throw ProgramEnd{kConfiguration, "rates need a CUDA device"};
  try {
    measure_copy(settings.small ? 1 << 16 : 1 << 30, settings);
  } catch (const OutOfMemoryError&) {  // less fits, and is still more than caches hold
    measure_copy(1 << 26, settings);
  }
  std::vector<KernelCase> all = kernel_cases();
  for (KernelCase& kernel : all) {
    if (settings.small && !kernel.sizes.empty()) kernel.sizes = {kernel.small};
    if (kernel.name != "linear") continue;
    for (const Sizes& sizes : kernel.sizes) measure_cublas(sizes, settings);
  }
  for (const KernelCase& kernel : all) {
    for (const Sizes& sizes : kernel.sizes) measure(kernel, sizes, settings);
  }
  return kDone;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
