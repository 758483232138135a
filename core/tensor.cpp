#include "accrue/core/tensor.h"

#include "accrue/core/strided.h"

#include <cmath>
#include <cstring>
#include <limits>

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

/// Converts with a check: no value is changed silently except by truncation toward zero.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else {
    constexpr auto kLow = std::numeric_limits<To>::min();
    constexpr auto kHigh = std::numeric_limits<To>::max();
    bool fits = true;
    if constexpr (std::is_floating_point_v<From>) {
      // kHigh + 1 is a power of two, hence exact in From.
      const From above = std::ldexp(From{1}, std::numeric_limits<To>::digits);
      const From whole = std::trunc(value);
      fits = whole >= static_cast<From>(kLow) && whole < above;
    } else {
      fits = static_cast<std::int64_t>(value) >= static_cast<std::int64_t>(kLow) &&
             static_cast<std::int64_t>(value) <= static_cast<std::int64_t>(kHigh);
    }
    ACCRUE_CHECK(fits,
                 ValueError,
                 "to",
                 "values must fit ",
                 dtype_of<To>,
                 ", got ",
                 value,
                 "; clamp or mask first");
    return static_cast<To>(value);
  }
}

}  // namespace

// ---- making tensors ----

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  Tensor result;
  const std::int64_t bytes = checked_bytes(shape, dtype);
  result.storage_ = Storage::allocate(bytes, device);
  result.numel_ = bytes / size_of(dtype);
  result.shape_ = shape;
  result.strides_ = contiguous_strides(shape);
  result.dtype_ = dtype;
  return result;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor result = empty(shape, dtype);
  std::memset(result.storage_->data(), 0, static_cast<std::size_t>(result.storage_->bytes()));
  return result;
}

Tensor Tensor::ones(const Shape& shape, DType dtype) { return full(shape, 1.0, dtype); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor result = empty(shape, dtype);
  result.fill(value);
  return result;
}

Tensor Tensor::arange(std::int64_t count, DType dtype) {
  ACCRUE_CHECK(count >= 0, ValueError, "arange", "count must be >= 0, got ", count);
  Tensor result = empty({count}, dtype);
  visit_dtype(dtype, [&]<class T>(T) {
    T* out = result.mutable_data<T>();
    for (std::int64_t i = 0; i < count; ++i) out[i] = convert<T>(i);
  });
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

// ---- copies and writes ----

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  check_defined();
  Tensor result = empty(shape_, dtype_, device());
  result.copy_from(*this);
  result.sample_axis_ = sample_axis_;
  return result;
}

Tensor Tensor::to(DType dtype) const {
  check_defined();
  if (dtype == dtype_) return *this;
  Tensor result = empty(shape_, dtype, device());
  result.sample_axis_ = sample_axis_;
  visit_dtype(dtype_, [&]<class From>(From) {
    visit_dtype(dtype, [&]<class To>(To) {
      const From* in = data<From>();
      To* out = result.mutable_data<To>();
      for_each_run<2>(shape_, {result.strides_, strides_}, [&](const StridedRun<2>& run) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          out[run.offset[0] + i * run.stride[0]] =
              convert<To>(in[run.offset[1] + i * run.stride[1]]);
        }
      });
    });
  });
  return result;
}

bool Tensor::overlaps_partly(const Tensor& other) const {
  if (storage_ != other.storage_ || numel_ == 0 || other.numel_ == 0) return false;
  if (offset_ == other.offset_ && shape_ == other.shape_ && strides_ == other.strides_)
    return false;
  const auto last = [](const Tensor& t) {
    std::int64_t end = t.offset_;
    for (int d = 0; d < t.rank(); ++d) end += (t.shape_[d] - 1) * t.strides_[d];
    return end;
  };
  return offset_ <= last(other) && other.offset_ <= last(*this);
}

void Tensor::copy_from(const Tensor& source) {
  check_defined();
  source.check_defined();
  ACCRUE_CHECK(source.dtype_ == dtype_,
               DTypeError,
               "copy_from",
               "dtypes must agree, got ",
               dtype_,
               " from ",
               source.dtype_,
               "; convert with to()");
  check_writable("copy_from");
  const Tensor from = source.shape_ == shape_ ? source : source.expand(shape_);
  ACCRUE_CHECK(!overlaps_partly(from),
               StateError,
               "copy_from",
               "source and target must not overlap partly, got two views of one storage with "
               "shapes ",
               shape_,
               " and ",
               from.shape_,
               "; clone() the source first");
  storage_->bump_version();
  if (numel_ == 0) return;
  const std::int64_t size = size_of(dtype_);
  std::byte* out = storage_->data() + offset_ * size;
  const std::byte* in = from.storage_->data() + from.offset_ * size;
  for_each_run<2>(shape_, {strides_, from.strides_}, [&](const StridedRun<2>& run) {
    copy_run(out, in, run, size);
  });
}

void Tensor::fill(double value) {
  check_defined();
  check_writable("fill");
  visit_dtype(dtype_, [&]<class T>(T) {
    const T element = convert<T>(value);
    T* out = mutable_data<T>();
    for_each_run<1>(shape_, {strides_}, [&](const StridedRun<1>& run) {
      for (std::int64_t i = 0; i < run.count; ++i) out[run.offset[0] + i * run.stride[0]] = element;
    });
  });
}

}  // namespace accrue
