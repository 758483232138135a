// ACCRUE_DISPATCH: calls the version of an ISA_SOURCES function that current_isa() names.
#pragma once

#include "accrue/kernels/cpu/isa.h"

/// ACCRUE_DISPATCH(f, args...) is avx2::f(args...) or portable::f(args...). The caller's headers
/// declare both.
#ifdef ACCRUE_HAS_AVX2
#define ACCRUE_DISPATCH(function, ...)                              \
  (::accrue::kernels::current_isa() == ::accrue::kernels::Isa::avx2 \
       ? ::accrue::kernels::avx2::function(__VA_ARGS__)             \
       : ::accrue::kernels::portable::function(__VA_ARGS__))
#else
#define ACCRUE_DISPATCH(function, ...) ::accrue::kernels::portable::function(__VA_ARGS__)
#endif
