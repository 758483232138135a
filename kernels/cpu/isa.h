// Isa: which compiled version of the CPU kernels runs. All versions give the same bits.
#pragma once

#include <cstdint>

namespace accrue::kernels {

enum class Isa : std::uint8_t {
  portable,  ///< any CPU; std::fma per element, slow where the compiler's baseline lacks FMA
  avx2,      ///< x86-64 with AVX2 and FMA
  avx512,    ///< also AVX-512 (F, VL): products, elementwise loops; the rest as avx2
};

/// The fastest version that this build holds and this CPU runs.
Isa best_isa();

/// The version in use: the one set, else the environment's ACCRUE_ISA, else best_isa().
///
/// Errors:  ValueError when ACCRUE_ISA is none of them, or names a version that cannot run.
Isa current_isa();

/// Sets the version all threads use from their next kernel on.
///
/// Errors:  ValueError when the build or the CPU lacks it.
void set_isa(Isa isa);

const char* name_of(Isa isa);

}  // namespace accrue::kernels
