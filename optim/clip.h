// Clipping: gradients made smaller before a step.
#pragma once

#include "accrue/optim/parameter_list.h"

namespace accrue::optim {

/// Scales the gradients of all parameters together so that their norm is at most `max_norm`, and
/// returns the norm before, 0 without gradients. Parameters that do not require grad are left out.
///
/// norm_type 2: the square root of the sum of squares; infinity: the largest magnitude.
///
/// Order:   in double: squares of each gradient in the shape of core/sum_order.h, then gradients
///          added left to right (contract 15), so the norm of any floats is finite. Coefficient
///          c = max_norm / (norm + 1e-6) in double. If c < 1, each element becomes fl(g * fl(c)),
///          as in torch; with a c too small for a normal float, g is first multiplied by 2^-64.
///          If c >= 1 nothing is written.
/// Errors:  StateError for a gradient that is NaN or infinite, naming it, for squares that
///          overflow (float64), or while a window is open; ValueError for a max_norm that is
///          negative or NaN, another norm_type, a parameter given twice. Gradients stay then.
double clip_grad_norm(const ParameterList& parameters, double max_norm, double norm_type = 2);

/// Limits each element of the gradients to [-value, value].
/// Errors:  StateError as above; ValueError for a value that is negative or NaN.
void clip_grad_value(const ParameterList& parameters, double value);

}  // namespace accrue::optim
