// Tensor: a strided view of shared storage. Values only; gradients live in autograd.
#pragma once

#include "accrue/core/dtype.h"
#include "accrue/core/sample_axis.h"
#include "accrue/core/shape.h"
#include "accrue/core/storage.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace accrue {

/// A multi-dimensional array: shape, strides (in elements), offset, dtype, and a share of the
/// storage. Copies of a Tensor see the same elements. A default-constructed (or moved-from) Tensor
/// is undefined: only defined(), assignment and destruction are allowed.
/// Threads: concurrent reads are safe; a write needs exclusive use of the storage.
class Tensor {
 public:
  Tensor() = default;

  // ---- making tensors ----

  /// Uninitialised elements. Errors: ShapeError, OutOfMemoryError.
  static Tensor empty(const Shape& shape, DType dtype = DType::float32, Device device = {});
  /// The first elements of a storage, dense and row-major, as a view of it.
  /// Errors: ShapeError unless they fit; StateError for no storage.
  static Tensor over(Ref<Storage> storage, const Shape& shape, DType dtype = DType::float32);
  static Tensor zeros(const Shape& shape, DType dtype = DType::float32, Device device = {});
  static Tensor ones(const Shape& shape, DType dtype = DType::float32, Device device = {});
  /// Errors also: ValueError when `value` does not fit the dtype.
  static Tensor full(const Shape& shape,
                     double value,
                     DType dtype = DType::float32,
                     Device device = {});
  /// 0, 1, ..., count - 1. Errors: ValueError for count < 0.
  static Tensor arange(std::int64_t count, DType dtype = DType::int64);
  /// Copies `values` in row-major order. Errors: ShapeError when the counts differ.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape) {
    return from_bytes(values.data(), static_cast<std::int64_t>(values.size()), shape, dtype_of<T>);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  /// Tensor::of<float>({1, 2, 3}): rank 1.
  template <class T>
  static Tensor of(std::initializer_list<T> values) {
    return from(std::span<const T>(values.begin(), values.size()),
                {static_cast<std::int64_t>(values.size())});
  }
  /// Tensor::of<float>({{1, 2}, {3, 4}}): rank 2. Errors: ShapeError for rows of unequal length.
  template <class T>
  static Tensor of(std::initializer_list<std::initializer_list<T>> rows) {
    const auto num_rows = static_cast<std::int64_t>(rows.size());
    const auto num_columns = static_cast<std::int64_t>(num_rows ? rows.begin()->size() : 0);
    Tensor result = empty({num_rows, num_columns}, dtype_of<T>);
    T* out = result.mutable_data<T>();
    for (const auto& row : rows) {
      ACCRUE_CHECK(row.size() == rows.begin()->size(),
                   ShapeError,
                   "of",
                   "rows must have equal length, got ",
                   rows.begin()->size(),
                   " and ",
                   row.size());
      out = std::copy(row.begin(), row.end(), out);
    }
    return result;
  }
  /// A rank-0 tensor.
  template <class T>
  static Tensor scalar(T value) {
    return from_bytes(&value, 1, {}, dtype_of<T>);
  }

  // ---- looking at tensors ----

  bool defined() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  int rank() const { return shape_.rank(); }
  std::int64_t numel() const { return numel_; }
  /// Errors: IndexError, also for a scalar.
  std::int64_t size(int dim) const;
  DType dtype() const { return dtype_; }
  Device device() const { return storage().device(); }
  std::uint64_t version() const { return storage().version(); }
  bool is_contiguous() const;
  bool shares_storage(const Tensor& other) const { return defined() && storage_ == other.storage_; }
  /// True when no other tensor holds a share of the storage.
  bool owns_storage() const { return storage().unique(); }

  /// Which dimension counts samples. Loaders set it, views keep, move or drop it, and results of
  /// kernels start without it. A storage into which mixed elements were copied makes all mixed.
  SampleAxis sample_axis() const {
    return storage_ && storage_->is_mixed() ? SampleAxis::mixed() : sample_axis_;
  }
  /// The same elements with another note about samples. Errors: ShapeError when the dimension
  /// does not exist or its size is no multiple of `axis.rows`.
  Tensor with_sample_axis(SampleAxis axis) const;

  /// First element, for reading: an address on device(), that the host may read only on the CPU.
  /// Errors: DTypeError when T is not the element type.
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(raw(dtype_of<T>));
  }
  /// First element, for writing: counts as one write of the whole storage.
  /// Errors: DTypeError; StateError when several elements share one location.
  template <class T>
  T* mutable_data() {
    return reinterpret_cast<T*>(mutable_raw(dtype_of<T>));
  }

  /// The only element. Errors: ShapeError unless numel() == 1, DTypeError.
  template <class T>
  T item() const {
    ACCRUE_CHECK(numel_ == 1,
                 ShapeError,
                 "item",
                 "tensor must have exactly one element, got shape ",
                 shape_,
                 "; select one first");
    return *to(Device::cpu()).data<T>();
  }
  /// All elements in row-major order. Errors: DTypeError.
  template <class T>
  std::vector<T> to_vector() const {
    const Tensor dense = to(Device::cpu()).contiguous();
    const T* first = dense.data<T>();
    return std::vector<T>(first, first + numel_);
  }
  /// As torch prints it: `tensor([1.0000, 2.5000])`.
  std::string str() const;

  // ---- views: share storage, copy nothing ----

  /// Fixes one index of `dim` and removes the dimension. Errors: IndexError.
  Tensor select(int dim, std::int64_t index) const;
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  /// Elements [start, start + length) of `dim`. Errors: IndexError.
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  /// Elements start, start + step, ... below `end` of `dim`; out-of-range ends are clipped and
  /// negative ones count from the end, as in torch. Errors: ValueError for step < 1.
  Tensor slice(int dim, std::int64_t start, std::int64_t end, std::int64_t step = 1) const;
  /// Reorders the dimensions. Errors: ShapeError unless `dims` is a permutation.
  Tensor permute(std::span<const int> dims) const;
  Tensor permute(std::initializer_list<int> dims) const {
    return permute(std::span(dims.begin(), dims.size()));
  }
  Tensor transpose(int dim0, int dim1) const;
  /// Stretches sizes of 1 and prepends dimensions, with stride 0; -1 keeps a size.
  /// Errors: ShapeError.
  Tensor expand(const Shape& shape) const;
  /// The same elements in row-major order under another shape; one size may be -1.
  /// Errors: ShapeError, also when the strides do not allow a view.
  Tensor view(const Shape& shape) const;
  /// view() where possible, else a copy.
  Tensor reshape(const Shape& shape) const;
  Tensor unsqueeze(int dim) const;
  /// Removes `dim` if its size is 1.
  Tensor squeeze(int dim) const;
  /// Merges dimensions [start, end] into one.
  Tensor flatten(int start = 0, int end = -1) const;

  // ---- copies and writes ----

  /// *this if dense and row-major, else a dense copy.
  Tensor contiguous() const;
  Tensor clone() const;
  /// Converts the element type: to integers truncates toward zero, to floats rounds to nearest, to
  /// bool is `!= 0`.
  /// Errors: ValueError where an integer type does not hold the value (NaN, infinities, too large).
  Tensor to(DType dtype) const;
  /// *this if it is there, else a dense copy on `device`. Waits where the copy is on the CPU.
  Tensor to(Device device) const;
  /// Moves the storage to another device: every tensor that shares it follows, such as a parameter
  /// in its module and its optimizer. Counts as a write. Errors: OutOfMemoryError, DeviceError.
  void move_to(Device device);
  /// Copies `source` (broadcast to this shape, same dtype, any device) into this tensor, and the
  /// mark of mixed samples with it, which goes when the whole storage is written anew.
  /// Errors: ShapeError, DTypeError; StateError when elements of this share a location, or when
  /// source and target have elements in common but not all.
  void copy_from(const Tensor& source);
  void fill(double value);

 private:
  static Tensor from_bytes(const void* data, std::int64_t count, const Shape& shape, DType dtype);
  const std::byte* raw(DType dtype) const;
  std::byte* mutable_raw(DType dtype);
  const Storage& storage() const {
    check_defined();
    return *storage_;
  }
  void check_defined() const;
  void check_writable(const char* operation) const;
  Tensor with_layout(const Shape& shape,
                     const Shape& strides,
                     std::int64_t offset,
                     SampleAxis axis) const;
  void copy_elements(const Tensor& from);
  void copy_across(const Tensor& from);
  bool same_layout(const Tensor& other) const;
  bool shares_elements(const Tensor& other) const;
  void note_write(bool is_mixed);

  Ref<Storage> storage_;
  std::int64_t offset_ = 0;  // in elements
  std::int64_t numel_ = 0;
  Shape shape_;
  Shape strides_;
  SampleAxis sample_axis_;
  DType dtype_ = DType::float32;
};

/// Joins tensors along `dim`; other sizes and the dtype must agree. Samples that meet are mixed.
/// Errors: ValueError for no tensors, ShapeError, DTypeError, IndexError.
Tensor cat(std::span<const Tensor> tensors, int dim = 0);

/// True when shapes, dtypes and all element bits agree (NaN equals NaN of any payload).
bool equal_bits(const Tensor& a, const Tensor& b);

}  // namespace accrue
