#include "accrue/optim/sgd.h"

#include "accrue/core/error.h"
#include "accrue/kernels/sgd.h"
#include "accrue/optim/gradients.h"

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

template <class Field>
auto of_each(const std::vector<SGD::Group>& groups, Field field) {
  std::vector<std::decay_t<decltype(field(groups[0]))>> out;
  out.reserve(groups.size());
  for (const SGD::Group& group : groups) out.push_back(field(group));
  return out;
}

/// The slots that the groups need: none without momentum.
std::vector<std::string> slots_of(const std::vector<SGD::Group>& groups) {
  for (const SGD::Group& group : groups) {
    if (group.options.momentum != 0) return {"momentum"};
  }
  return {};
}

}  // namespace

SGD::SGD(const ParameterList& parameters, const SgdOptions& options)
    : SGD(std::vector<Group>{{parameters, options}}) {}

SGD::SGD(const std::vector<Group>& groups)
    : Optimizer("SGD",
                of_each(groups, [](const Group& group) { return group.parameters; }),
                of_each(groups, [](const Group& group) { return group.options.lr; }),
                slots_of(groups)),
      options_(of_each(groups, [](const Group& group) { return group.options; })) {
  for (const SgdOptions& options : options_) check_options(options);
}

void SGD::apply(std::span<const Gradient> gradients) {
  const auto options_of = [&](const Gradient& gradient) -> const SgdOptions& {
    return options_[static_cast<std::size_t>(group_of(gradient.parameter))];
  };
  std::vector<Tensor> first_buffers(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& [parameter, value] = gradients[i];
    if (options_of(gradients[i]).momentum != 0 && !slot(kMomentum, parameter).defined()) {
      first_buffers[i] = Tensor::empty(value.shape(), value.dtype());
    }
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t parameter = gradients[i].parameter;
    const Tensor& gradient = gradients[i].value;
    const SgdOptions& options = options_of(gradients[i]);
    Tensor value = parameters()[parameter].value();
    Tensor buffer;
    const bool is_first = first_buffers[i].defined();
    if (options.momentum != 0) {
      if (is_first) slot(kMomentum, parameter) = first_buffers[i];
      buffer = slot(kMomentum, parameter);
    }
    visit_floating(value.dtype(), "SGD", [&]<class T>(T) {
      kernels::launch_cpu(
          kernels::SgdStep<T>{.p = value.mutable_data<T>(),
                              .g = gradient.data<T>(),
                              .buffer = buffer.defined() ? buffer.mutable_data<T>() : nullptr,
                              .count = value.numel(),
                              .lr = lr(group_of(parameter)),
                              .momentum = options.momentum,
                              .dampening = options.dampening,
                              .weight_decay = options.weight_decay,
                              .nesterov = options.nesterov,
                              .maximize = options.maximize,
                              .first_step = is_first});
    });
  }
}

}  // namespace accrue::optim
