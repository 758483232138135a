// Views of a tensor: the same storage under another shape, strides and offset.
#include "accrue/core/same_device.h"

#include <algorithm>

namespace accrue {
namespace {

/// Replaces one -1 in `shape` so that it holds `numel` elements.
Shape resolve(const Shape& shape, std::int64_t numel, const char* operation) {
  Shape result = shape;
  int unknown = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    ACCRUE_CHECK(shape[d] >= -1, ShapeError, operation, "sizes must be >= -1, got ", shape);
    if (shape[d] != -1) continue;
    ACCRUE_CHECK(unknown < 0, ShapeError, operation, "at most one size may be -1, got ", shape);
    unknown = d;
    result[d] = 1;
  }
  const std::int64_t known = checked_numel(result, operation);
  if (unknown >= 0) {
    ACCRUE_CHECK(known != 0,
                 ShapeError,
                 operation,
                 "-1 must have one possible value, got ",
                 shape,
                 " for an empty tensor; give all sizes");
    result[unknown] = numel / known;
  }
  ACCRUE_CHECK(checked_numel(result, operation) == numel,
               ShapeError,
               operation,
               "shape must hold ",
               numel,
               " elements, got ",
               shape);
  return result;
}

/// Strides of `target` over the elements that (shape, strides) walk in row-major order; false when
/// no strides do that.
bool view_strides(const Shape& shape, const Shape& strides, const Shape& target, Shape& result) {
  result = contiguous_strides(target);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  int d = target.rank() - 1;
  for (int end = shape.rank(); end > 0;) {
    int begin = end - 1;  // [begin, end): a group of dimensions that lie dense in each other
    const std::int64_t inner = strides[end - 1];
    std::int64_t block = shape[end - 1];
    while (begin > 0 && (shape[begin - 1] == 1 || strides[begin - 1] == block * inner)) {
      block *= shape[--begin];
    }
    std::int64_t covered = 1;
    while (d >= 0 && covered < block) {
      result[d] = covered * inner;
      covered *= target[d--];
    }
    if (covered != block) return false;
    end = begin;
  }
  return true;
}

/// The axis of entries that no longer stand for all samples, each by itself.
SampleAxis lost(SampleAxis axis) { return axis.known() ? SampleAxis::mixed() : axis; }

/// The axis after dimension `dim` was removed (change -1) or put in (change +1).
SampleAxis shifted(SampleAxis axis, int dim, int change) {
  if (axis.dim == dim && change < 0) return lost(axis);
  if (axis.dim >= dim) axis.dim += change;
  return axis;
}

/// The axis after a reshape: kept when samples stay whole entries of the first dimension.
SampleAxis reshaped(SampleAxis axis, const Shape& from, const Shape& to) {
  if (!axis.is_major() || to.rank() == 0) return lost(axis);
  const std::int64_t samples = axis.rows < 0 ? -axis.rows : from[0] / axis.rows;
  if (samples == 0) return to[0] == 0 ? SampleAxis{0, 1} : lost(axis);
  if (to[0] % samples != 0) return lost(axis);
  return {0, to[0] == 0 ? -samples : to[0] / samples};
}

/// The shape of `tensors` joined along dimension `d`.
Shape joined_shape(std::span<const Tensor> tensors, int d) {
  const Tensor& first = tensors.front();
  Shape shape = first.shape();
  shape[d] = 0;
  for (const Tensor& tensor : tensors) {
    Shape other = tensor.shape();
    const bool same_rank = other.rank() == shape.rank();
    if (same_rank) other[d] = shape[d];
    ACCRUE_CHECK(same_rank && other == shape,
                 ShapeError,
                 "cat",
                 "shapes must agree except in dimension ",
                 d,
                 ", got ",
                 first.shape(),
                 " and ",
                 tensor.shape());
    ACCRUE_CHECK(tensor.dtype() == first.dtype(),
                 DTypeError,
                 "cat",
                 "dtypes must agree, got ",
                 first.dtype(),
                 " and ",
                 tensor.dtype(),
                 "; convert with to()");
    ACCRUE_CHECK(!__builtin_add_overflow(shape[d], tensor.shape()[d], &shape[d]),
                 ShapeError,
                 "cat",
                 "the joined size must fit in 63 bits, got more from shapes like ",
                 tensor.shape());
  }
  return shape;
}

/// The axis of `tensors` joined along dimension `d`: kept where all know the same one.
SampleAxis joined_axis(std::span<const Tensor> tensors, int d) {
  const SampleAxis axis = tensors.front().sample_axis();
  for (const Tensor& tensor : tensors)
    if (tensor.sample_axis() != axis) return SampleAxis::mixed();
  return axis.dim == d ? lost(axis) : axis;
}

}  // namespace

Tensor Tensor::with_sample_axis(SampleAxis axis) const {
  check_defined();
  const auto fits = [&](std::int64_t size) {
    return axis.rows < 0 ? size == 0 : axis.rows > 0 && size % axis.rows == 0;
  };
  ACCRUE_CHECK(axis.dim < rank() && (!axis.known() || fits(shape_[axis.dim])),
               ShapeError,
               "with_sample_axis",
               "samples must be whole entries of a dimension, got dimension ",
               axis.dim,
               " with ",
               axis.rows,
               " rows per sample for shape ",
               shape_);
  Tensor result = *this;
  result.sample_axis_ = axis;
  return result;
}

Tensor Tensor::with_layout(const Shape& shape,
                           const Shape& strides,
                           std::int64_t offset,
                           SampleAxis axis) const {
  Tensor result = *this;
  result.sample_axis_ = axis;
  result.numel_ = checked_numel(shape, "view");
  result.shape_ = shape;
  result.strides_ = strides;
  result.offset_ = offset;
  return result;
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  check_defined();
  ACCRUE_CHECK(rank() > 0, IndexError, "select", "tensor must have a dimension, got a scalar");
  const int d = normalize_dim(dim, rank(), "select");
  ACCRUE_CHECK(index >= -shape_[d] && index < shape_[d],
               IndexError,
               "select",
               "index must lie in [",
               -shape_[d],
               ", ",
               shape_[d] - 1,
               "], got ",
               index,
               " for dimension ",
               d,
               " of ",
               shape_);
  const std::int64_t position = index < 0 ? index + shape_[d] : index;
  Shape shape = shape_;
  Shape strides = strides_;
  shape.erase(d);
  strides.erase(d);
  return with_layout(
      shape, strides, offset_ + position * strides_[d], shifted(sample_axis_, d, -1));
}

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  check_defined();
  ACCRUE_CHECK(rank() > 0, IndexError, "narrow", "tensor must have a dimension, got a scalar");
  const int d = normalize_dim(dim, rank(), "narrow");
  ACCRUE_CHECK(start >= 0 && length >= 0 && start <= shape_[d] && length <= shape_[d] - start,
               IndexError,
               "narrow",
               "[start, start + length) must lie in [0, ",
               shape_[d],
               "), got start ",
               start,
               " and length ",
               length);
  Shape shape = shape_;
  shape[d] = length;
  const SampleAxis axis =
      d == sample_axis_.dim && length != shape_[d] ? lost(sample_axis_) : sample_axis_;
  return with_layout(shape, strides_, length ? offset_ + start * strides_[d] : offset_, axis);
}

Tensor Tensor::slice(int dim, std::int64_t start, std::int64_t end, std::int64_t step) const {
  check_defined();
  ACCRUE_CHECK(step >= 1, ValueError, "slice", "step must be >= 1, got ", step);
  ACCRUE_CHECK(rank() > 0, IndexError, "slice", "tensor must have a dimension, got a scalar");
  const int d = normalize_dim(dim, rank(), "slice");
  const auto clip = [size = shape_[d]](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const std::int64_t first = clip(start);
  const std::int64_t length = std::max<std::int64_t>(clip(end) - first, 0);
  Tensor result = narrow(d, first, length);
  result.shape_[d] = length == 0 ? 0 : (length - 1) / step + 1;
  if (result.shape_[d] > 1) result.strides_[d] *= step;  // else the product might overflow
  if (d == sample_axis_.dim && step != 1) result.sample_axis_ = lost(sample_axis_);
  result.numel_ = checked_numel(result.shape_, "slice");
  return result;
}

Tensor Tensor::permute(std::span<const int> dims) const {
  check_defined();
  ACCRUE_CHECK(dims.size() == static_cast<std::size_t>(rank()),
               ShapeError,
               "permute",
               "dims must name each of the ",
               rank(),
               " dimensions once, got ",
               dims.size(),
               " entries");
  Shape shape = shape_;
  Shape strides = strides_;
  SampleAxis axis = sample_axis_;
  unsigned seen = 0;
  for (int i = 0; i < rank(); ++i) {
    const int d = normalize_dim(dims[static_cast<std::size_t>(i)], rank(), "permute");
    ACCRUE_CHECK(!(seen & (1U << d)),
                 ShapeError,
                 "permute",
                 "dims must name each dimension once, got ",
                 d,
                 " twice");
    seen |= 1U << d;
    shape[i] = shape_[d];
    strides[i] = strides_[d];
    if (d == sample_axis_.dim) axis.dim = i;
  }
  return with_layout(shape, strides, offset_, axis);
}

Tensor Tensor::transpose(int dim0, int dim1) const {
  check_defined();
  const int a = normalize_dim(dim0, rank(), "transpose");
  const int b = normalize_dim(dim1, rank(), "transpose");
  if (a == b) return *this;
  Shape shape = shape_;
  Shape strides = strides_;
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  SampleAxis axis = sample_axis_;
  if (axis.dim == a || axis.dim == b) axis.dim = a + b - axis.dim;
  return with_layout(shape, strides, offset_, axis);
}

Tensor Tensor::expand(const Shape& shape) const {
  check_defined();
  const int added = shape.rank() - rank();
  ACCRUE_CHECK(added >= 0,
               ShapeError,
               "expand",
               "the new shape must have at least ",
               rank(),
               " dimensions, got ",
               shape);
  Shape result = shape;
  Shape strides = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool is_new = d < added;
    const std::int64_t size = is_new ? 1 : shape_[d - added];
    if (!is_new && shape[d] == -1) result[d] = size;
    ACCRUE_CHECK(result[d] == size || (size == 1 && result[d] >= 0),
                 ShapeError,
                 "expand",
                 "only sizes of 1 can be stretched, got ",
                 shape_,
                 " to ",
                 shape);
    strides[d] = !is_new && result[d] == size ? strides_[d - added] : 0;
  }
  checked_numel(result, "expand");
  SampleAxis axis = sample_axis_;
  if (axis.known()) axis.dim += added;
  if (axis.known() && result[axis.dim] != shape_[sample_axis_.dim]) axis = lost(axis);
  return with_layout(result, strides, offset_, axis);
}

Tensor Tensor::view(const Shape& shape) const {
  check_defined();
  const Shape target = resolve(shape, numel_, "view");
  Shape strides;
  ACCRUE_CHECK(view_strides(shape_, strides_, target, strides),
               ShapeError,
               "view",
               "the strides must allow a view, got shape ",
               shape_,
               " with strides ",
               strides_,
               " as ",
               target,
               "; use reshape()");
  return with_layout(target, strides, offset_, reshaped(sample_axis_, shape_, target));
}

Tensor Tensor::reshape(const Shape& shape) const {
  check_defined();
  const Shape target = resolve(shape, numel_, "reshape");
  Shape strides;
  if (!view_strides(shape_, strides_, target, strides)) return clone().view(target);
  return with_layout(target, strides, offset_, reshaped(sample_axis_, shape_, target));
}

Tensor Tensor::unsqueeze(int dim) const {
  check_defined();
  const int d = normalize_dim(dim, rank() + 1, "unsqueeze");
  Shape shape = shape_;
  Shape strides = strides_;
  strides.insert(d, d < rank() ? shape_[d] * strides_[d] : 1);
  shape.insert(d, 1);
  return with_layout(shape, strides, offset_, shifted(sample_axis_, d, 1));
}

Tensor Tensor::squeeze(int dim) const {
  check_defined();
  const int d = normalize_dim(dim, rank(), "squeeze");
  if (rank() == 0 || shape_[d] != 1) return *this;
  Shape shape = shape_;
  Shape strides = strides_;
  shape.erase(d);
  strides.erase(d);
  return with_layout(shape, strides, offset_, shifted(sample_axis_, d, -1));
}

Tensor Tensor::flatten(int start, int end) const {
  check_defined();
  const int first = normalize_dim(start, rank(), "flatten");
  const int last = normalize_dim(end, rank(), "flatten");
  if (rank() == 0) return reshape({1});
  ACCRUE_CHECK(first <= last,
               ShapeError,
               "flatten",
               "start must not lie behind end, got ",
               first,
               " and ",
               last);
  Shape shape;
  for (int d = 0; d < first; ++d) shape.push_back(shape_[d]);
  shape.push_back(product(shape_, first, last + 1));
  for (int d = last + 1; d < rank(); ++d) shape.push_back(shape_[d]);
  return reshape(shape);
}

Tensor cat(std::span<const Tensor> tensors, int dim) {
  ACCRUE_CHECK(!tensors.empty(), ValueError, "cat", "at least one tensor must be given, got none");
  for (const Tensor& tensor : tensors) {
    ACCRUE_CHECK(
        tensor.defined(), StateError, "cat", "tensors must be defined, got one that is not");
    check_device("cat", tensors.front().device(), tensor);
  }
  const Tensor& first = tensors.front();
  ACCRUE_CHECK(first.rank() > 0, ShapeError, "cat", "tensors must have a dimension, got a scalar");
  const int d = normalize_dim(dim, first.rank(), "cat");
  Tensor result = Tensor::empty(joined_shape(tensors, d), first.dtype(), first.device());
  std::int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    result.narrow(d, start, tensor.size(d)).copy_from(tensor);
    start += tensor.size(d);
  }
  return result.with_sample_axis(joined_axis(tensors, d));
}

}  // namespace accrue
