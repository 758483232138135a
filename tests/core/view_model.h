// View chains for tests: random views applied to a tensor and to a naive model of its indices.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/tests/support/property.h"

#include <functional>

namespace accrue::test {

using Index = std::vector<std::int64_t>;

inline std::vector<std::int64_t> values(const Tensor& tensor) {
  return tensor.to_vector<std::int64_t>();
}

// ---- the model: a shape and all elements in row-major order ----

struct Model {
  Shape shape;
  std::vector<std::int64_t> elements;

  std::int64_t at(const Index& index) const {
    std::int64_t position = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      position = position * shape[d] + index[static_cast<std::size_t>(d)];
    }
    return elements[static_cast<std::size_t>(position)];
  }

  /// The tensor of `target` shape whose element at i is this one's at source_of(i).
  Model gather(const Shape& target, const std::function<Index(Index)>& source_of) const {
    Model result{target, {}};
    const std::int64_t count = checked_numel(target, "test");
    for (std::int64_t i = 0; i < count; ++i) {
      Index index(static_cast<std::size_t>(target.rank()));
      std::int64_t rest = i;
      for (int d = target.rank() - 1; d >= 0; --d) {
        index[static_cast<std::size_t>(d)] = rest % target[d];
        rest /= target[d];
      }
      result.elements.push_back(at(source_of(index)));
    }
    return result;
  }
};

// ---- one random step of each kind, on the tensor and on the model ----

inline int pick_dim(int rank) { return static_cast<int>(pick(-rank, rank - 1)); }
inline std::size_t from_front(int dim, int rank) {
  return static_cast<std::size_t>((dim + rank) % rank);
}

inline void permute(Tensor& tensor, Model& model) {
  std::vector<int> dims;
  for (int d = 0; d < tensor.rank(); ++d) {
    dims.insert(dims.begin() + pick(0, d), static_cast<int>(pick(0, 1)) ? d : d - tensor.rank());
  }
  Shape shape;
  for (const int d : dims) shape.push_back(tensor.size(d));
  model = model.gather(shape, [&](const Index& index) {
    Index source(index.size());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      source[from_front(dims[i], tensor.rank())] = index[i];
    }
    return source;
  });
  tensor = tensor.permute(dims);
}

inline void transpose(Tensor& tensor, Model& model) {
  if (tensor.rank() == 0) return;
  const int a = pick_dim(tensor.rank()), b = pick_dim(tensor.rank());
  const auto x = from_front(a, tensor.rank()), y = from_front(b, tensor.rank());
  Shape shape = tensor.shape();
  std::swap(shape[static_cast<int>(x)], shape[static_cast<int>(y)]);
  model = model.gather(shape, [&](Index index) {
    std::swap(index[x], index[y]);
    return index;
  });
  tensor = tensor.transpose(a, b);
}

inline void select(Tensor& tensor, Model& model) {
  if (tensor.rank() == 0) return;
  const int dim = pick_dim(tensor.rank());
  const auto d = from_front(dim, tensor.rank());
  const std::int64_t size = tensor.size(dim);
  if (size == 0) return;
  const std::int64_t i = pick(-size, size - 1);
  Shape shape = tensor.shape();
  shape.erase(static_cast<int>(d));
  model = model.gather(shape, [&](Index index) {
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(d), (i + size) % size);
    return index;
  });
  tensor = tensor.select(dim, i);
}

inline void slice(Tensor& tensor, Model& model) {
  if (tensor.rank() == 0) return;
  const int dim = pick_dim(tensor.rank());
  const auto d = from_front(dim, tensor.rank());
  const std::int64_t size = tensor.size(dim);
  const std::int64_t start = pick(-size - 2, size + 2), end = pick(-size - 2, size + 2);
  const std::int64_t step = pick(1, 3);
  // Python's rule: negative ends count from the back, then both are clipped.
  const auto clip = [&](std::int64_t i) {
    return std::min(std::max<std::int64_t>(i < 0 ? i + size : i, 0), size);
  };
  std::int64_t length = 0;
  for (std::int64_t i = clip(start); i < clip(end); i += step) ++length;
  Shape shape = tensor.shape();
  shape[static_cast<int>(d)] = length;
  model = model.gather(shape, [&](Index index) {
    index[d] = clip(start) + index[d] * step;
    return index;
  });
  tensor = tensor.slice(dim, start, end, step);
}

inline void narrow(Tensor& tensor, Model& model) {
  if (tensor.rank() == 0) return;
  const int dim = pick_dim(tensor.rank());
  const auto d = from_front(dim, tensor.rank());
  const std::int64_t start = pick(0, tensor.size(dim));
  const std::int64_t length = pick(0, tensor.size(dim) - start);
  Shape shape = tensor.shape();
  shape[static_cast<int>(d)] = length;
  model = model.gather(shape, [&](Index index) {
    index[d] += start;
    return index;
  });
  tensor = tensor.narrow(dim, start, length);
}

inline void expand(Tensor& tensor, Model& model) {
  if (tensor.rank() > 5 || tensor.numel() > 100) return;
  const int added = static_cast<int>(pick(0, 1));
  Shape asked, shape;
  for (int d = 0; d < added; ++d) asked.push_back(pick(0, 3));
  shape = asked;
  for (const std::int64_t size : tensor.shape()) {
    const std::int64_t wanted = size == 1 ? pick(0, 3) : size;
    shape.push_back(wanted);
    asked.push_back(wanted == size && pick(0, 1) ? -1 : wanted);
  }
  const Shape before = tensor.shape();
  model = model.gather(shape, [&](Index index) {
    index.erase(index.begin(), index.begin() + added);
    for (int d = 0; d < before.rank(); ++d) {
      if (before[d] == 1) index[static_cast<std::size_t>(d)] = 0;
    }
    return index;
  });
  tensor = tensor.expand(asked);
}

inline void unsqueeze(Tensor& tensor, Model& model) {
  if (tensor.rank() > 5) return;
  const int dim = pick_dim(tensor.rank() + 1);
  model.shape.insert(static_cast<int>(from_front(dim, tensor.rank() + 1)), 1);
  tensor = tensor.unsqueeze(dim);
}

inline void squeeze(Tensor& tensor, Model& model) {
  if (tensor.rank() == 0) return;
  const int dim = pick_dim(tensor.rank());
  if (tensor.size(dim) == 1) model.shape.erase(static_cast<int>(from_front(dim, tensor.rank())));
  tensor = tensor.squeeze(dim);
}

/// A random shape of as many elements.
inline Shape pick_shape(std::int64_t numel) {
  Shape shape;
  for (std::int64_t rest = numel; shape.rank() < 5;) {
    if (rest <= 1 && pick(0, 1)) return rest == 1 ? shape : (shape.push_back(rest), shape);
    Index divisors;
    for (std::int64_t n = 1; n <= rest; ++n) {
      if (rest % n == 0) divisors.push_back(n);
    }
    const std::int64_t size = rest == 0 ? pick(0, 3)
                                        : divisors[static_cast<std::size_t>(pick(
                                              0, static_cast<std::int64_t>(divisors.size()) - 1))];
    shape.push_back(size);
    if (size > 0) rest /= size;
    if (shape.rank() == 5 || size == 0) shape[shape.rank() - 1] = size * rest;
  }
  return shape;
}

inline void reshape(Tensor& tensor, Model& model) {
  const Shape target = pick_shape(tensor.numel());
  Shape asked = target;
  const int unknown = static_cast<int>(pick(-1, target.rank() - 1));
  bool can_be_unknown = unknown >= 0;
  for (int d = 0; d < target.rank(); ++d) can_be_unknown &= d == unknown || target[d] != 0;
  if (can_be_unknown) asked[unknown] = -1;
  model.shape = target;
  tensor = tensor.reshape(asked);
}

inline void flatten(Tensor& tensor, Model& model) {
  if (tensor.rank() == 0) return;
  const int start = static_cast<int>(pick(0, tensor.rank() - 1));
  const int end = static_cast<int>(pick(start, tensor.rank() - 1));
  Shape shape;
  for (int d = 0; d < tensor.rank(); ++d) {
    if (d <= start || d > end) {
      shape.push_back(tensor.size(d));
    } else {
      shape[start] *= tensor.size(d);
    }
  }
  model.shape = shape;
  tensor = tensor.flatten(start, end - (pick(0, 1) ? tensor.rank() : 0));
}

using Step = void (*)(Tensor&, Model&);
inline constexpr Step kSharingSteps[] = {
    permute, transpose, select, slice, narrow, expand, unsqueeze, squeeze};
inline constexpr Step kAllSteps[] = {
    permute, transpose, select, slice, narrow, expand, unsqueeze, squeeze, reshape, flatten};

/// The numbers 0, 1, ... in a random shape.
inline Tensor pick_base() {
  Shape shape;
  for (std::int64_t d = pick(0, 4); d > 0; --d) shape.push_back(pick(d == 2 ? 0 : 1, 4));
  return Tensor::arange(checked_numel(shape, "test")).view(shape);
}

}  // namespace accrue::test
