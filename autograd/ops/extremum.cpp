#include "accrue/autograd/ops/extremum.h"

#include "accrue/autograd/engine.h"
#include "accrue/kernels/extremum.h"
#include "accrue/kernels/index.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

struct ExtremumNode final : OpNode<1> {
  const char* op = "";
  int dim = 0;
  Shape from;
  SavedTensor indices;  ///< with size 1 in the place of `dim`

  const char* name() const override { return op; }
  void backward(Backward& context) override {
    const Tensor& places = indices.get(op);
    Tensor dx = Tensor::zeros(from, context.dy().dtype(), places.device());
    kernels::launch(dx.device(),
                    kernels::ScatterAdd{op, context.dy().reshape(places.shape()), dim, places, dx});
    context.give(0, std::move(dx));
  }
  void forget_saved() override { indices.reset(); }
};

ValuesAndIndices extremum(const char* op, bool largest, const Variable& x, int dim, bool keep_dim) {
  const int d = normalize_dim(dim, x.rank(), op);
  SampleAxis axis = x.value().sample_axis();
  check_keeps_samples(
      axis.dim != d || !is_recorded(x), op, "an extremum along the sample dimension");
  Shape kept = x.shape(), without;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == d) {
      kept[i] = 1;
    } else {
      without.push_back(kept[i]);
    }
  }
  Tensor values = Tensor::empty(without, x.dtype(), x.device());
  Tensor indices = Tensor::empty(without, DType::int64, x.device());
  kernels::launch(values.device(), kernels::Extremum{op, largest, x.value(), d, values, indices});
  const Tensor places = indices.view(kept);
  if (axis.dim == d) axis = SampleAxis::mixed();
  if (axis.dim > d && !keep_dim) --axis.dim;
  if (keep_dim) {
    values = values.view(kept);
    indices = places;
  }
  return {record<ExtremumNode>(
              values.with_sample_axis(axis),
              [&](ExtremumNode& node) {
                node.op = op;
                node.dim = d;
                node.from = x.shape();
                node.indices = SavedTensor(places);
              },
              x),
          indices.with_sample_axis(axis)};
}

}  // namespace

ValuesAndIndices max(const Variable& x, int dim, bool keep_dim) {
  return extremum("max", true, x, dim, keep_dim);
}
ValuesAndIndices min(const Variable& x, int dim, bool keep_dim) {
  return extremum("min", false, x, dim, keep_dim);
}
Tensor argmax(const Variable& x, int dim, bool keep_dim) {
  return extremum("argmax", true, x.detach(), dim, keep_dim).indices;
}
Tensor argmin(const Variable& x, int dim, bool keep_dim) {
  return extremum("argmin", false, x.detach(), dim, keep_dim).indices;
}

}  // namespace accrue
