#include "accrue/kernels/simt/devices.h"

#include <atomic>

namespace accrue::simt {
namespace {

thread_local int current = 0;
std::atomic<unsigned> contexts = 0;  ///< a bit for each device

}  // namespace

int current_device() { return current; }

void set_device(int device) {
  current = device;
  use_device();
}

void use_device() { contexts |= 1U << static_cast<unsigned>(current); }

bool has_context(int device) { return (contexts >> static_cast<unsigned>(device) & 1U) != 0; }

}  // namespace accrue::simt
