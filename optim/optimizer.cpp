#include "accrue/optim/optimizer.h"

#include "accrue/autograd/leaf.h"
#include "accrue/core/error.h"
#include "accrue/optim/gradients.h"

#include <limits>
#include <unordered_map>

namespace accrue::optim {
namespace {

void check_parameter(const char* operation, const std::string& name, const Variable& parameter) {
  ACCRUE_CHECK(
      parameter.node() && parameter.is_leaf(),
      ValueError,
      operation,
      "parameters must be leaves, got parameter ",
      name,
      parameter.node() ? text(", the result of ", parameter.node()->name()) : " without a gradient",
      "; use Variable::leaf(value)");
  ACCRUE_CHECK(parameter.value().is_contiguous(),
               ValueError,
               operation,
               "parameters must be dense and row-major, got parameter ",
               name,
               " ",
               parameter.shape(),
               " with strides ",
               parameter.value().strides(),
               "; use contiguous()");
}

/// Takes the entries of a state by name and collects what does not fit.
class StateReader {
 public:
  explicit StateReader(const OptimizerState& state) {
    for (const auto& [name, tensor] : state) given_[name] = &tensor;
  }

  bool has(const std::string& name) const { return given_.count(name) > 0; }

  /// A copy of the entry `name`; undefined when there is none or it does not fit.
  Tensor take(const std::string& name, const Shape& shape, DType dtype) {
    const auto entry = given_.find(name);
    if (entry == given_.end()) return {};
    const Tensor tensor = *entry->second;
    given_.erase(entry);
    if (tensor.defined() && tensor.shape() == shape && tensor.dtype() == dtype)
      return tensor.clone();
    faults += text("; ", name, " must be ", shape, " ", dtype, ", got ");
    faults += tensor.defined() ? text(tensor.shape(), " ", tensor.dtype()) : "an undefined tensor";
    return {};
  }

  /// A count of steps; the host reads it, wherever the state was kept.
  Tensor take_count(const std::string& name) {
    const Tensor count = take(name, {}, DType::int64);
    if (!count.defined()) return count;
    if (count.item<std::int64_t>() < 0)
      faults += text("; ", name, " must be >= 0, got ", count.item<std::int64_t>());
    return count.to(Device::cpu());
  }

  /// Faults for what nobody took, in the order of `state`.
  void finish(const OptimizerState& state) {
    for (const auto& [name, tensor] : state) {
      if (given_.erase(name) > 0) faults += "; " + name + " is not known";
    }
  }

  std::string faults;

 private:
  std::unordered_map<std::string, const Tensor*> given_;
};

/// A slot of this name counts the steps of its parameter.
bool is_counter(const std::string& slot) { return slot == "step"; }

}  // namespace

void check_option(const char* operation, const char* name, double value) {
  ACCRUE_CHECK(value >= 0 && value <= std::numeric_limits<float>::max(),
               ValueError,
               operation,
               name,
               " must be >= 0 and finite in float32, got ",
               value);
}

void check_decay(const char* operation, const char* name, double value) {
  ACCRUE_CHECK(
      value >= 0 && value < 1, ValueError, operation, name, " must lie in [0, 1), got ", value);
}

Optimizer::Optimizer(const char* name,
                     const std::vector<ParameterList>& groups,
                     std::vector<double> lrs,
                     std::vector<double> momenta,
                     std::vector<std::string> slots)
    : name_(name), lrs_(std::move(lrs)), momenta_(std::move(momenta)) {
  for (const ParameterList& group : groups) {
    parameters_.append(group);
    groups_.resize(parameters_.size(), static_cast<int>(&group - groups.data()));
  }
  ACCRUE_CHECK(parameters_.size() > 0,
               ValueError,
               name,
               "at least one parameter is needed, got none; pass model.parameters()");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    check_parameter(name, parameters_.name(i), parameters_[i]);
  }
  parameters_.check_distinct(name);
  for (const double lr : lrs_) check_option(name, "lr", lr);
  for (std::string& slot : slots) {
    slots_.push_back({std::move(slot), std::vector<Tensor>(parameters_.size())});
  }
}

void Optimizer::step() {
  std::vector<Gradient> gradients = gradients_of(parameters_);
  check_finite(parameters_, gradients, "step");
  for (Gradient& gradient : gradients) gradient.value = gradient.value.contiguous();
  apply(gradients);
}

void Optimizer::zero_grad() {
  for (const auto& [name, parameter] : parameters_) parameter.node()->as_leaf()->zero_grad();
}

void Optimizer::check_group(const char* operation, int group) const {
  ACCRUE_CHECK(group >= 0 && group < num_groups(),
               IndexError,
               operation,
               "group must lie in [0, ",
               num_groups(),
               "), got ",
               group);
}

double Optimizer::lr(int group) const {
  check_group("lr", group);
  return lrs_[static_cast<std::size_t>(group)];
}

void Optimizer::set_lr(double lr, int group) {
  check_group("set_lr", group);
  check_option("set_lr", "lr", lr);
  lrs_[static_cast<std::size_t>(group)] = lr;
}

void Optimizer::check_momentum(const char* operation) const {
  ACCRUE_CHECK(
      has_momentum(), StateError, operation, "the optimizer must have a momentum, got ", name_);
}

double Optimizer::momentum(int group) const {
  check_group("momentum", group);
  check_momentum("momentum");
  return momenta_[static_cast<std::size_t>(group)];
}

void Optimizer::set_momentum(double momentum, int group) {
  check_group("set_momentum", group);
  check_momentum("set_momentum");
  check_decay("set_momentum", "momentum", momentum);
  momenta_[static_cast<std::size_t>(group)] = momentum;
}

void Optimizer::start_slots(std::span<const Gradient> gradients) {
  std::vector<std::pair<Tensor*, Tensor>> started;
  for (const auto& [parameter, gradient] : gradients) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::optional<double> value = initial(i, group_of(parameter));
      Tensor& place = slots_[i].values[parameter];
      const bool follows = place.defined() && !is_counter(slots_[i].name);
      if (follows) place.move_to(gradient.device());  // where the model was moved to
      if (!value || place.defined()) continue;
      started.emplace_back(
          &place,
          is_counter(slots_[i].name)
              ? Tensor::zeros({}, DType::int64)
              : Tensor::full(gradient.shape(), *value, gradient.dtype(), gradient.device()));
    }
  }
  for (auto& [place, value] : started) *place = std::move(value);
}

std::int64_t Optimizer::next_step(std::size_t slot, std::size_t parameter) {
  return ++*slots_[slot].values[parameter].mutable_data<std::int64_t>();
}

OptimizerState Optimizer::state() const {
  OptimizerState state = {{"lr", Tensor::from(lrs_, {num_groups()})}};
  for (const Slot& slot : slots_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!slot.values[i].defined()) continue;
      state.emplace_back(slot.name + '.' + parameters_.name(i), slot.values[i]);
    }
  }
  return state;
}

void Optimizer::load_state(const OptimizerState& state) {
  StateReader reader(state);
  const Tensor lrs = reader.take("lr", {num_groups()}, DType::float64);
  std::vector<Slot> slots = slots_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::string missing;
    bool has_any = false;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      Tensor& value = slots[s].values[i] = Tensor();
      if (!initial(s, group_of(i))) continue;
      const std::string name = slots[s].name + '.' + parameters_.name(i);
      if (!reader.has(name)) {
        missing += "; " + name + " is missing";
        continue;
      }
      has_any = true;
      if (is_counter(slots[s].name)) {
        value = reader.take_count(name);
      } else {
        value = reader.take(name, parameters_[i].shape(), parameters_[i].dtype());
        if (value.defined()) value = value.to(parameters_[i].device());
      }
    }
    if (has_any) reader.faults += missing;
  }
  if (!lrs.defined() && reader.faults.empty()) reader.faults = "; lr is missing";
  reader.finish(state);
  ACCRUE_CHECK(reader.faults.empty(),
               ValueError,
               "load_state",
               "the state must fit the optimizer",
               reader.faults,
               "; nothing was loaded");
  std::vector<double> values = lrs.to_vector<double>();
  for (const double lr : values) check_option("load_state", "lr", lr);
  lrs_ = std::move(values);
  slots_ = std::move(slots);
}

}  // namespace accrue::optim
