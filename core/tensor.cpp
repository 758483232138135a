#include "accrue/core/tensor.h"

#include <cstring>
#include <utility>

namespace accrue {
namespace {

std::int64_t checked_bytes(const Shape& shape, DType dtype) {
  const std::int64_t numel = checked_numel(shape, "empty");
  std::int64_t bytes = 0;
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  ACCRUE_CHECK(!__builtin_mul_overflow(numel, size_of(dtype), &bytes) && bytes <= kLimit,
               ShapeError,
               "empty",
               "the bytes of a tensor must fit in 62 bits, got shape ",
               shape,
               " of ",
               dtype);
  return bytes;
}

}  // namespace

// ---- making tensors ----

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  return over(Storage::allocate(checked_bytes(shape, dtype), device), shape, dtype);
}

Tensor Tensor::over(Ref<Storage> storage, const Shape& shape, DType dtype) {
  ACCRUE_CHECK(storage, StateError, "over", "the storage must exist, got an empty handle");
  const std::int64_t bytes = checked_bytes(shape, dtype);
  ACCRUE_CHECK(bytes <= storage->bytes(),
               ShapeError,
               "over",
               "the storage must hold shape ",
               shape,
               " of ",
               dtype,
               ", got ",
               storage->bytes(),
               " bytes");
  Tensor result;
  result.storage_ = std::move(storage);
  result.numel_ = bytes / size_of(dtype);
  result.shape_ = shape;
  result.strides_ = contiguous_strides(shape);
  result.dtype_ = dtype;
  return result;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  Tensor result = empty(shape, dtype, device);
  if (device.is_cpu()) {
    std::memset(result.storage_->data(), 0, static_cast<std::size_t>(result.storage_->bytes()));
  } else {
    result.fill(0);
  }
  return result;
}

Tensor Tensor::from_bytes(const void* data, std::int64_t count, const Shape& shape, DType dtype) {
  ACCRUE_CHECK(checked_numel(shape, "from") == count,
               ShapeError,
               "from",
               "shape must hold as many elements as were given, got ",
               shape,
               " for ",
               count,
               " values");
  Tensor result = empty(shape, dtype);
  if (count > 0) {
    std::memcpy(result.storage_->data(), data, static_cast<std::size_t>(count * size_of(dtype)));
  }
  return result;
}

// ---- looking at tensors ----

void Tensor::check_defined() const {
  ACCRUE_CHECK(defined(),
               StateError,
               "tensor",
               "tensor must be defined, got a default-constructed or moved-from one");
}

std::int64_t Tensor::size(int dim) const {
  ACCRUE_CHECK(rank() > 0, IndexError, "size", "tensor must have a dimension, got a scalar");
  return shape_[normalize_dim(dim, rank(), "size")];
}

bool Tensor::is_contiguous() const {
  if (numel_ == 0) return true;
  std::int64_t expected = 1;
  for (int d = rank() - 1; d >= 0; --d) {
    if (shape_[d] == 1) continue;
    if (strides_[d] != expected) return false;
    expected *= shape_[d];
  }
  return true;
}

const std::byte* Tensor::raw(DType dtype) const {
  check_defined();
  ACCRUE_CHECK(dtype == dtype_,
               DTypeError,
               "data",
               "element type must be ",
               dtype_,
               ", got ",
               dtype,
               "; convert with to()");
  return storage_->data() + offset_ * size_of(dtype_);
}

std::byte* Tensor::mutable_raw(DType dtype) {
  const std::byte* pointer = raw(dtype);
  check_writable("mutable_data");
  storage_->bump_version();
  return const_cast<std::byte*>(pointer);
}

void Tensor::check_writable(const char* operation) const {
  for (int d = 0; d < rank() && numel_ > 0; ++d) {
    ACCRUE_CHECK(strides_[d] != 0 || shape_[d] == 1,
                 StateError,
                 operation,
                 "elements must not share a location, got shape ",
                 shape_,
                 " with strides ",
                 strides_,
                 "; clone() the expanded tensor first");
  }
}

}  // namespace accrue
