// Short forms of wrong calls, for the tables of operations.
#pragma once

#include "accrue/tests/support/op_case.h"

namespace accrue::test {

inline constexpr const char* kUndefined =
    "[tensor] tensor must be defined, got a default-constructed or moved-from one";

template <class Type>
BadCall throws(std::string message, std::vector<Tensor> inputs, Function call = {}) {
  return {typeid(Type), std::move(message), std::move(inputs), std::move(call)};
}

/// Inside a micro-batch of `batch`'s two samples.
inline BadCall throws_in_window(std::string message,
                                std::vector<Tensor> inputs,
                                Function call = {}) {
  return {typeid(StateError), std::move(message), std::move(inputs), std::move(call), true};
}

/// Zeros whose dimension `dim` counts samples.
inline Tensor batch(const Shape& shape, int dim = 0) {
  return Tensor::zeros(shape).with_sample_axis({dim, 1});
}

}  // namespace accrue::test
