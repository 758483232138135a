// launch(): runs a kernel where its tensors are; the CPU's directly, a device's through a table.
#pragma once

#include "accrue/core/device_backend.h"
#include "accrue/core/error.h"

namespace accrue::kernels {

struct Nonfinite;
#define ACCRUE_ARGS(Args) struct Args;
#define ACCRUE_ARGS_OF(Args) \
  template <class T>         \
  struct Args;
#define ACCRUE_ARGS_RETURNING(R, Args) struct Args;
#include "accrue/kernels/kernels.def"

/// What launch() of Args returns.
template <class Args>
struct LaunchResult {
  using Type = void;
};
#define ACCRUE_ARGS(Args)
#define ACCRUE_ARGS_OF(Args)
#define ACCRUE_ARGS_RETURNING(R, Args) \
  template <>                          \
  struct LaunchResult<Args> {          \
    using Type = R;                    \
  };
#include "accrue/kernels/kernels.def"

/// How a device runs one type of arguments; null if it has no kernel for it.
template <class Args>
struct LaunchSlot {
  typename LaunchResult<Args>::Type (*launch)(const Args& args, Device device) = nullptr;
};

struct LastSlot {};

/// The kernels of a back end: a slot for every type of arguments.
struct LaunchTable :
#define ACCRUE_ARGS(Args) LaunchSlot<Args>,
#define ACCRUE_ARGS_OF(Args) LaunchSlot<Args<float>>, LaunchSlot<Args<double>>,
#define ACCRUE_ARGS_RETURNING(R, Args) LaunchSlot<Args>,
#include "accrue/kernels/kernels.def"
    LastSlot {
};

/// The operation that errors name.
template <class Args>
const char* operation_of(const Args& args) {
  if constexpr (requires { Args::kName; }) {
    return Args::kName;
  } else if constexpr (requires { args.operation; }) {
    return args.operation;
  } else {
    return name_of(args.op);
  }
}

/// launch() on a device other than the CPU.
template <class Args>
[[gnu::noinline]] typename LaunchResult<Args>::Type launch_on(Device device, const Args& args) {
  const char* const operation = operation_of(args);
  const LaunchTable& table = backend_of(device, operation).launchers();
  const LaunchSlot<Args>& slot = table;
  ACCRUE_CHECK(slot.launch != nullptr,
               DeviceError,
               operation,
               "runs only on the CPU for these arguments, got tensors on ",
               device.str(),
               "; move them with to(Device::cpu())");
  return slot.launch(args, device);
}

/// Runs the kernel that `args` belong to on the device that holds its operands. On the CPU it is
/// launch_cpu(args); elsewhere the work is queued.
///
/// Errors:  those of launch_cpu; DeviceError where the device has no such kernel (float64, ...).
template <class Args>
typename LaunchResult<Args>::Type launch(Device device, const Args& args) {
  if (device.is_cpu()) [[likely]]
    return launch_cpu(args);
  return launch_on(device, args);
}

}  // namespace accrue::kernels
