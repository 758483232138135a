// What linear layers and conv2d check alike: a weight and a bias that meet rows.
#pragma once

#include "accrue/autograd/variable.h"

#include <cstdint>

namespace accrue {

/// Errors: DTypeError naming `operation` unless x, w and a bias that is defined have one dtype.
void check_affine_dtypes(const char* operation,
                         const Variable& x,
                         const Variable& w,
                         const Variable& bias);

/// Errors: ShapeError, DTypeError naming `operation` unless x is [..., I], w [O, I] and a bias that
/// is defined [O], all of one dtype.
void check_linear(const char* operation,
                  const Variable& x,
                  const Variable& w,
                  const Variable& bias);

/// In a window, rows per sample of x without its last `inner_dims` dimensions; 1 elsewhere, and
/// where neither w nor bias needs a gradient.
/// Errors: StateError naming `operation` unless both are leaves, and that of rows_per_sample().
std::int64_t affine_rows(const char* operation,
                         const Variable& x,
                         int inner_dims,
                         const Variable& w,
                         const Variable& bias);

/// The sample axis of what rows with `axis` become: mixed where w or bias is made of samples too,
/// as no parameter is.
SampleAxis affine_axis(SampleAxis axis, const Variable& w, const Variable& bias);

}  // namespace accrue
