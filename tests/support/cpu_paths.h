// Runs a check on every CPU path: each kernel version this machine has, with 1 and 2 threads.
#pragma once

#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <vector>

namespace accrue::test {

/// The slowest and the fastest kernels; on a device, which uses none of them, the fastest.
inline std::vector<kernels::Isa> isas_under_test() {
  if (!device_under_test().is_cpu()) return {kernels::best_isa()};
  return {kernels::Isa::portable, kernels::best_isa()};
}

/// Calls `body()` once per path, once on a device, and returns the number of paths.
template <class Body>
int for_each_cpu_path(const Body& body) {
  if (!device_under_test().is_cpu()) {
    body();
    return 1;
  }
  int num_paths = 0;
  const int threads_before = kernels::num_threads();
  for (const kernels::Isa isa :
       {kernels::Isa::portable, kernels::Isa::avx2, kernels::Isa::avx512}) {
    if (isa > kernels::best_isa()) continue;
    kernels::set_isa(isa);
    for (const int threads : {1, 2}) {
      kernels::set_num_threads(threads);
      CAPTURE(kernels::name_of(isa));
      CAPTURE(threads);
      body();
      ++num_paths;
    }
  }
  kernels::set_isa(kernels::best_isa());
  kernels::set_num_threads(threads_before);
  return num_paths;
}

}  // namespace accrue::test
