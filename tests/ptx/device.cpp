#include "accrue/tests/ptx/device.h"

#include "accrue/core/error.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/ptx/entry.h"
#include "accrue/tests/ptx/grid.h"

#include <cuda_runtime.h>
#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace accrue::ptx {
namespace {

/// Shared memory that a block may have without a call that allows more.
constexpr std::size_t kUnasked = 48 * 1024;

/// What nvcc's code registers before main().
struct Device {
  std::uint32_t architecture = 80;
  std::vector<std::map<std::string, std::string>> units;  ///< entries, by their mangled names
  struct Function {
    std::size_t unit;
    std::string mangled, name;
    std::size_t allowed_shared = 0;  ///< of a launch, in bytes, when it was asked for
  };
  std::map<const void*, Function> functions;  ///< by the host's functions that stand for kernels
  std::map<const void*, Kernel> kernels;      ///< those read so far
  std::function<std::string(const std::string&)> change;
  std::map<const void*, Kernel> changed;  ///< those read meanwhile
  Report report;                          ///< launches, instructions and seconds

  std::size_t max_shared() const { return (architecture == 80 ? 163 : 227) * std::size_t{1024}; }
  const Kernel& kernel(const void* function) {
    auto& known = change ? changed : kernels;
    const auto found = known.find(function);
    if (found != known.end()) return found->second;
    const Function& it = functions.at(function);
    const std::string& entry = units.at(it.unit).at(it.mangled);
    return known.emplace(function, decode(change ? change(entry) : entry)).first->second;
  }
};

/// Never destroyed: it serves until the program ends.
Device& device() {
  static Device* const the_device = new Device;
  return *the_device;
}

/// "row_kernel<8, Forward>" of a mangled name.
std::string short_name(const std::string& mangled) {
  int status = 0;
  char* const full = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = full == nullptr ? mangled : full;
  std::free(full);
  for (const char* const part :
       {"void ", "accrue::", "kernels::", "cuda::", "(anonymous namespace)::", "(int)", "(bool)"}) {
    for (auto at = name.find(part); at != name.npos; at = name.find(part)) {
      name.erase(at, std::strlen(part));
    }
  }
  return name.substr(0, name.find('('));
}

std::vector<std::byte> pack(const Kernel& kernel, void** arguments) {
  std::vector<std::byte> parameters(kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.parameter_sizes.size(); ++i) {
    std::memcpy(
        parameters.data() + kernel.parameter_offsets[i], arguments[i], kernel.parameter_sizes[i]);
  }
  return parameters;
}

/// "fma.rn.f32" of "@%p1 fma.rn.f32 %f1, %f2, %f3, %f4".
std::string opcode_of(const std::string& statement) {
  const auto begin = statement[0] == '@' ? statement.find_first_of(" \t") + 1 : 0;
  return statement.substr(begin, statement.find_first_of(" \t", begin) - begin);
}

simt::LaunchShape shape_of(const cudaLaunchConfig_t& how, const std::string& name) {
  return {name.c_str(),
          {how.gridDim.x, how.gridDim.y, how.gridDim.z},
          {how.blockDim.x, how.blockDim.y, how.blockDim.z},
          how.dynamicSmemBytes};
}

/// What a launch without any other fault is refused for.
cudaError_t check_resources(const simt::LaunchShape& shape, const void* function) {
  const Kernel& kernel = device().kernel(function);
  if (shape.block.x > kernel.max_threads) return cudaErrorLaunchOutOfResources;
  const std::size_t unasked = kUnasked - std::min(kUnasked, kernel.shared_bytes);
  const std::size_t allowed = std::max(device().functions.at(function).allowed_shared, unasked);
  return shape.dynamic_shared > allowed ? cudaErrorInvalidValue : cudaSuccess;
}

void run(const simt::LaunchShape& shape,
         const void* function,
         const std::vector<std::byte>& parameters) {
  Report& report = device().report;
  const auto begin = std::chrono::steady_clock::now();
  report.instructions += run_grid(device().kernel(function), shape, parameters);
  report.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++report.launches;
}

}  // namespace

Report report() {
  Report out = device().report;
  for (const auto& unit : device().units) out.entries += unit.size();
  for (const auto& [function, it] : device().functions) {
    const auto found = device().kernels.find(function);
    const bool has_run = found != device().kernels.end() && found->second.code.front().has_run;
    if (!has_run) out.left_out.insert(it.name);
    if (!has_run) continue;
    const Kernel& kernel = found->second;
    ++out.num_run;
    for (const std::string& statement : kernel.statements) {
      out.opcodes.insert(opcode_of(statement));
    }
    out.statements += std::ssize(kernel.code);
    out.reached += std::ranges::count_if(kernel.code, &Instruction::has_run);
  }
  return out;
}

PlantedChange::PlantedChange(std::function<std::string(const std::string&)> change)
    : report_(device().report) {
  device().change = std::move(change);
}
PlantedChange::~PlantedChange() {
  device().change = nullptr;
  device().changed.clear();
  device().report = report_;
}

}  // namespace accrue::ptx

// The part of the CUDA runtime that the kernels' host code calls. The linker takes these functions
// before those of the shared runtime. runtime.cpp has its memory, streams and events.

using accrue::ptx::device;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    int magic, version;
    const std::byte* container;
    void* unused;
  };
  const std::byte* const container = static_cast<const Wrapper*>(wrapper)->container;
  if (const char* const asked = std::getenv("ACCRUE_PTX")) {  // sm_80 or another
    device().architecture = static_cast<std::uint32_t>(std::stoul(asked + 3));
  }
  device().units.push_back(
      accrue::ptx::split_entries(accrue::ptx::find_ptx(container, device().architecture)));
  return reinterpret_cast<void**>(device().units.size());  // only a number
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** unit,
                            const char* function,
                            char*,
                            const char* name,
                            int,
                            uint3*,
                            uint3*,
                            dim3*,
                            dim3*,
                            int*) {
  device().functions[function] = {
      reinterpret_cast<std::size_t>(unit) - 1, name, accrue::ptx::short_name(name), 0};
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* function, void** args) {
  const auto shape = accrue::ptx::shape_of(*how, device().functions.at(function).name);
  const cudaError_t status = accrue::ptx::check_resources(shape, function);
  if (status != cudaSuccess) return status;
  accrue::simt::enqueue(reinterpret_cast<accrue::simt::Stream*>(how->stream),
                        [=, parameters = accrue::ptx::pack(device().kernel(function), args)] {
                          accrue::ptx::run(shape, function, parameters);
                        });
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* its, const void* function) {
  its->sharedSizeBytes = device().kernel(function).shared_bytes;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int bytes) {
  const auto shared = static_cast<std::size_t>(bytes);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize ||
      shared + device().kernel(function).shared_bytes > device().max_shared()) {
    return cudaErrorInvalidValue;
  }
  device().functions.at(function).allowed_shared = shared;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin) return cudaErrorNotSupported;
  *value = static_cast<int>(device().max_shared());
  return cudaSuccess;
}

}  // extern "C"

namespace accrue::simt {

RunOptions& run_options() {
  thread_local RunOptions options;
  return options;
}

}  // namespace accrue::simt
