#include "accrue/tests/ptx/device.h"

#include "accrue/core/error.h"
#include "accrue/tests/ptx/entry.h"
#include "accrue/tests/ptx/grid.h"

#include <cuda_runtime.h>
#include <cxxabi.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <vector>

namespace accrue::ptx {
namespace {

/// What nvcc's code registers before main().
struct Device {
  std::vector<std::map<std::string, std::string>> units;  ///< entries, by their mangled names
  struct Function {
    std::size_t unit;
    std::string mangled, name;
  };
  std::map<const void*, Function> functions;  ///< by the host's functions that stand for kernels
  std::map<const void*, Kernel> kernels;      ///< those read so far
  std::function<std::string(const std::string&)> change;
  Report report;  ///< but for `left_out`

  const Kernel& kernel(const void* function) {
    const auto found = kernels.find(function);
    if (found != kernels.end()) return found->second;
    const Function& it = functions.at(function);
    const std::string& entry = units.at(it.unit).at(it.mangled);
    return kernels.emplace(function, decode(change ? change(entry) : entry)).first->second;
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

void run(const cudaLaunchConfig_t& how, const void* function, void** arguments) {
  const Kernel& kernel = device().kernel(function);
  const std::string& name = device().functions.at(function).name;
  const simt::LaunchShape shape{name.c_str(),
                                {how.gridDim.x, how.gridDim.y, how.gridDim.z},
                                {how.blockDim.x, how.blockDim.y, how.blockDim.z},
                                how.dynamicSmemBytes};
  Report& report = device().report;
  const auto begin = std::chrono::steady_clock::now();
  report.instructions += run_grid(kernel, shape, pack(kernel, arguments));
  report.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++report.launches;
  if (!report.ran.insert(name).second) return;
  for (const std::string& statement : kernel.statements) {
    report.opcodes.insert(opcode_of(statement));
  }
}

}  // namespace

Report report() {
  Report out = device().report;
  for (const auto& [function, it] : device().functions) {
    if (!out.ran.contains(it.name)) out.left_out.insert(it.name);
  }
  return out;
}

PlantedChange::PlantedChange(std::function<std::string(const std::string&)> change)
    : report_(device().report) {
  device().kernels.clear();
  device().change = std::move(change);
}
PlantedChange::~PlantedChange() {
  device().kernels.clear();
  device().change = nullptr;
  device().report = report_;
}

}  // namespace accrue::ptx

// The part of the CUDA runtime that the kernels' host code calls. The linker takes these functions
// before those of the shared runtime. All work is done when it is queued.

using accrue::ptx::device;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    int magic, version;
    const std::byte* container;
    void* unused;
  };
  const std::byte* const container = static_cast<const Wrapper*>(wrapper)->container;
  const char* const asked = std::getenv("ACCRUE_PTX");  // sm_80 or another
  const auto architecture = static_cast<std::uint32_t>(std::stoul(asked ? asked + 3 : "80"));
  device().units.push_back(
      accrue::ptx::split_entries(accrue::ptx::find_ptx(container, architecture)));
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
      reinterpret_cast<std::size_t>(unit) - 1, name, accrue::ptx::short_name(name)};
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* function, void** args) {
  accrue::ptx::run(*how, function, args);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* its, const void* function) {
  its->sharedSizeBytes = device().kernel(function).shared_bytes;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

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
  *value = static_cast<int>(accrue::simt::kMaxShared);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = ::operator new (bytes, std::align_val_t{256});
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  ::operator delete (data, std::align_val_t{256});
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
  attributes->type = cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

}  // extern "C"

namespace accrue::simt {

RunOptions& run_options() {
  thread_local RunOptions options;
  return options;
}

}  // namespace accrue::simt
