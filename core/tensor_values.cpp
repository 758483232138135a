// The elements of tensors: filling, converting, copying and comparing, in any layout.
#include "accrue/core/bits.h"
#include "accrue/core/device_backend.h"
#include "accrue/core/strided.h"
#include "accrue/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace accrue {
namespace {

/// True when `value`, truncated toward zero, is a value of the integer type To.
template <class To, class From>
bool fits(From value) {
  constexpr auto kLow = std::numeric_limits<To>::min();
  constexpr auto kHigh = std::numeric_limits<To>::max();
  if constexpr (std::is_floating_point_v<From>) {
    // kHigh + 1 is a power of two, hence exact in From. NaN fails both comparisons.
    const From above = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    const From whole = std::trunc(value);
    return whole >= static_cast<From>(kLow) && whole < above;
  } else {
    const auto wide = static_cast<std::int64_t>(value);
    return wide >= static_cast<std::int64_t>(kLow) && wide <= static_cast<std::int64_t>(kHigh);
  }
}

/// Floating targets round once to nearest, bool is `value != 0`, integers are checked.
template <class To, class From>
To convert(From value, const char* operation) {
  if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(value), operation);
  } else if constexpr (is_half<To>) {
    return To(value);
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else {
    ACCRUE_CHECK(fits<To>(value),
                 ValueError,
                 operation,
                 "values must fit ",
                 dtype_of<To>,
                 ", got ",
                 value,
                 "; clamp or mask first");
    return static_cast<To>(value);
  }
}

/// Calls visit(offset) for the elements of a layout in row-major order.
template <class Visit>
void for_each_offset(const Shape& shape, const Shape& strides, Visit visit) {
  for_each_run<1>(shape, {strides}, [&](const StridedRun<1>& run) {
    for (std::int64_t i = 0; i < run.count; ++i) visit(run.offset[0] + i * run.stride[0]);
  });
}

/// Copies in[i * in_step + j] to out[j * out_step + i] for all i < rows and j < cols, in elements
/// of Size bytes. Tiles of whole cache lines let each line be read and written once.
template <std::size_t Size>
void copy_transposed(std::byte* out,
                     const std::byte* in,
                     std::size_t rows,
                     std::size_t cols,
                     std::size_t out_step,
                     std::size_t in_step) {
  constexpr std::size_t kTile = 128 / Size;
  std::byte tile[kTile][kTile * Size];
  for (std::size_t row = 0; row < rows; row += kTile) {
    const std::size_t height = std::min(kTile, rows - row);
    for (std::size_t col = 0; col < cols; col += kTile) {
      const std::size_t width = std::min(kTile, cols - col);
      for (std::size_t i = 0; i < height; ++i) {
        const std::byte* const from = in + ((row + i) * in_step + col) * Size;
        for (std::size_t j = 0; j < width; ++j)
          std::memcpy(tile[j] + i * Size, from + j * Size, Size);
      }
      for (std::size_t j = 0; j < width; ++j)
        std::memcpy(out + ((col + j) * out_step + row) * Size, tile[j], height * Size);
    }
  }
}

/// Calls visit(std::integral_constant) for an element size.
template <class Visit>
void visit_size(std::int64_t size, const Visit& visit) {
  if (size == 4) return visit(std::integral_constant<std::size_t, 4>());
  if (size == 8) return visit(std::integral_constant<std::size_t, 8>());
  if (size == 2) return visit(std::integral_constant<std::size_t, 2>());
  visit(std::integral_constant<std::size_t, 1>());
}

/// The dimension along which neighbours in memory follow each other, or -1.
int unit_dim(const Shape& shape, const Shape& strides) {
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] > 1 && strides[d] == 1) return d;
  return -1;
}

}  // namespace

// ---- filling ----

Tensor Tensor::ones(const Shape& shape, DType dtype, Device device) {
  return full(shape, 1.0, dtype, device);
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor result = empty(shape, dtype, device);
  result.fill(value);
  return result;
}

Tensor Tensor::arange(std::int64_t count, DType dtype) {
  ACCRUE_CHECK(count >= 0, ValueError, "arange", "count must be >= 0, got ", count);
  Tensor result = empty({count}, dtype);
  visit_dtype(dtype, [&]<class T>(T) {
    T* out = result.mutable_data<T>();
    for (std::int64_t i = 0; i < count; ++i) out[i] = convert<T>(i, "arange");
  });
  return result;
}

/// Marks the storage when mixed elements come in, until a write leaves none of the old ones.
void Tensor::note_write(bool is_mixed) {
  if (numel_ == 0) return;
  const bool is_whole = numel_ * size_of(dtype_) == storage_->bytes();
  const bool was_mixed = storage_->is_mixed();
  if (is_mixed != was_mixed && (is_mixed || is_whole)) storage_->set_mixed(is_mixed);
}

void Tensor::fill(double value) {
  check_defined();
  check_writable("fill");
  visit_dtype(dtype_, [&]<class T>(T) {
    const T element = convert<T>(value, "fill");
    if (!device().is_cpu()) return backend_of(device(), "fill").fill(*this, value);
    T* out = mutable_data<T>();
    if (is_contiguous()) {
      std::fill_n(out, numel_, element);
    } else {
      for_each_offset(shape_, strides_, [&](std::int64_t offset) { out[offset] = element; });
    }
  });
  note_write(false);
}

// ---- converting and copying ----

Tensor Tensor::to(DType dtype) const {
  check_defined();
  if (dtype == dtype_) return *this;
  Tensor result = empty(shape_, dtype, device());
  result.sample_axis_ = sample_axis();
  if (!device().is_cpu()) {
    backend_of(device(), "to").copy_elements(result, *this);
    return result;
  }
  visit_dtype(dtype_, [&]<class From>(From) {
    visit_dtype(dtype, [&]<class To>(To) {
      const From* in = data<From>();
      To* out = result.mutable_data<To>();
      for_each_offset(
          shape_, strides_, [&](std::int64_t offset) { *out++ = convert<To>(in[offset], "to"); });
    });
  });
  return result;
}

Tensor Tensor::to(Device device) const {
  check_defined();
  if (device == this->device()) return *this;
  Tensor result = empty(shape_, dtype_, device);
  result.copy_elements(*this);
  result.sample_axis_ = sample_axis();
  return result;
}

void Tensor::move_to(Device device) {
  check_defined();
  storage_->move_to(device);
}

Tensor Tensor::contiguous() const {
  check_defined();
  return is_contiguous() ? *this : clone();
}

Tensor Tensor::clone() const {
  check_defined();
  Tensor result = empty(shape_, dtype_, device());
  result.copy_elements(*this);
  result.sample_axis_ = sample_axis();
  return result;
}

/// As copy_elements, where one of the tensors is not on the CPU.
void Tensor::copy_across(const Tensor& from) {
  const Device there = from.device();
  DeviceBackend& backend = backend_of(device().is_cpu() ? there : device(), "copy_from");
  if (is_contiguous() && from.is_contiguous()) {
    const std::int64_t size = size_of(dtype_);
    backend.copy_bytes(storage_->data() + offset_ * size,
                       device(),
                       from.storage_->data() + from.offset_ * size,
                       there,
                       numel_ * size);
  } else if (device() == there) {
    backend.copy_elements(*this, from);
  } else {
    copy_elements(from.contiguous().to(device()));
  }
}

void Tensor::copy_elements(const Tensor& from) {
  if (!device().is_cpu() || !from.device().is_cpu()) return copy_across(from);
  const std::int64_t size = size_of(dtype_);
  std::byte* out = storage_->data() + offset_ * size;
  const std::byte* in = from.storage_->data() + from.offset_ * size;
  if (is_contiguous() && from.is_contiguous()) {
    std::memcpy(out, in, static_cast<std::size_t>(numel_ * size));
    return;
  }
  const int to_dim = unit_dim(shape_, strides_), from_dim = unit_dim(shape_, from.strides_);
  if (to_dim == from_dim || to_dim < 0 || from_dim < 0) {
    return for_each_run<2>(shape_, {strides_, from.strides_}, [&](const StridedRun<2>& run) {
      copy_run(out, in, run, size);
    });
  }
  Shape matrices = shape_;
  matrices[to_dim] = matrices[from_dim] = 1;
  for_each_run<2>(matrices, {strides_, from.strides_}, [&](const StridedRun<2>& run) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto copy = [&]<std::size_t kSize>(std::integral_constant<std::size_t, kSize>) {
        copy_transposed<kSize>(out + (run.offset[0] + i * run.stride[0]) * size,
                               in + (run.offset[1] + i * run.stride[1]) * size,
                               static_cast<std::size_t>(shape_[to_dim]),
                               static_cast<std::size_t>(shape_[from_dim]),
                               static_cast<std::size_t>(strides_[from_dim]),
                               static_cast<std::size_t>(from.strides_[to_dim]));
      };
      visit_size(size, copy);
    }
  });
}

bool Tensor::same_layout(const Tensor& other) const {
  bool same = offset_ == other.offset_ && shape_ == other.shape_;
  for (int d = 0; d < rank() && same; ++d)
    same = shape_[d] == 1 || strides_[d] == other.strides_[d];
  return same;
}

bool Tensor::shares_elements(const Tensor& other) const {
  const auto last = [](const Tensor& t) {
    std::int64_t end = t.offset_;
    for (int d = 0; d < t.rank(); ++d) end += (t.shape_[d] - 1) * t.strides_[d];
    return end;
  };
  const std::int64_t low = std::max(offset_, other.offset_);
  const std::int64_t high = std::min(last(*this), last(other));
  if (low > high) return false;
  if (is_contiguous() && other.is_contiguous()) return true;
  // Interleaved views, such as two columns of a matrix: mark what one touches, look up the other.
  std::vector<bool> touched(static_cast<std::size_t>(high - low + 1));
  const auto for_each_inside = [&](const Tensor& t, auto visit) {
    for_each_offset(t.shape_, t.strides_, [&](std::int64_t offset) {
      const std::int64_t position = t.offset_ + offset - low;
      if (position >= 0 && position <= high - low) visit(static_cast<std::size_t>(position));
    });
  };
  bool shared = false;
  for_each_inside(*this, [&](std::size_t i) { touched[i] = true; });
  for_each_inside(other, [&](std::size_t i) { shared = shared || touched[i]; });
  return shared;
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
  const bool same_shape = source.shape_ == shape_;
  ACCRUE_CHECK(same_shape || broadcast_shapes(source.shape_, shape_, "copy_from") == shape_,
               ShapeError,
               "copy_from",
               "the source must expand to ",
               shape_,
               ", got ",
               source.shape_);
  const Tensor from = same_shape ? source : source.expand(shape_);
  if (numel_ > 0 && storage_ == from.storage_) {
    if (same_layout(from)) return;
    ACCRUE_CHECK(!shares_elements(from),
                 StateError,
                 "copy_from",
                 "source and target must not overlap partly, got two views of one storage with "
                 "shapes ",
                 shape_,
                 " and ",
                 source.shape_,
                 "; clone() the source first");
  }
  storage_->bump_version();
  note_write(source.sample_axis().is_mixed());
  copy_elements(from);
}

// ---- comparing ----

bool equal_bits(const Tensor& a, const Tensor& b) {
  ACCRUE_CHECK(a.defined() && b.defined(),
               StateError,
               "equal_bits",
               "both tensors must be defined, got a default-constructed or moved-from one");
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (!a.device().is_cpu() || !b.device().is_cpu()) {
    return equal_bits(a.to(Device::cpu()), b.to(Device::cpu()));
  }
  bool equal = true;
  visit_dtype(a.dtype(), [&]<class T>(T) {
    const T* x = a.data<T>();
    const T* y = b.data<T>();
    for_each_run<2>(a.shape(), {a.strides(), b.strides()}, [&](const StridedRun<2>& run) {
      for (std::int64_t i = 0; i < run.count && equal; ++i) {
        equal = canonical_bits(x[run.offset[0] + i * run.stride[0]]) ==
                canonical_bits(y[run.offset[1] + i * run.stride[1]]);
      }
    });
  });
  return equal;
}

}  // namespace accrue
