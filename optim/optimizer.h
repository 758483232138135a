// Optimizer: what all optimizers share: parameter groups, learning rates, the step, saved state.
#pragma once

#include "accrue/optim/parameter_list.h"

#include <optional>
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

  /// Whether gradients are averaged over steps with a weight that may change: the momentum, or
  /// beta1 of Adam.
  bool has_momentum() const { return !momenta_.empty(); }
  /// Errors: IndexError; StateError for an optimizer without momentum.
  double momentum(int group = 0) const;
  /// Not saved by state(). Errors also: ValueError unless momentum lies in [0, 1).
  void set_momentum(double momentum, int group = 0);

  /// `lr` (float64, one per group), then `<slot>.<parameter>` for each value kept per parameter,
  /// for example `momentum.fc1.weight`. The slot `step` is an int64 count of steps, others have the
  /// parameter's shape. Not copied: clone what must outlive the next step.
  OptimizerState state() const;
  /// Takes over what state() returned, parameters matched by name. Parameters that are absent have
  /// no state, as before their first step.
  /// Errors: ValueError listing every name that is not known, does not fit or is missing beside
  ///         other slots of its parameter; nothing changes then.
  void load_state(const OptimizerState& state);

 protected:
  /// `momenta`: one per group, or none. `slots`: names of the tensors kept per parameter.
  /// Errors: ValueError for no parameters, a parameter that is no leaf or not dense, one given
  ///         twice, an invalid lr.
  Optimizer(const char* name,
            const std::vector<ParameterList>& groups,
            std::vector<double> lrs,
            std::vector<double> momenta,
            std::vector<std::string> slots);

  /// Updates the parameters of dense, finite gradients. Allocates before it writes.
  virtual void apply(std::span<const Gradient> gradients) = 0;
  /// What `slot` holds before the first step; none where the group does not keep it.
  virtual std::optional<double> initial(std::size_t slot, int group) const = 0;

  int group_of(std::size_t parameter) const { return groups_[parameter]; }
  /// Gives each slot that the gradients' groups keep its initial value, unless it has one. All or
  /// nothing.
  void start_slots(std::span<const Gradient> gradients);
  /// Undefined until started or loaded.
  Tensor& slot(std::size_t slot, std::size_t parameter) { return slots_[slot].values[parameter]; }
  /// Adds 1 to the counter in `slot` and returns it.
  std::int64_t next_step(std::size_t slot, std::size_t parameter);

 private:
  struct Slot {
    std::string name;
    std::vector<Tensor> values;  ///< one per parameter
  };

  void check_group(const char* operation, int group) const;
  void check_momentum(const char* operation) const;

  const char* name_;
  ParameterList parameters_;
  std::vector<int> groups_;  ///< group of each parameter
  std::vector<double> lrs_;
  std::vector<double> momenta_;
  std::vector<Slot> slots_;
};

/// Errors: ValueError unless `value` is >= 0 and at most the largest float.
void check_option(const char* operation, const char* name, double value);
/// Errors: ValueError unless `value`, the weight of the past in an average, lies in [0, 1).
void check_decay(const char* operation, const char* name, double value);

}  // namespace accrue::optim
