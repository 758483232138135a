#include "accrue/optim/adagrad.h"

#include "accrue/kernels/adagrad.h"
#include "accrue/kernels/launch.h"
#include "accrue/optim/gradients.h"
#include "accrue/optim/groups.h"

namespace accrue::optim {
namespace {

constexpr std::size_t kStep = 0, kSum = 1;

void check_options(const AdagradOptions& options) {
  check_option("Adagrad", "lr_decay", options.lr_decay);
  check_option("Adagrad", "weight_decay", options.weight_decay);
  check_option("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
  check_option("Adagrad", "eps", options.eps);
}

}  // namespace

Adagrad::Adagrad(const ParameterList& parameters, const AdagradOptions& options)
    : Adagrad(std::vector<Group>{{parameters, options}}) {}

Adagrad::Adagrad(const std::vector<Group>& groups)
    : Optimizer("Adagrad",
                of_each(groups, [](const Group& group) { return group.parameters; }),
                of_each(groups, [](const Group& group) { return group.options.lr; }),
                {},
                {"step", "sum"}),
      options_(of_each(groups, [](const Group& group) { return group.options; })) {
  for (const AdagradOptions& options : options_) check_options(options);
}

std::optional<double> Adagrad::initial(std::size_t, int group) const {
  return options_[static_cast<std::size_t>(group)].initial_accumulator_value;
}

void Adagrad::apply(std::span<const Gradient> gradients) {
  start_slots(gradients);
  for (const Gradient& entry : gradients) {
    const std::size_t parameter = entry.parameter;
    const int group = group_of(parameter);
    const AdagradOptions& options = options_[static_cast<std::size_t>(group)];
    Tensor value = parameters()[parameter].value();
    visit_floating(value.dtype(), "Adagrad", [&]<class T>(T) {
      kernels::launch(
          value.device(),
          kernels::AdagradStep<T>{.p = value.mutable_data<T>(),
                                  .g = entry.value.data<T>(),
                                  .sum = slot(kSum, parameter).template mutable_data<T>(),
                                  .count = value.numel(),
                                  .step = next_step(kStep, parameter),
                                  .lr = lr(group),
                                  .lr_decay = options.lr_decay,
                                  .eps = options.eps,
                                  .weight_decay = options.weight_decay,
                                  .maximize = options.maximize});
    });
  }
}

}  // namespace accrue::optim
