// The launcher of the RMSprop step: elements are independent, so threads take ranges of them.
#include "accrue/kernels/cpu/rmsprop.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"

namespace accrue::kernels {

template <class T>
void launch_cpu(const RmspropStep<T>& args) {
  constexpr std::int64_t kGrain = 8192;  // elements that are worth waking a thread for
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(rmsprop_step, args, begin, end);
  });
}

template void launch_cpu(const RmspropStep<float>&);
template void launch_cpu(const RmspropStep<double>&);

}  // namespace accrue::kernels
