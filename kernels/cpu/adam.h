// One thread's share of an Adam step, compiled per instruction set.
#pragma once

#include "accrue/kernels/scalar/adam.h"

namespace accrue::kernels {

// Elements [begin, end) of checked arguments.
namespace portable {
void adam_step(const AdamStep<float>& args,
               const scalar::AdamNumbers<float>& numbers,
               std::int64_t begin,
               std::int64_t end);
void adam_step(const AdamStep<double>& args,
               const scalar::AdamNumbers<double>& numbers,
               std::int64_t begin,
               std::int64_t end);
}  // namespace portable
namespace avx2 {
void adam_step(const AdamStep<float>& args,
               const scalar::AdamNumbers<float>& numbers,
               std::int64_t begin,
               std::int64_t end);
void adam_step(const AdamStep<double>& args,
               const scalar::AdamNumbers<double>& numbers,
               std::int64_t begin,
               std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
