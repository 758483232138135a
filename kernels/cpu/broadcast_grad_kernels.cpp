// The chain of BroadcastGrad: vectors where each element of acc takes one product, else one by one.
#include "accrue/kernels/cpu/broadcast_grad.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <class T>
void chain_any(const ChainRun<T>& run) {
  const auto [count, a, b, acc, a_stride, b_stride, acc_stride] = run;
  if (a_stride == 1 && b_stride <= 1 && b_stride >= 0 && acc_stride == 1) {
    const bool one_factor = b_stride == 0;
    for (std::int64_t i = 0; i < count; ++i) {
      acc[i] = scalar::fma(a[i], one_factor ? b[0] : b[i], acc[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    acc[i * acc_stride] = scalar::fma(a[i * a_stride], b[i * b_stride], acc[i * acc_stride]);
  }
}

}  // namespace

void chain_run(const ChainRun<float>& run) { chain_any(run); }
void chain_run(const ChainRun<double>& run) { chain_any(run); }

}  // namespace accrue::kernels::ACCRUE_ISA
