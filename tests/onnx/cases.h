// Runs the test cases of Debian's package libonnx-testdata, an oracle that is not ours.
#pragma once

#include "accrue/tests/support/onnx_reader.h"

#include <functional>

namespace accrue::tests {

/// Checks |value - expected| <= 1e-7 + 1e-3 |expected| for each element, ONNX's own tolerance.
void check_close(const Tensor& value, const Tensor& expected);

/// Calls run(case) for each case whose name starts with one of `prefixes`, in order, and reports
/// how many ran. run returns why a case is not applicable, or nothing once it ran. Ends the program
/// with ctest's 77 and a printed reason where the package is missing. Returns the number of cases
/// that ran.
int run_onnx_cases(const std::vector<std::string>& prefixes,
                   const std::function<std::string(const OnnxCase&)>& run);

}  // namespace accrue::tests
