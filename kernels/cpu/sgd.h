// One thread's share of an SGD step, compiled per instruction set.
#pragma once

#include "accrue/kernels/sgd.h"

namespace accrue::kernels {

// Elements [begin, end) of checked arguments.
namespace portable {
void sgd_step(const SgdStep<float>& args, std::int64_t begin, std::int64_t end);
void sgd_step(const SgdStep<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace portable
namespace avx2 {
void sgd_step(const SgdStep<float>& args, std::int64_t begin, std::int64_t end);
void sgd_step(const SgdStep<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
