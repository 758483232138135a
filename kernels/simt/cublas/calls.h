// What tests ask the simulated cuBLAS.
#pragma once

#include <cstdint>

namespace accrue::simt {

/// How many products this process asked of cuBLAS so far; a batch is one.
std::int64_t num_cublas_calls();

}  // namespace accrue::simt
