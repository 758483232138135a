// device_under_test(): where tests put their tensors.
#pragma once

#include "accrue/core/tensor.h"

#include <cstdlib>
#include <initializer_list>
#include <utility>
#include <vector>

namespace accrue::test {

/// The first CUDA device where the environment has ACCRUE_TEST_DEVICE, else the CPU. Entries of
/// ctest that accrue_on_device() makes set it: the same tests, on a device.
inline Device device_under_test() {
  static const bool is_cuda = std::getenv("ACCRUE_TEST_DEVICE") != nullptr;
  return is_cuda ? Device::cuda(0) : Device::cpu();
}

/// `x`, with all that share its storage, on the device under test; layouts stay.
inline Tensor there(Tensor x) {
  if (x.defined()) x.move_to(device_under_test());
  return x;
}
/// A module, likewise.
template <class Module>
requires requires(Module& module) { module.to(Device()), module.parameters(); }
Module& there(Module& module) {
  module.to(device_under_test());
  return module;
}

/// What Tensor makes, made on the device under test.
struct There {
  static Tensor empty(const Shape& shape, DType dtype = DType::float32) {
    return Tensor::empty(shape, dtype, device_under_test());
  }
  static Tensor zeros(const Shape& shape, DType dtype = DType::float32) {
    return Tensor::zeros(shape, dtype, device_under_test());
  }
  static Tensor ones(const Shape& shape, DType dtype = DType::float32) {
    return Tensor::ones(shape, dtype, device_under_test());
  }
  static Tensor full(const Shape& shape, double value, DType dtype = DType::float32) {
    return Tensor::full(shape, value, dtype, device_under_test());
  }
  static Tensor arange(std::int64_t count, DType dtype = DType::int64) {
    return there(Tensor::arange(count, dtype));
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return there(Tensor::from(values, shape));
  }
  template <class T>
  static Tensor of(std::initializer_list<T> values) {
    return there(Tensor::of<T>(values));
  }
  template <class T>
  static Tensor of(std::initializer_list<std::initializer_list<T>> rows) {
    return there(Tensor::of<T>(rows));
  }
  template <class T>
  static Tensor scalar(T value) {
    return there(Tensor::scalar<T>(value));
  }
};

}  // namespace accrue::test
