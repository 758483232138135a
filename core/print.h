// Printing of tensors, character for character as torch prints them.
#pragma once

#include <string>
#include <string_view>

namespace accrue {

class Tensor;

/// `tensor([1.0000, 2.5000])`: what torch's print shows, with its default options (4 digits, at
/// most 1000 elements in full, 80 columns). Does not depend on the locale.
///
/// `suffix` is appended as torch appends `requires_grad=True` or `grad_fn=<MulBackward0>`: last, on
/// a new line where it does not fit. Empty: nothing is appended. Errors: StateError for an
/// undefined tensor.
std::string to_string(const Tensor& tensor, std::string_view suffix = {});

}  // namespace accrue
