#include "accrue/autograd/ops/attention.h"

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/engine.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/attention.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace accrue {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

struct AttentionNode final : OpNode<3> {
  SavedTensor q, k, v;
  bool causal = false;
  double scale = 1;

  const char* name() const override { return "scaled_dot_product_attention"; }
  void backward(Backward& context) override {
    kernels::AttentionBackward args{
        q.get(name()), k.get(name()), v.get(name()), causal, scale, context.dy(), {}, {}, {}};
    const Tensor* const inputs_of[] = {&args.q, &args.k, &args.v};
    Tensor* const gradients[] = {&args.dq, &args.dk, &args.dv};
    for (std::size_t i = 0; i < 3; ++i) {
      if (context.needs(i)) {
        *gradients[i] =
            Tensor::empty(inputs_of[i]->shape(), inputs_of[i]->dtype(), inputs_of[i]->device());
      }
    }
    kernels::launch(args.q.device(), args);
    for (std::size_t i = 0; i < 3; ++i) {
      if (gradients[i]->defined()) context.give(i, std::exchange(*gradients[i], Tensor()));
    }
  }
  void forget_saved() override {
    q.reset();
    k.reset();
    v.reset();
  }
};

bool same_leading(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() < 2) return false;
  return std::equal(a.begin(), a.end() - 2, b.begin());
}

void check_attention(const Variable& q, const Variable& k, const Variable& v, bool causal) {
  ACCRUE_CHECK(same_leading(q.shape(), k.shape()) && same_leading(q.shape(), v.shape()) &&
                   q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2),
               ShapeError,
               kName,
               "query, key and value must be [..., T, D], [..., S, D] and [..., S, E], got ",
               q.shape(),
               ", ",
               k.shape(),
               " and ",
               v.shape(),
               "; expand() leading dimensions that differ");
  ACCRUE_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
               DTypeError,
               kName,
               "query, key and value must have one dtype, got ",
               q.dtype(),
               ", ",
               k.dtype(),
               " and ",
               v.dtype(),
               "; convert with to()");
  ACCRUE_CHECK(!causal || q.size(-2) == k.size(-2),
               ShapeError,
               kName,
               "causal attention needs as many queries as keys, got ",
               q.size(-2),
               " and ",
               k.size(-2));
}

}  // namespace

Variable scaled_dot_product_attention(const Variable& q,
                                      const Variable& k,
                                      const Variable& v,
                                      bool causal,
                                      std::optional<double> scale) {
  if (const auto half = autocast_dtype()) {
    const Autocast off(*half, false);
    return autocast_operand(scaled_dot_product_attention(autocast_operand(q, *half),
                                                         autocast_operand(k, *half),
                                                         autocast_operand(v, *half),
                                                         causal,
                                                         scale),
                            *half);
  }
  check_attention(q, k, v, causal);
  const double factor =
      scale.value_or(1 / std::sqrt(std::max(static_cast<double>(q.size(-1)), 1.0)));
  ACCRUE_CHECK(
      !scale || std::isfinite(*scale), ValueError, kName, "scale must be finite, got ", factor);
  const SampleAxis axis = q.value().sample_axis();
  const bool keeps =
      axis.dim < q.rank() - 2 && k.value().sample_axis() == axis && v.value().sample_axis() == axis;
  check_keeps_samples(keeps, kName, "attention across samples");
  const Device device = common_device(kName, q.value(), k.value(), v.value());
  Shape shape = q.shape();
  shape[shape.rank() - 1] = v.size(-1);
  Tensor y = Tensor::empty(shape, q.dtype(), device);
  kernels::launch(device,
                  kernels::AttentionForward{q.value(), k.value(), v.value(), causal, factor, y});
  y = y.with_sample_axis(keeps ? axis : SampleAxis{});
  return record<AttentionNode>(
      y,
      [&](AttentionNode& node) {
        node.q = SavedTensor(q.value());
        node.k = SavedTensor(k.value());
        node.v = SavedTensor(v.value());
        node.causal = causal;
        node.scale = factor;
      },
      q,
      k,
      v);
}

}  // namespace accrue
