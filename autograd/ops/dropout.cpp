#include "accrue/autograd/ops/dropout.h"

#include "accrue/autograd/engine.h"
#include "accrue/core/counter_generator.h"
#include "accrue/core/generator.h"
#include "accrue/kernels/dropout.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

#include <array>

namespace accrue {
namespace {

Tensor times(const Tensor& a, const Tensor& mask) {
  Tensor y = Tensor::empty(a.shape(), a.dtype(), a.device());
  kernels::launch(y.device(), kernels::BinaryForward{kernels::BinaryOp::mul, a, mask, y});
  return y;
}

struct DropoutNode final : OpNode<1> {
  SavedTensor mask;

  const char* name() const override { return "dropout"; }
  void backward(Backward& context) override {
    context.give(0, times(context.dy(), mask.get(name())));
  }
  void forget_saved() override { mask.reset(); }
};

/// torch's mask: one draw per element.
Tensor drawn_mask(const Tensor& x, double p) {
  Tensor mask = Tensor::empty(x.shape(), x.dtype());
  visit_floating(x.dtype(), "dropout", [&]<class T>(T) {
    const std::span<T> elements(mask.mutable_data<T>(), static_cast<std::size_t>(mask.numel()));
    default_generator().bernoulli(elements, 1 - p);
    for (T& element : elements) element *= kernels::dropout_scale<T>(p);
  });
  return mask.to(x.device());
}

/// The mask by position; it is made with the samples in front and seen in x's order.
Tensor placed_mask(const Tensor& x, double p, std::string_view path, MicroBatch& batch) {
  const SampleAxis axis = x.sample_axis();
  ACCRUE_CHECK(axis.known(),
               StateError,
               "dropout",
               "the input must know its samples in a window, got shape ",
               x.shape(),
               " without a known sample dimension; use invariant = false");
  Shape shape = {x.shape()[axis.dim]};
  std::array<int, kMaxRank> order{};
  for (int d = 0; d < x.rank(); ++d) {
    if (d != axis.dim) shape.push_back(x.shape()[d]);
    order[static_cast<std::size_t>(d)] = d == axis.dim ? 0 : d < axis.dim ? d + 1 : d;
  }
  kernels::DropoutMask args;
  args.p = p;
  args.seed = batch.window().seed();
  args.window = static_cast<std::uint64_t>(batch.window().number());
  args.first_position = static_cast<std::uint64_t>(batch.begin());
  args.stream = stream_of(path, batch.next_draw(path));
  args.rows = axis.rows;
  args.mask = Tensor::empty(shape, x.dtype(), x.device());
  kernels::launch(args.mask.device(), args);
  return args.mask.permute(std::span<const int>(order.data(), static_cast<std::size_t>(x.rank())));
}

}  // namespace

Variable dropout(const Variable& x, double p, bool training, std::string_view path) {
  ACCRUE_CHECK(p >= 0 && p <= 1, ValueError, "dropout", "p must lie in [0, 1], got ", p);
  if (!training || p == 0) return x;
  MicroBatch* const batch = MicroBatch::current();
  const Tensor mask = batch ? placed_mask(x.value(), p, path, *batch) : drawn_mask(x.value(), p);
  const Tensor y = times(x.value(), mask).with_sample_axis(x.value().sample_axis());
  return record<DropoutNode>(
      y, [&](DropoutNode& node) { node.mask = SavedTensor(mask); }, x);
}

}  // namespace accrue
