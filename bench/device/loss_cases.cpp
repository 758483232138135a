// Cases of the fused last layer and its loss beside the two apart: losses and both gradients.
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/linear_cross_entropy.h"
#include "accrue/bench/device/kernel_cases.h"

namespace accrue::bench {
namespace {

using Losses = Variable (*)(const Variable& x, const Variable& w, const Tensor& target);

Variable fused(const Variable& x, const Variable& w, const Tensor& target) {
  return linear_cross_entropy_rows(x, w, {}, target);
}
Variable apart(const Variable& x, const Variable& w, const Tensor& target) {
  return cross_entropy_rows(linear(x, w, {}), target);
}

// Sizes: tokens, vocabulary, width.
template <Losses kLosses>
Work losses(const Sizes& s, Device device) {
  Variable x = Variable::leaf(numbers({s[0], s[2]}, device, 1)),
           w = Variable::leaf(numbers({s[1], s[2]}, device, 2));
  const Tensor target = indices(s[0], s[1], device),
               one = Tensor::ones({s[0]}, DType::float32, device);
  Tensor loss = unwritten({s[0]}, device), dx = unwritten({s[0], s[2]}, device),
         dw = unwritten({s[1], s[2]}, device);
  return {[=]() mutable {
            x.zero_grad();
            w.zero_grad();
            const Variable rows = kLosses(x, w, target);
            rows.backward(one);
            loss.copy_from(rows.value());
            dx.copy_from(x.grad());
            dw.copy_from(w.grad());
          },
          {loss, dx, dw}};
}

/// Three products: logits and both gradients. The fused form makes the logits twice.
double flops_of(const Sizes& s) { return product(s, 6); }

}  // namespace

std::vector<KernelCase> loss_cases() {
  using enum Counted;
  const std::vector<Sizes> sizes = {{8192, 50304, 1024}};
  const Sizes ragged = {37, 131, 20};
  return {
      {"linear_cross_entropy", flops, sizes, ragged, flops_of, losses<fused>},
      {"linear_then_cross_entropy", flops, sizes, ragged, flops_of, losses<apart>},
  };
}

}  // namespace accrue::bench
