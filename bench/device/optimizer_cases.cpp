// Cases of the optimizers' steps.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/kernels/adagrad.h"
#include "accrue/kernels/adam.h"
#include "accrue/kernels/rmsprop.h"
#include "accrue/kernels/sgd.h"

namespace accrue::bench {
namespace {

/// A parameter, then what is kept of its gradients: positive numbers, as averages of squares are.
using Arrays = float* const*;

/// `settings_of` sets all of a step but the gradient and the count.
template <int kKept, auto settings_of>
Work step(const Sizes& s, Device device) {
  const Tensor g = numbers({s[0]}, device, 0);
  std::vector<Tensor> written = {numbers({s[0]}, device, 1)};
  for (std::uint64_t seed = 2; seed < 2 + kKept; ++seed)
    written.push_back(numbers({s[0]}, device, seed, 0.25, 0.75));
  return {[=]() mutable {
            float* arrays[1 + kKept];
            for (int i = 0; i <= kKept; ++i) arrays[i] = written[i].mutable_data<float>();
            auto args = settings_of(arrays);
            args.g = g.data<float>();
            args.count = g.numel();
            launch(device, args);
          },
          written};
}

kernels::AdamStep<float> adamw(Arrays at) {
  return {.p = at[0],
          .m = at[1],
          .v = at[2],
          .step = 3,
          .lr = 1e-3,
          .beta1 = 0.9,
          .beta2 = 0.999,
          .eps = 1e-8,
          .weight_decay = 0.01,
          .decoupled = true};
}

kernels::AdamStep<float> adam(Arrays at) {
  kernels::AdamStep<float> args = adamw(at);
  args.v_max = at[3];
  args.decoupled = args.lerp = false;
  args.maximize = true;
  return args;
}

kernels::SgdStep<float> sgd(Arrays at) {
  return {.p = at[0], .buffer = at[1], .lr = 1e-3, .momentum = 0.9};
}

kernels::SgdStep<float> sgd_nesterov(Arrays at) {
  kernels::SgdStep<float> args = sgd(at);
  args.weight_decay = 0.01;
  args.nesterov = true;
  return args;
}

kernels::AdagradStep<float> adagrad(Arrays at) {
  return {.p = at[0],
          .sum = at[1],
          .step = 3,
          .lr = 1e-2,
          .lr_decay = 1e-3,
          .eps = 1e-10,
          .weight_decay = 0.01};
}

kernels::RmspropStep<float> rmsprop(Arrays at) {
  return {.p = at[0], .square_average = at[1], .lr = 1e-2, .alpha = 0.99, .eps = 1e-8};
}

/// Some of the roots are of what would be negative.
kernels::RmspropStep<float> rmsprop_centered(Arrays at) {
  kernels::RmspropStep<float> args = rmsprop(at);
  args.average = at[2];
  args.buffer = at[3];
  args.momentum = 0.9;
  args.weight_decay = 0.01;
  return args;
}

}  // namespace

std::vector<KernelCase> optimizer_cases() {
  using enum Counted;
  const std::vector<Sizes> many = {{1 << 28}};
  const Sizes ragged = {1031};
  return {
      {"adamw", bytes, many, ragged, passes<7>, step<2, adamw>},
      bits_alone("adam", ragged, step<3, adam>),
      {"sgd", bytes, many, ragged, passes<5>, step<1, sgd>},
      bits_alone("sgd_nesterov", ragged, step<1, sgd_nesterov>),
      bits_alone("adagrad", ragged, step<1, adagrad>),
      bits_alone("rmsprop", ragged, step<1, rmsprop>),
      bits_alone("rmsprop_centered", ragged, step<3, rmsprop_centered>),
  };
}

}  // namespace accrue::bench
