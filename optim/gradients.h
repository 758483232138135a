// The gradients of a list of parameters, and the check that they are numbers. Private to optim.
#pragma once

#include "accrue/kernels/norm.h"
#include "accrue/optim/parameter_list.h"

#include <span>

namespace accrue::optim {

struct Gradient {
  std::size_t parameter;  ///< position in the list
  Tensor value;           ///< shares the storage of grad()
};

/// Of the parameters that require grad and have one, in order.
/// Errors: StateError while a window is not finished.
std::vector<Gradient> gradients_of(const ParameterList& parameters);

/// The gradients, made dense where they are not, so that each element has one place to write to.
std::vector<Gradient> writable(const ParameterList& parameters, std::vector<Gradient> gradients);

/// Calls visit(device, tensors, position of the first) for gradients that follow each other on one
/// device.
template <class Visit>
void for_each_device(std::span<const Gradient> gradients, const Visit& visit) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    tensors.push_back(gradients[i].value);
    const Device device = tensors.front().device();
    if (i + 1 < gradients.size() && gradients[i + 1].value.device() == device) continue;
    visit(device, std::span<const Tensor>(tensors), i + 1 - tensors.size());
    tensors.clear();
  }
}

/// The first of the gradients that has elements that are NaN or infinite.
kernels::Nonfinite find_nonfinite(std::span<const Gradient> gradients);

/// Errors: StateError naming the first parameter and element that is NaN or infinite.
void check_finite(const ParameterList& parameters,
                  std::span<const Gradient> gradients,
                  const char* operation);

}  // namespace accrue::optim
