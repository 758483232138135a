// DeviceTensor: a tensor in guarded device memory, in any layout, beside its twin on the CPU.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/tests/support/layouts.h"
#include "accrue/tests/support/simt_check.h"

#include <optional>

namespace accrue::test {

/// The shape of the dense tensor that view_of() makes `shape` of.
inline Shape base_shape(const Shape& shape, Layout layout) {
  Shape base = shape;
  if (layout == Layout::interleaved && base.rank() == 0) base.push_back(1);
  if (layout == Layout::interleaved) base[base.rank() - 1] *= 2;
  if (layout == Layout::expanded && base.rank() > 0 && base[0] > 0) base[0] = 1;
  for (int d = 0; d < base.rank() && layout == Layout::transposed; ++d) {
    base[d] = shape[base.rank() - 1 - d];
  }
  return base;
}

inline Tensor view_of(const Tensor& base, const Shape& shape, Layout layout) {
  if (layout == Layout::transposed) return reversed(base);
  if (layout == Layout::expanded) return base.expand(shape);
  if (layout == Layout::contiguous) return base;
  const Tensor every_second = base.slice(-1, 0, base.size(-1), 2);
  return shape.rank() == 0 ? every_second[0] : every_second;
}

/// The kernel under test works on `tensor`, its CPU twin on `twin`: output() compares the memory
/// under both, with what lies between elements.
class DeviceTensor {
 public:
  explicit DeviceTensor(const Tensor& values,
                        Layout layout = Layout::contiguous,
                        std::size_t misalignment = 0)
      : DeviceTensor(values.shape(), values.dtype(), layout, misalignment) {
    const bool repeats = layout == Layout::expanded && values.numel() > 0 && values.rank() > 0;
    if (repeats) {
      base_.copy_from(values.narrow(0, 0, 1));
    } else {
      twin.copy_from(values);
    }
    place(misalignment);
  }
  /// Holds what no kernel writes.
  static DeviceTensor unwritten(const Shape& shape,
                                DType dtype = DType::float32,
                                Layout layout = Layout::contiguous) {
    return DeviceTensor(shape, dtype, layout, 0);
  }

  Output output(const char* name) { return {name, &*array_, bytes_of_base()}; }

  Tensor twin, tensor;

 private:
  DeviceTensor(const Shape& shape, DType dtype, Layout layout, std::size_t misalignment)
      : shape_(shape), layout_(layout), base_(Tensor::empty(base_shape(shape, layout), dtype)) {
    const auto bytes = bytes_of_base();
    std::ranges::fill(bytes, std::byte{0xa5});
    if (dtype == DType::float32) {
      std::fill_n(base_.mutable_data<float>(), base_.numel(), float_of(DeviceFloats::kUnwritten));
    }
    twin = view_of(base_, shape, layout);
    place(misalignment);
  }

  std::span<std::byte> bytes_of_base() {
    std::byte* const data = visit_dtype(base_.dtype(), [&]<class T>(T) {
      return reinterpret_cast<std::byte*>(base_.mutable_data<T>());
    });
    return {data, static_cast<std::size_t>(base_.numel() * size_of(base_.dtype()))};
  }
  /// Copies the base to the device.
  void place(std::size_t misalignment) {
    array_.emplace(base_.dtype(), bytes_of_base(), misalignment);
    const auto memory = array_->bytes();
    const Ref<Storage> storage =
        Storage::adopt(memory.data(), static_cast<std::int64_t>(memory.size()), Device::cuda(0));
    tensor = view_of(Tensor::over(storage, base_.shape(), base_.dtype()), shape_, layout_);
  }

  Shape shape_;
  Layout layout_;
  Tensor base_;
  std::optional<DeviceArray> array_;
};

}  // namespace accrue::test
