// Optimizer: what all optimizers share: parameter groups, learning rates, the step, saved state.
#pragma once

#include "accrue/optim/parameter_list.h"

#include <span>

namespace accrue::optim {

struct Gradient;

/// Tensors of an optimizer by name, in a fixed order.
using OptimizerState = std::vector<std::pair<std::string, Tensor>>;

/// Updates parameters by their gradients. Shares the parameters. Threads: one at a time.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Moves every parameter that requires grad and has a gradient; others, with their state, stay.
  /// Errors: StateError while a window is open, or for a gradient that is NaN or infinite, naming
  ///         it: no parameter and no state changes then.
  void step();
  void zero_grad();

  /// Of all groups, in order.
  const ParameterList& parameters() const { return parameters_; }
  int num_groups() const { return static_cast<int>(lrs_.size()); }
  /// Errors: IndexError.
  double lr(int group = 0) const;
  /// Errors: IndexError; ValueError unless lr is a float >= 0.
  void set_lr(double lr, int group = 0);

  /// `lr` (float64, one per group), then `<slot>.<parameter>` for each value kept per parameter,
  /// for example `momentum.fc1.weight`. Not copied: clone what must outlive the next step.
  OptimizerState state() const;
  /// Takes over what state() returned, parameters matched by name. Parameters that are absent have
  /// no state, as before their first step.
  /// Errors: ValueError listing every name that is not known or does not fit; nothing changes then.
  void load_state(const OptimizerState& state);

 protected:
  /// `slots`: names of the tensors kept per parameter.
  /// Errors: ValueError for no parameters, a parameter that is no leaf or not dense, one given
  ///         twice, an invalid lr.
  Optimizer(const char* name,
            const std::vector<ParameterList>& groups,
            std::vector<double> lrs,
            std::vector<std::string> slots);

  /// Updates the parameters of dense, finite gradients. Allocates before it writes.
  virtual void apply(std::span<const Gradient> gradients) = 0;

  int group_of(std::size_t parameter) const { return groups_[parameter]; }
  /// Undefined until first assigned.
  Tensor& slot(std::size_t slot, std::size_t parameter) { return slots_[slot].values[parameter]; }

 private:
  struct Slot {
    std::string name;
    std::vector<Tensor> values;  ///< one per parameter
  };

  void check_group(const char* operation, int group) const;

  ParameterList parameters_;
  std::vector<int> groups_;  ///< group of each parameter
  std::vector<double> lrs_;
  std::vector<Slot> slots_;
};

/// Errors: ValueError unless `value` is >= 0 and at most the largest float.
void check_option(const char* operation, const char* name, double value);

}  // namespace accrue::optim
