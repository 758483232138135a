// The launcher of the Adam step: bias corrections in double, then ranges of elements by thread.
#include "accrue/kernels/cpu/adam.h"

#include "accrue/kernels/adam_checks.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"

namespace accrue::kernels {

template <class T>
void launch_cpu(const AdamStep<T>& args) {
  check_arguments(args);
  const DefaultFloats floats;
  const scalar::AdamNumbers<T> numbers(args);
  constexpr std::int64_t kGrain = 8192;  // elements that are worth waking a thread for
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(adam_step, args, numbers, begin, end);
  });
}

template void launch_cpu(const AdamStep<float>&);
template void launch_cpu(const AdamStep<double>&);

}  // namespace accrue::kernels
