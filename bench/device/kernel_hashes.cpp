// Prints a hash of what each kernel computes at a small size: the same on every device.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/core/device_backend.h"

#include <fmt/format.h>

namespace accrue::bench {
namespace {

std::uint64_t hash_of(const KernelCase& kernel, Device device) {
  const Work work = kernel.make(kernel.small, device);
  work.launch();
  synchronize(device);
  std::uint64_t hash = kHashSeed;
  for (const Tensor& result : work.results) {
    const std::vector<float> values = result.to_vector<float>();
    hash = hash_bits(std::span(values), hash);
  }
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
