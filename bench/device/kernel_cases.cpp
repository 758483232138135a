#include "accrue/bench/device/kernel_cases.h"

#include "accrue/core/generator.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace accrue::bench {

using kernels::LaneInstruction;

Tensor numbers(const Shape& shape, Device device, std::uint64_t seed, double low, double high) {
  constexpr std::int64_t kPeriod = 1 << 20;
  Tensor result = Tensor::empty(shape, DType::float32, device);
  const std::int64_t period = std::min(result.numel(), kPeriod);
  Tensor block = Tensor::empty({period});
  Generator(seed).uniform(
      std::span(block.mutable_data<float>(), static_cast<std::size_t>(period)), low, high);
  block = block.to(device);
  const Tensor flat = result.view({-1});
  for (std::int64_t begin = 0; begin < flat.numel(); begin += period) {
    const std::int64_t length = std::min(period, flat.numel() - begin);
    flat.narrow(0, begin, length).copy_from(block.narrow(0, 0, length));
  }
  return result;
}

Tensor with_edges(const Tensor& x, bool is_second) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kEdges[] = {0,
                              -0.0f,
                              1,
                              -1,
                              kInfinity,
                              -kInfinity,
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::max(),
                              1e-40f,  // subnormal, the next in float16
                              -3e-6f,
                              65520};  // no longer finite in float16
  const std::size_t count = std::size(kEdges);
  std::vector<float> edges(std::min(count * count, static_cast<std::size_t>(x.numel())));
  for (std::size_t i = 0; i < edges.size(); ++i)
    edges[i] = kEdges[(is_second ? i / count : i) % count];
  x.view({-1}).narrow(0, 0, std::ssize(edges)).copy_from(Tensor::from(edges, {std::ssize(edges)}));
  return x;
}

Tensor indices(std::int64_t count, std::int64_t limit, Device device, std::uint64_t seed) {
  Tensor result = Tensor::empty({count}, DType::int64);
  Generator(seed).randint(
      {result.mutable_data<std::int64_t>(), static_cast<std::size_t>(count)}, 0, limit);
  return result.to(device);
}

Tensor unwritten(const Shape& shape, Device device, DType dtype) {
  return Tensor::empty(shape, dtype, device);
}

std::vector<LaneInstruction> lane_program(std::int64_t rows, int depth) {
  std::vector<LaneInstruction> program;
  const std::int64_t lanes = std::int64_t{1} << depth;
  int open = 0;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    program.push_back(LaneInstruction::zero());
    program.push_back(LaneInstruction::chain(rows * lane / lanes, rows * (lane + 1) / lanes));
    program.push_back(LaneInstruction::close());
    for (std::int64_t done = lane + 1; done % 2 == 0; done /= 2)
      program.push_back(LaneInstruction::merge(open--));
    program.push_back(LaneInstruction::store(lane + 1 < lanes ? ++open : 0));
  }
  return program;
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> all = product_cases();
  for (auto&& group : {image_cases(),
                       loss_cases(),
                       row_cases(),
                       sum_cases(),
                       function_cases(),
                       copy_cases(),
                       optimizer_cases()})
    std::ranges::copy(group, std::back_inserter(all));
  return all;
}

}  // namespace accrue::bench
