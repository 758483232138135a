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
    {"data.data_loader: an empty data set", "has tensors without elements"},
    {"data.window_plan:", "has no tensors"},
    {"nn.attention: parameters have", "draws weights, which the CPU does"},
    {"nn.conv2d: initial weights", "draws weights, which the CPU does"},
    {"nn.conv2d: layers print", "prints modules"},
    {"nn.embedding: it prints", "prints modules"},
    {"nn.embedding: weights have", "draws weights, which the CPU does"},
    {"nn.linear: 200 layers", "draws weights, which the CPU does"},
    {"nn.linear: a generator of", "draws weights, which the CPU does"},
    {"nn.linear: initial weights", "draws weights, which the CPU does"},
    {"nn.module: a tree prints", "prints modules"},
    {"nn.norm: layers print", "prints modules"},
    {"nn.sequential: pointers can", "prints modules"},
    {"nn.transformer: the block has", "draws weights, which the CPU does"},
    {"optim.adam: float64", "computes in float64"},
    {"optim.chained_schedules:", "computes learning rates alone"},
    {"optim.one_cycle:", "computes learning rates alone"},
    {"optim.plateau:", "computes learning rates alone"},
    {"optim.sgd: float64", "computes in float64"},
    {"optim.warmup_schedules:", "computes learning rates alone"},
    {"train.accelerator: options outside", "refuses options"},
    {"train.agreement: ranks that deal in", "refuses loaders before they move batches"},
    {"train.agreement: ranks that would", "refuses loaders before they move batches"},
    {"train.agreement: ranks with other", "refuses loaders before they move batches"},
    {"train.buckets: buckets are summed while", "counts calls, of which devices need others"},
    {"train.compat: skip_first_batches starts", "walks indices"},
    {"train.compat_ranks: schedules step", "steps schedules, which have no tensors"},
    {"train.dealing: where rank 0 cannot", "fails before a batch is whole"},
    {"train.divergence: a rank without data takes", "computes in float64"},
    {"train.evaluation: a float64 loss", "computes in float64"},
    {"train.loops: the window's loss is as exact", "computes in float64"},
    {"train.ranks: a trigger on one rank", "sums flags of the host"},
    {"train.ranks: models that differ", "refuses models before they move"},
    {"train.refused: options that", "refuses options"},
    {"train.stop_signal:", "sums flags of the host"},
};

}  // namespace accrue::test
