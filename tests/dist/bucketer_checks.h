// What a bucketer must do on every process group: the bits of plain loops, whatever the buckets.
#pragma once

#include "accrue/dist/bucketer.h"

namespace accrue::test {

/// A divisor: the weights are numbers, which add up.
double sum_of_weights(std::span<const std::string> weights);

/// Windows over caps from 1 KiB to 25 MiB, with and without overlap. Lanes lie in contiguous
/// shares; there are up to three uses, some on some ranks only, and parameters that no rank uses;
/// each rank makes parameters ready in an order of its own. Gradients lie on `device`. Returns how
/// many windows were checked.
int check_bucketer(dist::ProcessGroup& group, Device device = {});

}  // namespace accrue::test
