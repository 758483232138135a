// Tensors of random numbers from the default generator, drawn in row-major order.
#include "accrue/core/random.h"

#include "accrue/core/generator.h"

namespace accrue {
namespace {

template <class T>
std::span<T> elements(Tensor& tensor) {
  return {tensor.mutable_data<T>(), static_cast<std::size_t>(tensor.numel())};
}

/// A tensor that fill(elements) has drawn.
template <class Fill>
Tensor drawn(const char* operation, const Shape& shape, DType dtype, Device device, Fill fill) {
  Tensor result = Tensor::empty(shape, dtype);
  visit_floating(dtype, operation, [&]<class T>(T) { fill(elements<T>(result)); });
  return result.to(device);
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
  Tensor result = Tensor::empty(shape, DType::int64);
  default_generator().randint(elements<std::int64_t>(result), low, high);
  return result.to(device);
}

Tensor randperm(std::int64_t n, Device device) {
  return Tensor::from(default_generator().randperm(n), {n}).to(device);
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
