// What sum_nodes must do on every process group: the bits of a literal tree sum.
#pragma once

#include "accrue/dist/sum_nodes.h"

namespace accrue::test {

// Tensors lie on `device`, this rank's.

/// Trees over 1 to 16 lanes, cut at random and dealt to random ranks, some lanes absent and some
/// ranks empty, five lengths, each algorithm; returns how many sums were checked.
int check_sum_nodes(dist::ProcessGroup& group, Device device = {});

/// One node of equal size per rank, where W is a power of two: all algorithms.
int check_one_node_each(dist::ProcessGroup& group, Device device = {});

/// Many tensors of different nodes and lengths in one call, one of them its own partial.
int check_many_tensors(dist::ProcessGroup& group, Device device = {});

/// Rings over five lengths: each slice added rank by rank; returns how many sums were checked.
int check_ring(dist::ProcessGroup& group);

}  // namespace accrue::test
