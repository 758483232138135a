#include "accrue/optim/rmsprop.h"

#include "accrue/kernels/launch.h"
#include "accrue/kernels/rmsprop.h"
#include "accrue/optim/gradients.h"
#include "accrue/optim/groups.h"

namespace accrue::optim {
namespace {

constexpr std::size_t kSquareAverage = 0, kAverage = 1, kBuffer = 2;

void check_options(const RmspropOptions& options) {
  check_decay("RMSprop", "alpha", options.alpha);
  check_option("RMSprop", "eps", options.eps);
  check_option("RMSprop", "weight_decay", options.weight_decay);
  check_option("RMSprop", "momentum", options.momentum);
}

}  // namespace

RMSprop::RMSprop(const ParameterList& parameters, const RmspropOptions& options)
    : RMSprop(std::vector<Group>{{parameters, options}}) {}

RMSprop::RMSprop(const std::vector<Group>& groups)
    : Optimizer("RMSprop",
                of_each(groups, [](const Group& group) { return group.parameters; }),
                of_each(groups, [](const Group& group) { return group.options.lr; }),
                of_each(groups, [](const Group& group) { return group.options.momentum; }),
                {"square_avg", "grad_avg", "momentum_buffer"}),
      options_(of_each(groups, [](const Group& group) { return group.options; })) {
  for (const RmspropOptions& options : options_) check_options(options);
}

std::optional<double> RMSprop::initial(std::size_t slot, int group) const {
  if (slot == kAverage && !options_[static_cast<std::size_t>(group)].centered) return std::nullopt;
  if (slot == kBuffer && momentum(group) == 0) return std::nullopt;
  return 0.0;
}

void RMSprop::apply(std::span<const Gradient> gradients) {
  start_slots(gradients);
  for (const Gradient& entry : gradients) {
    const std::size_t parameter = entry.parameter;
    const int group = group_of(parameter);
    const RmspropOptions& options = options_[static_cast<std::size_t>(group)];
    Tensor value = parameters()[parameter].value();
    visit_floating(value.dtype(), "RMSprop", [&]<class T>(T) {
      const auto data = [&](std::size_t s) -> T* {
        return initial(s, group) ? slot(s, parameter).template mutable_data<T>() : nullptr;
      };
      kernels::launch(value.device(),
                      kernels::RmspropStep<T>{.p = value.mutable_data<T>(),
                                              .g = entry.value.data<T>(),
                                              .square_average = data(kSquareAverage),
                                              .average = data(kAverage),
                                              .buffer = data(kBuffer),
                                              .count = value.numel(),
                                              .lr = lr(group),
                                              .alpha = options.alpha,
                                              .eps = options.eps,
                                              .weight_decay = options.weight_decay,
                                              .momentum = momentum(group),
                                              .maximize = options.maximize});
    });
  }
}

}  // namespace accrue::optim
