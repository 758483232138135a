#include "accrue/autograd/ops/views.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/reduce.h"

#include <functional>
#include <utility>

namespace accrue {
namespace {

using Pull = std::function<Tensor(const Tensor&)>;  // gradient of the result -> of the input

struct ViewNode final : OpNode<1> {
  const char* op = "";
  Pull pull;

  const char* name() const override { return op; }
  void backward(Backward& context) override { context.give(0, pull(context.dy())); }
};

Variable view(const char* op, const Variable& x, Tensor y, Pull pull) {
  return record<ViewNode>(
      std::move(y),
      [&](ViewNode& node) {
        node.op = op;
        node.pull = std::move(pull);
      },
      x);
}

/// The pull of a view that picks elements: zeros of the input's shape with dy in that place.
template <class Pick>
Pull scatter(const Variable& x, Pick pick) {
  return [shape = x.shape(), dtype = x.dtype(), device = x.device(), pick](const Tensor& dy) {
    Tensor dx = Tensor::zeros(shape, dtype, device);
    pick(dx).copy_from(dy);
    return dx;
  };
}

/// Records y, x's elements under another shape.
Variable reshaped(const Variable& x, Tensor y) {
  return view("reshape", x, std::move(y), [from = x.shape()](const Tensor& dy) {
    return dy.reshape(from);
  });
}

void check_not_samples(const Variable& x, int dim, const char* op) {
  check_keeps_samples(x.value().sample_axis().dim != normalize_dim(dim, x.rank(), op),
                      op,
                      "indexing along the sample dimension");
}

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  return reshaped(x, x.value().reshape(shape));
}

Variable flatten(const Variable& x, int start, int end) {
  return reshaped(x, x.value().flatten(start, end));
}

Variable permute(const Variable& x, std::span<const int> dims) {
  const Tensor y = x.value().permute(dims);
  std::array<int, kMaxRank> inverse{};
  for (int i = 0; i < x.rank(); ++i) {
    const int d = normalize_dim(dims[static_cast<std::size_t>(i)], x.rank(), "permute");
    inverse[static_cast<std::size_t>(d)] = i;
  }
  return view("permute", x, y, [inverse, rank = x.rank()](const Tensor& dy) {
    return dy.permute(std::span(inverse.data(), static_cast<std::size_t>(rank)));
  });
}

Variable permute(const Variable& x, std::initializer_list<int> dims) {
  return permute(x, std::span(dims.begin(), dims.size()));
}

Variable transpose(const Variable& x, int dim0, int dim1) {
  return view("transpose", x, x.value().transpose(dim0, dim1), [=](const Tensor& dy) {
    return dy.transpose(dim0, dim1);
  });
}

Variable expand(const Variable& x, const Shape& shape) {
  const Tensor y = x.value().expand(shape);
  check_keeps_samples(x.value().sample_axis().known() == y.sample_axis().known(),
                      "expand",
                      "stretching the sample dimension");
  return view(
      "expand", x, y, [from = x.shape()](const Tensor& dy) { return sum_to_shape(dy, from); });
}

Variable select(const Variable& x, int dim, std::int64_t index) {
  const Tensor y = x.value().select(dim, index);
  check_not_samples(x, dim, "select");
  return view("select", x, y, scatter(x, [=](Tensor& t) { return t.select(dim, index); }));
}

Variable narrow(const Variable& x, int dim, std::int64_t start, std::int64_t length) {
  const Tensor y = x.value().narrow(dim, start, length);
  if (y.shape() != x.shape()) check_not_samples(x, dim, "narrow");
  const auto pick = [=](Tensor& t) { return t.narrow(dim, start, length); };
  return view("narrow", x, y, scatter(x, pick));
}

Variable slice(
    const Variable& x, int dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  const Tensor y = x.value().slice(dim, start, end, step);
  if (y.shape() != x.shape()) check_not_samples(x, dim, "slice");
  return view("slice", x, y, scatter(x, [=](Tensor& t) { return t.slice(dim, start, end, step); }));
}

namespace {

struct CatNode final : Node {
  std::vector<Edge> inputs;
  std::vector<std::int64_t> sizes;
  int dim = 0;

  const char* name() const override { return "cat"; }
  std::span<const Edge> edges() const override { return inputs; }
  void backward(Backward& context) override {
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (context.needs(i)) context.give(i, context.dy().narrow(dim, start, sizes[i]));
      start += sizes[i];
    }
  }
};

}  // namespace

Variable cat(std::span<const Variable> inputs, int dim) {
  std::vector<Tensor> values;
  bool records = false, was_mixed = false;
  for (const Variable& input : inputs) {
    values.push_back(input.value());
    records |= is_recorded(input);
    was_mixed |= input.value().sample_axis().is_mixed();
  }
  Tensor y = cat(std::span<const Tensor>(values), dim);
  const int d = normalize_dim(dim, y.rank(), "cat");
  check_keeps_samples(was_mixed || !y.sample_axis().is_mixed(),
                      "cat",
                      "joining along, or across different, sample dimensions");
  if (!records) return Variable(std::move(y));
  check_not_mixed(y.sample_axis(), "cat");
  Ref<CatNode> node(new CatNode);
  node->dim = d;
  for (const Variable& input : inputs) {
    node->inputs.push_back(edge(input));
    node->sizes.push_back(input.shape()[d]);
  }
  return Variable(std::move(y), Ref<Node>(node.get()));
}

}  // namespace accrue
