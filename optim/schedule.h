// Schedules: learning rates as functions of the step.
#pragma once

#include "accrue/optim/optimizer.h"

#include <cstdint>
#include <functional>

namespace accrue::optim {

/// Where a schedule stands, to be saved and loaded.
struct ScheduleState {
  std::int64_t step = 0;
  std::vector<double> base_lrs;  ///< per group
  std::vector<double> last_lrs;
};

/// Sets the learning rates of an optimizer, one step at a time. Borrows the optimizer, which must
/// live longer. The making of a schedule is its step 0 and sets the rates of the first update.
class Schedule {
 public:
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// To be called after each update. Errors: ValueError when a rate is no float >= 0; the schedule
  /// and the optimizer stay then.
  void step();

  /// No further step(): the schedule knows its end and stands there.
  virtual bool has_ended() const { return false; }

  /// Steps made since step 0.
  std::int64_t last_step() const { return state_.step; }
  /// The rates that the schedule set last, one per group.
  const std::vector<double>& last_lrs() const { return state_.last_lrs; }

  const ScheduleState& state() const { return state_; }
  /// Continues where `state` was saved, and sets the optimizer's rates to those of then.
  /// Errors: ValueError for another number of groups, a negative step or an invalid rate.
  void load_state(const ScheduleState& state);

 protected:
  /// Takes the optimizer's rates as base rates; the derived constructor calls start().
  explicit Schedule(Optimizer& optimizer);
  void start();

  /// The rate of `group` at step `t`, from base_lr() or, where torch multiplies the rate of the
  /// step before, from current_lr().
  virtual double lr_at(int group, std::int64_t t) const = 0;
  /// Sets what else follows step `t`.
  virtual void moved_to(std::int64_t) {}
  double base_lr(int group) const { return state_.base_lrs[static_cast<std::size_t>(group)]; }
  double current_lr(int group) const { return optimizer_.lr(group); }
  int num_groups() const { return optimizer_.num_groups(); }
  Optimizer& optimizer() { return optimizer_; }

 private:
  void move_to(std::int64_t t);

  Optimizer& optimizer_;
  ScheduleState state_;
};

/// lr = base * factor(t), in double.
class LambdaLR final : public Schedule {
 public:
  using Factor = std::function<double(std::int64_t t)>;

  /// One factor for all groups. Errors: ValueError for a null factor or an invalid rate at step 0.
  LambdaLR(Optimizer& optimizer, const Factor& factor);
  /// One factor per group. Errors also: ValueError for another number of factors.
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);

 private:
  double lr_at(int group, std::int64_t t) const override;

  std::vector<Factor> factors_;
};

}  // namespace accrue::optim
