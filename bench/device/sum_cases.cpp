// Cases of sums and searches: over rows, dimensions, whole tensors and lanes.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/broadcast_grad.h"
#include "accrue/kernels/extremum.h"
#include "accrue/kernels/lane_merges.h"
#include "accrue/kernels/norm.h"
#include "accrue/kernels/reduce.h"
#include "accrue/kernels/row_sum.h"

namespace accrue::bench {
namespace {

using kernels::LaneInstruction;

template <class T>
Work row_sum(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1).to(dtype_of<T>);
  Tensor sum = unwritten({s[0]}, device, x.dtype());
  return {[=]() mutable {
            launch(device, kernels::RowSum<T>{rows_of<T>(x), sum.mutable_data<T>()});
          },
          {sum}};
}

template <bool kSquares>
Work column_sum(const Sizes& s, Device device) {
  const Tensor x = numbers({s[0], s[1]}, device, 1);
  Tensor sum = unwritten({s[1]}, device);
  return {[=]() mutable { launch(device, kernels::SumDims{x, 1, sum, kSquares}); }, {sum}};
}

Work extremum(bool largest, int dim, const Tensor& x) {
  const Device device = x.device();
  Tensor values = unwritten({x.size(1 - dim)}, device),
         places = unwritten(values.shape(), device, DType::int64);
  return {[=]() mutable {
            launch(device, kernels::Extremum{"extremum", largest, x, dim, values, places});
          },
          {values, places}};
}

Work max_of_rows(const Sizes& s, Device device) {
  return extremum(true, 1, numbers({s[0], s[1]}, device, 1));
}
/// Of few different numbers, and of what comparisons treat apart.
template <bool kLargest, int kDim>
Work extremum_of_ties(const Sizes& s, Device device) {
  const Tensor x = indices(s[0] * s[1], 300, Device::cpu()).to(DType::float32).view({s[0], s[1]});
  with_edges(x);
  return extremum(kLargest, kDim, x.to(device));
}

/// Gradients as a model has them.
std::vector<Tensor> gradients(const Sizes& s, Device device) {
  return {numbers({s[0], s[1]}, device, 1),
          numbers({s[1]}, device, 2),
          numbers({s[1], 3}, device, 3).transpose(0, 1)};
}

/// A number that a launch returns.
template <class Args>
Work number_of(std::vector<Tensor> tensors, Device device) {
  Tensor number = unwritten({1}, Device::cpu(), DType::float64);
  return {[=]() mutable { *number.mutable_data<double>() = launch(device, Args{tensors}); },
          {number}};
}

Work square_sum(const Sizes& s, Device device) {
  return number_of<kernels::SquareSum>(gradients(s, device), device);
}
Work max_abs(const Sizes& s, Device device) {
  return number_of<kernels::MaxAbs>(gradients(s, device), device);
}

Work find_nonfinite(const Sizes& s, Device device) {
  std::vector<Tensor> tensors = gradients(s, device);
  with_edges(tensors[1].narrow(0, 100, s[1] - 100));
  Tensor found = unwritten({3}, Device::cpu(), DType::int64);
  return {[=]() mutable {
            const kernels::Nonfinite what = launch(device, kernels::FindNonfinite{tensors});
            std::int64_t* const out = found.mutable_data<std::int64_t>();
            out[0] = what.tensor, out[1] = what.count, out[2] = what.first;
          },
          {found}};
}

/// Parameters of the last dimension with a factor, and of the one before without; a row is skipped.
template <class T>
Work broadcast_grad(const Sizes& s, Device device) {
  const Tensor a = numbers({s[0], s[1], s[2]}, device, 1).to(dtype_of<T>),
               b = numbers({s[0], s[1], s[2]}, device, 2).to(dtype_of<T>);
  Tensor skipped = a[1];
  skipped.fill(0);
  Tensor last = unwritten({s[2]}, device, a.dtype()), middle = unwritten({s[1]}, device, a.dtype());
  return {
      [=, program = lane_program(s[0], 3), none = Tensor()]() mutable {
        T *const lasts[] = {last.mutable_data<T>()}, *const middles[] = {middle.mutable_data<T>()};
        launch(device, kernels::BroadcastGrad<T>{a, b, 1, {s[2]}, {program, 1, 3}, lasts});
        launch(device, kernels::BroadcastGrad<T>{a, none, 1, {s[1], 1}, {program, 1, 3}, middles});
      },
      {last, middle}};
}

/// The tree over four lanes.
template <class T>
Work lane_merges(const Sizes& s, Device device) {
  std::vector<Tensor> lanes;
  for (std::uint64_t lane = 0; lane < 4; ++lane)
    lanes.push_back(numbers({s[0]}, device, lane).to(dtype_of<T>));
  constexpr int kScratch = 4;
  const std::vector<LaneInstruction> program = {LaneInstruction::load(1),
                                                LaneInstruction::merge(0),
                                                LaneInstruction::store(kScratch),
                                                LaneInstruction::load(3),
                                                LaneInstruction::merge(2),
                                                LaneInstruction::merge(kScratch),
                                                LaneInstruction::close(),
                                                LaneInstruction::store(0)};
  return {[=]() mutable {
            std::vector<T*> buffers;
            for (Tensor& lane : lanes) buffers.push_back(lane.mutable_data<T>());
            launch(device, kernels::LaneMerges<T>{{program, kScratch, 1}, buffers, s[0]});
          },
          lanes};
}

}  // namespace

std::vector<KernelCase> sum_cases() {
  using enum Counted;
  const Sizes ragged = {13, 1029};
  const std::vector<Sizes> wide = {{65536, 4096}};
  return {
      {"row_sum", bytes, wide, ragged, passes<1>, row_sum<float>},
      bits_alone("row_sum_float64", ragged, row_sum<double>),
      {"column_sum", bytes, wide, ragged, passes<1>, column_sum<false>},
      bits_alone("column_sum_of_squares", ragged, column_sum<true>),
      {"max_of_rows", bytes, wide, ragged, passes<1>, max_of_rows},
      bits_alone("max_of_ties", ragged, extremum_of_ties<true, 1>),
      bits_alone("min_of_ties", ragged, extremum_of_ties<false, 0>),
      {"square_sum", bytes, wide, ragged, passes<1>, square_sum},
      bits_alone("max_abs", ragged, max_abs),
      bits_alone("find_nonfinite", ragged, find_nonfinite),
      bits_alone("broadcast_grad", {37, 5, 13}, broadcast_grad<float>),
      bits_alone("broadcast_grad_float64", {37, 5, 13}, broadcast_grad<double>),
      bits_alone("lane_merges", {1031}, lane_merges<float>),
      bits_alone("lane_merges_float64", {1031}, lane_merges<double>),
  };
}

}  // namespace accrue::bench
