// The launcher of the SGD step: elements are independent, so threads take ranges of them.
#include "accrue/kernels/cpu/sgd.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/sgd_checks.h"

namespace accrue::kernels {

template <class T>
void launch_cpu(const SgdStep<T>& args) {
  check_arguments(args);
  constexpr std::int64_t kGrain = 16384;  // elements that are worth waking a thread for
  parallel_for(args.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    ACCRUE_DISPATCH(sgd_step, args, begin, end);
  });
}

template void launch_cpu(const SgdStep<float>&);
template void launch_cpu(const SgdStep<double>&);

}  // namespace accrue::kernels
