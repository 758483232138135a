#include "accrue/kernels/cuda/launchers.h"

#include "accrue/kernels/cpu/float_mode.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/runtime.h"

namespace accrue::kernels::cuda {
namespace {

/// Fills the slot of one type of arguments if kernels.h declares a kernel for it.
template <class Args>
void fill(LaunchSlot<Args>& slot) {
  if constexpr (requires(const Args& args, Stream stream) { launch_cuda(args, stream); }) {
    slot.launch = [](const Args& args, Device device) {
      const DeviceScope scope(device.index);
      const DefaultFloats floats;  // launchers compute, too: a kernel's numbers, an optimizer's
      return launch_cuda(args, current_stream(device.index));
    };
  }
}

LaunchTable make_table() {
  LaunchTable table;
#define ACCRUE_ARGS(Args) fill<Args>(table);
#define ACCRUE_ARGS_OF(Args) \
  fill<Args<float>>(table);  \
  fill<Args<double>>(table);
#define ACCRUE_ARGS_RETURNING(R, Args) fill<Args>(table);
#include "accrue/kernels/kernels.def"
  return table;
}

}  // namespace

const LaunchTable& launchers() {
  static const LaunchTable table = make_table();
  return table;
}

}  // namespace accrue::kernels::cuda
