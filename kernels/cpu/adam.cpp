// The launcher of the Adam step: bias corrections in double, then ranges of elements by thread.
#include "accrue/kernels/cpu/adam.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"

#include <cmath>

namespace accrue::kernels {
namespace {

template <class T>
AdamScalars<T> scalars_of(const AdamStep<T>& args) {
  const auto step = static_cast<double>(args.step);
  const double bc1 = 1.0 - std::pow(args.beta1, step), bc2 = 1.0 - std::pow(args.beta2, step);
  const T w1 = static_cast<T>(1.0 - args.beta1);
  return {.sign = args.maximize ? T(-1) : T(1),
          .shrink = args.decoupled ? static_cast<T>(1.0 - args.lr * args.weight_decay) : T(1),
          .decay = args.decoupled ? T(0) : static_cast<T>(args.weight_decay),
          .beta1 = static_cast<T>(args.beta1),
          .w1 = w1,
          .rest1 = T(1) - w1,
          .beta2 = static_cast<T>(args.beta2),
          .w2 = static_cast<T>(1.0 - args.beta2),
          .rate = static_cast<T>(-(args.lr / bc1)),
          .root = static_cast<T>(std::sqrt(bc2)),
          .eps = static_cast<T>(args.eps)};
}

}  // namespace

template <class T>
void launch_cpu(const AdamStep<T>& args) {
  ACCRUE_CHECK(args.step >= 1,
               ValueError,
               AdamStep<T>::kName,
               "step must be >= 1, got ",
               args.step,
               "; count from 1");
  const DefaultFloats floats;
  const AdamScalars<T> scalars = scalars_of(args);
  constexpr std::int64_t kGrain = 8192;  // elements that are worth waking a thread for
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(adam_step, args, scalars, begin, end);
  });
}

template void launch_cpu(const AdamStep<float>&);
template void launch_cpu(const AdamStep<double>&);

}  // namespace accrue::kernels
