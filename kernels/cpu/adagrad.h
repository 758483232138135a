// One thread's share of an Adagrad step, compiled per instruction set.
#pragma once

#include "accrue/kernels/adagrad.h"

namespace accrue::kernels {

// Elements [begin, end).
namespace portable {
void adagrad_step(const AdagradStep<float>& args, std::int64_t begin, std::int64_t end);
void adagrad_step(const AdagradStep<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace portable
namespace avx2 {
void adagrad_step(const AdagradStep<float>& args, std::int64_t begin, std::int64_t end);
void adagrad_step(const AdagradStep<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
