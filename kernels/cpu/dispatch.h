// ACCRUE_DISPATCH: calls the version of an ISA_SOURCES function that current_isa() names.
#pragma once

#include "accrue/kernels/cpu/isa.h"

/// ACCRUE_DISPATCH(f, args...) is avx2::f(args...) or portable::f(args...); ACCRUE_DISPATCH_512 has
/// avx512::f too. The caller's headers declare all of them.
#ifdef ACCRUE_HAS_AVX2
#define ACCRUE_DISPATCH(function, ...)                                  \
  (::accrue::kernels::current_isa() == ::accrue::kernels::Isa::portable \
       ? ::accrue::kernels::portable::function(__VA_ARGS__)             \
       : ::accrue::kernels::avx2::function(__VA_ARGS__))
#define ACCRUE_DISPATCH_512(function, ...)                            \
  (::accrue::kernels::current_isa() == ::accrue::kernels::Isa::avx512 \
       ? ::accrue::kernels::avx512::function(__VA_ARGS__)             \
       : ACCRUE_DISPATCH(function, __VA_ARGS__))
#else
#define ACCRUE_DISPATCH(function, ...) ::accrue::kernels::portable::function(__VA_ARGS__)
#define ACCRUE_DISPATCH_512(function, ...) ::accrue::kernels::portable::function(__VA_ARGS__)
#endif
