#include "accrue/optim/adam.h"

#include "accrue/kernels/adam.h"
#include "accrue/kernels/launch.h"
#include "accrue/optim/gradients.h"
#include "accrue/optim/groups.h"

namespace accrue::optim {
namespace {

constexpr std::size_t kStep = 0, kAverage = 1, kSquares = 2, kMaxSquares = 3;

void check_options(const char* name, const AdamOptions& options) {
  check_decay(name, "beta1", options.beta1);
  check_decay(name, "beta2", options.beta2);
  check_option(name, "eps", options.eps);
  check_option(name, "weight_decay", options.weight_decay);
}

}  // namespace

Adam::Adam(const ParameterList& parameters, const AdamOptions& options)
    : Adam(std::vector<Group>{{parameters, options}}) {}

Adam::Adam(const std::vector<Group>& groups) : Adam("Adam", groups, Decay::coupled) {}

Adam::Adam(const char* name, const std::vector<Group>& groups, Decay decay)
    : Optimizer(name,
                of_each(groups, [](const Group& group) { return group.parameters; }),
                of_each(groups, [](const Group& group) { return group.options.lr; }),
                of_each(groups, [](const Group& group) { return group.options.beta1; }),
                {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
      options_(of_each(groups, [](const Group& group) { return group.options; })),
      decay_(decay) {
  for (const AdamOptions& options : options_) check_options(name, options);
}

std::optional<double> Adam::initial(std::size_t slot, int group) const {
  if (slot == kMaxSquares && !options_[static_cast<std::size_t>(group)].amsgrad)
    return std::nullopt;
  return 0.0;
}

void Adam::apply(std::span<const Gradient> gradients) {
  start_slots(gradients);
  for (const Gradient& entry : gradients) {
    const std::size_t parameter = entry.parameter;
    const int group = group_of(parameter);
    const AdamOptions& options = options_[static_cast<std::size_t>(group)];
    Tensor value = parameters()[parameter].value();
    visit_floating(value.dtype(), "Adam", [&]<class T>(T) {
      const auto data = [&](std::size_t s) -> T* {
        return initial(s, group) ? slot(s, parameter).template mutable_data<T>() : nullptr;
      };
      kernels::launch(value.device(),
                      kernels::AdamStep<T>{.p = value.mutable_data<T>(),
                                           .g = entry.value.data<T>(),
                                           .m = data(kAverage),
                                           .v = data(kSquares),
                                           .v_max = data(kMaxSquares),
                                           .count = value.numel(),
                                           .step = next_step(kStep, parameter),
                                           .lr = lr(group),
                                           .beta1 = momentum(group),
                                           .beta2 = options.beta2,
                                           .eps = options.eps,
                                           .weight_decay = options.weight_decay,
                                           .decoupled = decay_ == Decay::decoupled,
                                           .lerp = options.lerp,
                                           .maximize = options.maximize});
    });
  }
}

}  // namespace accrue::optim
