// The launchers of pool2d.h: threads split the planes.
#include "accrue/kernels/cpu/pool2d.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/pool2d.h"

#include <algorithm>
#include <vector>

namespace accrue::kernels {
namespace {

template <class Args>
void run(const PoolShape& shape, const Args& args) {
  parallel_for(
      shape.planes, row_grain(shape.sliding.inputs()), [&](std::int64_t begin, std::int64_t end) {
        ACCRUE_DISPATCH(pool_planes, args, begin, end);
      });
}

/// The divisor of each window of a plane.
template <class T>
std::vector<T> divisors(const Sliding& sliding, const PoolDivisor& divisor) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < sliding.h.out; ++i) {
    for (std::int64_t j = 0; j < sliding.w.out; ++j)
      result.push_back(static_cast<T>(divisor.of(sliding, i, j)));
  }
  return result;
}

}  // namespace

template <class T>
void launch_cpu(const MaxPool2d<T>& args) {
  run(args.shape, args);
}
template <class T>
void launch_cpu(const MaxPool2dGrad<T>& args) {
  run(args.shape, args);
}
template <class T>
void launch_cpu(const AvgPool2d<T>& args) {
  const std::vector<T> by = divisors<T>(args.shape.sliding, args.divisor);
  run(args.shape, AveragePool<T>{args, by.data()});
}
template <class T>
void launch_cpu(const AvgPool2dGrad<T>& args) {
  const std::vector<T> by = divisors<T>(args.shape.sliding, args.divisor);
  run(args.shape, AveragePoolGrad<T>{args, by.data()});
}

template void launch_cpu(const MaxPool2d<float>&);
template void launch_cpu(const MaxPool2d<double>&);
template void launch_cpu(const MaxPool2dGrad<float>&);
template void launch_cpu(const MaxPool2dGrad<double>&);
template void launch_cpu(const AvgPool2d<float>&);
template void launch_cpu(const AvgPool2d<double>&);
template void launch_cpu(const AvgPool2dGrad<float>&);
template void launch_cpu(const AvgPool2dGrad<double>&);

}  // namespace accrue::kernels
