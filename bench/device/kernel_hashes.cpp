// Prints a hash of what each kernel computes at a small size: the same on every device.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/core/device_backend.h"

#include <fmt/format.h>

#include <span>
#include <type_traits>

namespace accrue::bench {
namespace {

/// Halves hash as the floats that they are.
std::uint64_t hash_of(const Tensor& result, std::uint64_t hash) {
  const bool is_half = result.dtype() == DType::bfloat16 || result.dtype() == DType::float16;
  const Tensor there = result.to(Device::cpu()).contiguous();
  const Tensor values = is_half ? there.to(DType::float32) : there;
  return visit_dtype(values.dtype(), [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>)
      hash = hash_bits(std::span(values.data<T>(), static_cast<std::size_t>(values.numel())), hash);
    return hash;
  });
}

std::uint64_t hash_of(const KernelCase& kernel, Device device) {
  const Work work = kernel.make(kernel.small, device);
  work.launch();
  synchronize(device);
  std::uint64_t hash = kHashSeed;
  for (const Tensor& result : work.results) hash = hash_of(result, hash);
  return hash;
}

int run(int argc, char** argv) {
  Device device;
  std::string only;
  Options options("Prints a hash of what each kernel computes at a small size.");
  options.device(device);
  options.word("only", only, "NAME", "this kernel alone");
  options.parse(argc, argv);
  bool found = false;
  for (const KernelCase& kernel : kernel_cases()) {
    if (!only.empty() && kernel.name != only) continue;
    found = true;
    fmt::print("{} {}\n", hex(hash_of(kernel, device), 16), kernel.name);
  }
  if (!found) throw ProgramEnd{kUsage, "--only: there is no kernel " + only};
  return kDone;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
