// FaultyGroup: a process group in whose collectives a rank can fail half-way.
#pragma once

#include "accrue/dist/process_group.h"

#include <atomic>
#include <chrono>
#include <utility>

namespace accrue::test {

/// Passes all calls on. Between the first step of a collective and its second it runs what
/// arm() was given, once, after it has passed on some further steps. Duplicates share that.
class FaultyGroup final : public dist::ProcessGroup {
 public:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::atomic<int> countdown = -1;  ///< further steps before the failure; negative: none
    void (*fail)() = nullptr;
    std::atomic<Clock::time_point> last_call = Clock::now();
  };

  explicit FaultyGroup(std::shared_ptr<dist::ProcessGroup> inner,
                       std::shared_ptr<State> state = std::make_shared<State>())
      : ProcessGroup(inner->rank(), inner->size(), inner->timeout()),
        inner_(std::move(inner)),
        state_(std::move(state)) {}

  void arm(int further_steps, void (*fail)()) {
    state_->fail = fail;
    state_->countdown = further_steps;
  }
  /// Seconds since a collective began last.
  double waited() const {
    return std::chrono::duration<double>(Clock::now() - state_->last_call.load()).count();
  }

  int local_rank() const override { return inner_->local_rank(); }
  const char* backend() const override { return inner_->backend(); }
  bool shares_memory() const override { return inner_->shares_memory(); }
  std::int64_t step_bytes() const override { return inner_->step_bytes(); }
  std::shared_ptr<dist::ProcessGroup> duplicate() override {
    return std::make_shared<FaultyGroup>(inner_->duplicate(), state_);
  }
  void leave_calls(const std::string& reason) noexcept override { inner_->leave(reason); }
  void move(const dist::Movement& movement) override {
    pass_step();
    inner_->move(movement);
  }
  std::vector<std::span<const std::byte>> look(std::span<const std::span<const std::byte>> outgoing,
                                               std::span<const std::size_t> sizes) override {
    pass_step();
    return inner_->look(outgoing, sizes);
  }

 private:
  void pass_step() {
    if (state_->countdown >= 0 && state_->countdown-- == 0) state_->fail();
  }
  void compare_and_move(const dist::Call& call, const dist::Movement& movement) override {
    state_->last_call = Clock::now();
    inner_->begin(call, movement);
  }

  std::shared_ptr<dist::ProcessGroup> inner_;
  std::shared_ptr<State> state_;
};

}  // namespace accrue::test
