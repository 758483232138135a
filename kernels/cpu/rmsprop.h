// One thread's share of an RMSprop step, compiled per instruction set.
#pragma once

#include "accrue/kernels/rmsprop.h"

namespace accrue::kernels {

// Elements [begin, end).
namespace portable {
void rmsprop_step(const RmspropStep<float>& args, std::int64_t begin, std::int64_t end);
void rmsprop_step(const RmspropStep<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace portable
namespace avx2 {
void rmsprop_step(const RmspropStep<float>& args, std::int64_t begin, std::int64_t end);
void rmsprop_step(const RmspropStep<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
