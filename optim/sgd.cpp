#include "accrue/optim/sgd.h"

#include "accrue/core/error.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/sgd.h"
#include "accrue/optim/gradients.h"
#include "accrue/optim/groups.h"

#include <cmath>

namespace accrue::optim {
namespace {

constexpr std::size_t kMomentum = 0;  // the only slot

void check_options(const SgdOptions& options) {
  check_option("SGD", "momentum", options.momentum);
  check_option("SGD", "weight_decay", options.weight_decay);
  ACCRUE_CHECK(std::isfinite(options.dampening),
               ValueError,
               "SGD",
               "dampening must be finite, got ",
               options.dampening);
  ACCRUE_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
               ValueError,
               "SGD",
               "Nesterov needs momentum > 0 and dampening 0, got momentum ",
               options.momentum,
               " and dampening ",
               options.dampening);
}

}  // namespace

SGD::SGD(const ParameterList& parameters, const SgdOptions& options)
    : SGD(std::vector<Group>{{parameters, options}}) {}

SGD::SGD(const std::vector<Group>& groups)
    : Optimizer("SGD",
                of_each(groups, [](const Group& group) { return group.parameters; }),
                of_each(groups, [](const Group& group) { return group.options.lr; }),
                of_each(groups, [](const Group& group) { return group.options.momentum; }),
                {"momentum"}),
      options_(of_each(groups, [](const Group& group) { return group.options; })) {
  for (const SgdOptions& options : options_) check_options(options);
}

std::optional<double> SGD::initial(std::size_t, int group) const {
  if (momentum(group) == 0) return std::nullopt;
  return 0.0;
}

void SGD::apply(std::span<const Gradient> gradients) {
  std::vector<bool> is_first;
  for (const Gradient& gradient : gradients)
    is_first.push_back(!slot(kMomentum, gradient.parameter).defined());
  start_slots(gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t parameter = gradients[i].parameter;
    const int group = group_of(parameter);
    const SgdOptions& options = options_[static_cast<std::size_t>(group)];
    Tensor value = parameters()[parameter].value();
    Tensor& buffer = slot(kMomentum, parameter);
    visit_floating(value.dtype(), "SGD", [&]<class T>(T) {
      kernels::launch(
          value.device(),
          kernels::SgdStep<T>{.p = value.mutable_data<T>(),
                              .g = gradients[i].value.data<T>(),
                              .buffer = buffer.defined() ? buffer.mutable_data<T>() : nullptr,
                              .count = value.numel(),
                              .lr = lr(group),
                              .momentum = momentum(group),
                              .dampening = options.dampening,
                              .weight_decay = options.weight_decay,
                              .nesterov = options.nesterov,
                              .maximize = options.maximize,
                              .first_step = is_first[i]});
    });
  }
}

}  // namespace accrue::optim
