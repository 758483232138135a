// One thread's share of an Adam step, compiled per instruction set.
#pragma once

#include "accrue/kernels/adam.h"

namespace accrue::kernels {

/// The numbers of a step, rounded to T.
template <class T>
struct AdamScalars {
  T sign, shrink, decay;  ///< of the gradient; of the parameter; of the parameter in the gradient
  T beta1, w1, rest1;     ///< rest1 = 1 - w1 in T
  T beta2, w2;
  T rate, root, eps;
};

// Elements [begin, end) of checked arguments.
namespace portable {
void adam_step(const AdamStep<float>& args,
               const AdamScalars<float>& scalars,
               std::int64_t begin,
               std::int64_t end);
void adam_step(const AdamStep<double>& args,
               const AdamScalars<double>& scalars,
               std::int64_t begin,
               std::int64_t end);
}  // namespace portable
namespace avx2 {
void adam_step(const AdamStep<float>& args,
               const AdamScalars<float>& scalars,
               std::int64_t begin,
               std::int64_t end);
void adam_step(const AdamStep<double>& args,
               const AdamScalars<double>& scalars,
               std::int64_t begin,
               std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
