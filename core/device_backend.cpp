#include "accrue/core/device_backend.h"

#include "accrue/core/error.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

// Defined by the CUDA part: linked into this program, or in a shared object that is loaded here.
extern "C" [[gnu::weak]] accrue::DeviceBackend* accrue_cuda_backend();

namespace accrue {
namespace {

/// The CUDA part of this process. Programs that use none pay nothing for it.
struct CudaPart {
  DeviceBackend* backend = nullptr;
  void* handle = nullptr;
  bool is_told = false;  ///< why a file cannot be loaded
  std::string why_none = "this build has no CUDA; configure the preset cuda or simulated";

  CudaPart() {
    if (accrue_cuda_backend != nullptr) {
      backend = accrue_cuda_backend();
      return;
    }
    const char* const chosen = std::getenv("ACCRUE_CUDA_LIBRARY");
    for (const char* path : {chosen, ACCRUE_CUDA_BUILT, ACCRUE_CUDA_INSTALLED}) {
      if (path != nullptr && *path != '\0' && load(path)) return;
    }
  }

  bool load(const char* path) {
    void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* const symbol = opened == nullptr ? nullptr : dlsym(opened, "accrue_cuda_backend");
    if (symbol == nullptr) {
      const char* const reason = dlerror();
      if (!is_told || access(path, F_OK) == 0)  // an absent file hides no better reason
        why_none = text("the CUDA part cannot be loaded: ", reason == nullptr ? path : reason);
      is_told = true;
      return false;
    }
    handle = opened;
    backend = reinterpret_cast<DeviceBackend* (*)()>(symbol)();
    return true;
  }
};

CudaPart& cuda_part() {
  static CudaPart part;
  return part;
}

}  // namespace

DeviceBackend& backend_of(Device device, const char* operation) {
  CudaPart& part = cuda_part();
  const int count = part.backend == nullptr ? 0 : part.backend->num_devices();
  ACCRUE_CHECK(count > 0,
               DeviceError,
               operation,
               "device must be cpu here, got ",
               device.str(),
               "; ",
               why_no_cuda());
  ACCRUE_CHECK(device.index >= 0 && device.index < count,
               DeviceError,
               operation,
               "devices are cuda:0 to cuda:",
               count - 1,
               ", got ",
               device.str(),
               "; use one of them, or let CUDA_VISIBLE_DEVICES show more");
  return *part.backend;
}

void* cuda_part_symbol(const char* name) noexcept {
  void* const handle = cuda_part().handle;
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

int cuda_device_count() noexcept {
  try {
    DeviceBackend* const backend = cuda_part().backend;
    return backend == nullptr ? 0 : backend->num_devices();
  } catch (...) {
    return 0;
  }
}

std::string why_no_cuda() {
  CudaPart& part = cuda_part();
  return part.backend == nullptr ? part.why_none : part.backend->why_none();
}

void synchronize(Device device) {
  if (!device.is_cpu()) backend_of(device, "synchronize").synchronize(device);
}

}  // namespace accrue
