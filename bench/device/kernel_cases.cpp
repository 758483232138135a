#include "accrue/bench/device/kernel_cases.h"

#include "accrue/core/generator.h"

#include <algorithm>
#include <iterator>

namespace accrue::bench {

Tensor numbers(const Shape& shape, Device device, std::uint64_t seed) {
  constexpr std::int64_t kPeriod = 1 << 20;
  Tensor result = Tensor::empty(shape, DType::float32, device);
  const std::int64_t period = std::min(result.numel(), kPeriod);
  Tensor block = Tensor::empty({period});
  Generator(seed).uniform(
      std::span(block.mutable_data<float>(), static_cast<std::size_t>(period)), -1, 1);
  block = block.to(device);
  const Tensor flat = result.view({-1});
  for (std::int64_t begin = 0; begin < flat.numel(); begin += period) {
    const std::int64_t length = std::min(period, flat.numel() - begin);
    flat.narrow(0, begin, length).copy_from(block.narrow(0, 0, length));
  }
  return result;
}

Tensor indices(std::int64_t count, std::int64_t limit, Device device) {
  Tensor result = Tensor::empty({count}, DType::int64);
  Generator(9).randint(
      {result.mutable_data<std::int64_t>(), static_cast<std::size_t>(count)}, 0, limit);
  return result.to(device);
}

Tensor unwritten(const Shape& shape, Device device) {
  return Tensor::empty(shape, DType::float32, device);
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> all = product_cases();
  for (auto&& group : {image_cases(), loss_cases(), row_cases(), element_cases()})
    std::ranges::copy(group, std::back_inserter(all));
  return all;
}

}  // namespace accrue::bench
