// The tests that entries on_device of ctest leave out, each with its reason.
#pragma once

namespace accrue::test {

struct CpuOnly {
  const char* cases;  ///< how their names begin
  const char* reason;
};

constexpr CpuOnly kCpuOnly[] = {
    {"autograd.eigen:", "computes in float64"},
    {"autograd.gradcheck:", "computes in float64"},
    {"autograd.lane_accumulator:", "gives its arrays to CPU kernels"},
    {"autograd.engine: a chain of", "launches a million kernels"},
    {"autograd.engine: a fan-in of", "launches 100,000 kernels"},
    {"autograd.linear_cross_entropy: a pass takes", "counts CPU memory"},
    {"autograd.variable: printing", "prints the name of the place"},
    {"data.window_plan:", "has no tensors"},
    {"optim.chained_schedules:", "has no tensors"},
    {"optim.one_cycle:", "has no tensors"},
    {"optim.plateau:", "has no tensors"},
    {"optim.schedule:", "has no tensors"},
    {"optim.warmup_schedules:", "has no tensors"},
    {"train.divergence: a rank without data takes", "computes in float64"},
    {"train.evaluation: a float64 loss", "computes in float64"},
    {"train.loops: the window's loss is as exact", "computes in float64"},
};

}  // namespace accrue::test
