// Tensors of random numbers from the default generator, drawn in row-major order.
#include "accrue/core/random.h"

#include "accrue/core/generator.h"

#include <algorithm>

namespace accrue {
namespace {

template <class T>
std::span<T> elements(Tensor& tensor) {
  return {tensor.mutable_data<T>(), static_cast<std::size_t>(tensor.numel())};
}

/// A tensor that fill(tensor on the CPU) has drawn, once there is room for it.
template <class Fill>
Tensor filled(const Shape& shape, DType dtype, Device device, Fill fill) {
  Tensor result = Tensor::empty(shape, dtype, device);
  Tensor near = device.is_cpu() ? result : Tensor::empty(shape, dtype);
  fill(near);
  if (!device.is_cpu()) result.copy_from(near);
  return result;
}

/// The same by fill(elements) of a floating dtype.
template <class Fill>
Tensor drawn(const char* operation, const Shape& shape, DType dtype, Device device, Fill fill) {
  return filled(shape, dtype, device, [&](Tensor& near) {
    visit_floating(dtype, operation, [&]<class T>(T) { fill(elements<T>(near)); });
  });
}

}  // namespace

Tensor rand(const Shape& shape, DType dtype, Device device) {
  return drawn("rand", shape, dtype, device, [](auto out) { default_generator().uniform(out); });
}

Tensor randn(const Shape& shape, DType dtype, Device device) {
  return normal(0, 1, shape, dtype, device);
}

Tensor normal(double mean, double std, const Shape& shape, DType dtype, Device device) {
  return drawn("normal", shape, dtype, device, [=](auto out) {
    default_generator().normal(out, mean, std);
  });
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Device device) {
  return filled(shape, DType::int64, device, [=](Tensor& near) {
    default_generator().randint(elements<std::int64_t>(near), low, high);
  });
}

Tensor randperm(std::int64_t n, Device device) {
  Tensor result = Tensor::empty({std::max<std::int64_t>(n, 0)}, DType::int64, device);
  result.copy_from(Tensor::from(default_generator().randperm(n), {n}));
  return result;
}

Tensor bernoulli(const Tensor& p) {
  const Tensor dense = p.to(Device::cpu()).contiguous();
  Tensor result = Tensor::empty(dense.shape());
  default_generator().bernoulli(
      elements<float>(result),
      std::span(dense.data<float>(), static_cast<std::size_t>(dense.numel())));
  // Which numbers a sample gets depends on those before it.
  const bool has_samples = p.sample_axis() != SampleAxis{};
  return result.with_sample_axis(has_samples ? SampleAxis::mixed() : SampleAxis{}).to(p.device());
}

}  // namespace accrue
