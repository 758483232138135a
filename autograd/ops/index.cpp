#include "accrue/autograd/ops/index.h"

#include "accrue/autograd/engine.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/index.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

struct PickNode final : OpNode<1> {
  const char* op = "";
  int dim = 0;
  Shape from;
  SavedTensor index;  ///< of the result's shape

  const char* name() const override { return op; }
  void backward(Backward& context) override {
    Tensor dx = Tensor::zeros(from, context.dy().dtype(), context.dy().device());
    kernels::launch(dx.device(), kernels::ScatterAdd{op, context.dy(), dim, index.get(op), dx});
    context.give(0, std::move(dx));
  }
  void forget_saved() override { index.reset(); }
};

/// Errors: StateError; an undefined tensor has no device.
void check_defined(const Variable& x, const Tensor& index) {
  static_cast<void>(x.value().device());
  static_cast<void>(index.device());
}

/// In a window, the gradient of what is picked from is added up over the samples that pick.
void check_operand(const Variable& x, const SampleAxis& axis, const char* op) {
  if (!x.requires_grad() || !grad_enabled()) return;
  check_keeps_samples(!x.is_leaf(), op, "indexing a parameter");
  check_keeps_samples(x.value().sample_axis().known() || !axis.known(),
                      op,
                      "an operand stretched along, or indexed by, samples");
}

Variable pick(
    const char* op, const Variable& x, int dim, const Tensor& index, const SampleAxis& axis) {
  const Device device = common_device(op, x.value(), index);
  Tensor y = Tensor::empty(index.shape(), x.dtype(), device);
  kernels::launch(device, kernels::Gather{op, x.value(), dim, index, y});
  check_operand(x, axis, op);
  return record<PickNode>(
      y.with_sample_axis(axis),
      [&](PickNode& node) {
        node.op = op;
        node.dim = dim;
        node.from = x.shape();
        node.index = SavedTensor(index);
      },
      x);
}

}  // namespace

Variable index_select(const Variable& x, int dim, const Tensor& index) {
  constexpr const char* kName = "index_select";
  check_defined(x, index);
  const int d = normalize_dim(dim, x.rank(), kName);
  ACCRUE_CHECK(index.rank() == 1 && x.rank() > 0,
               ShapeError,
               kName,
               "needs an index of one dimension and an operand of at least one, got ",
               index.shape(),
               " and ",
               x.shape());
  SampleAxis axis = x.value().sample_axis(), of_index = index.sample_axis();
  const bool by_samples = axis.known() && of_index.known();
  check_keeps_samples(axis.dim != d, kName, "indexing along the sample dimension");
  check_keeps_samples(!by_samples, kName, "indexing samples by samples");
  if (of_index.known()) of_index.dim = d;
  if (axis == SampleAxis{})
    axis = of_index;
  else if (axis.dim == d || by_samples || of_index.is_mixed())
    axis = SampleAxis::mixed();
  Shape ones = x.shape(), full = x.shape();
  for (int i = 0; i < x.rank(); ++i) ones[i] = 1;
  ones[d] = full[d] = index.shape()[0];
  return pick(kName, x, d, index.reshape(ones).expand(full), axis);
}

Variable gather(const Variable& x, int dim, const Tensor& index) {
  constexpr const char* kName = "gather";
  check_defined(x, index);
  const int d = normalize_dim(dim, x.rank(), kName);
  const SampleAxis of_x = x.value().sample_axis(), of_index = index.sample_axis();
  check_keeps_samples(!of_x.known() || of_x.dim != d, kName, "indexing along the sample dimension");
  const bool whole =
      !of_x.known() || (of_x.dim < index.rank() && x.shape()[of_x.dim] == index.shape()[of_x.dim]);
  const bool agree = !of_x.known() || !of_index.known() || of_x == of_index;
  check_keeps_samples(whole && agree, kName, "indexing across different sample dimensions");
  const SampleAxis axis = of_x.known() && !of_index.is_mixed() ? of_x : of_index;
  return pick(kName, x, d, index, whole && agree && of_x.dim != d ? axis : SampleAxis::mixed());
}

}  // namespace accrue
