// The chain of BroadcastGrad over one run of elements, compiled per instruction set.
#pragma once

#include <cstdint>

namespace accrue::kernels {

/// acc[i * acc_stride] = fma(a[i * a_stride], b[i * b_stride], acc[i * acc_stride]), i ascending.
template <class T>
struct ChainRun {
  std::int64_t count = 0;
  const T* a = nullptr;
  const T* b = nullptr;
  T* acc = nullptr;  ///< overlaps neither a nor b
  std::int64_t a_stride = 0, b_stride = 0, acc_stride = 0;
};

namespace portable {
void chain_run(const ChainRun<float>& run);
void chain_run(const ChainRun<double>& run);
}  // namespace portable
namespace avx2 {
void chain_run(const ChainRun<float>& run);
void chain_run(const ChainRun<double>& run);
}  // namespace avx2

}  // namespace accrue::kernels
