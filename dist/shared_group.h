// SharedGroup: collectives between ranks that share memory, as threads or as processes of one host.
#pragma once

#include "accrue/dist/process_group.h"
#include "accrue/dist/shared_region.h"

#include <atomic>

namespace accrue::dist {

/// Every step: each rank fills its box, all wait for all, each reads what is for it. Boxes
/// alternate, so one wait per step is enough. Nobody sleeps in the kernel for another rank, so an
/// absent rank costs its deadline and no more.
class SharedGroup : public ProcessGroup {
 public:
  SharedGroup(int rank, int size, double timeout, SharedRegion region);

  void move(const Movement& movement) override;
  std::vector<std::span<const std::byte>> look(std::span<const std::span<const std::byte>> outgoing,
                                               std::span<const std::size_t> sizes) override;
  std::int64_t step_bytes() const override;

 protected:
  /// Waits until every rank has left, at most so many seconds.
  bool all_have_left(double seconds) const;
  /// Called when a call fails because the group is broken.
  virtual void note_broken() noexcept {}
  /// False once a rank's process has died without a word.
  virtual bool is_alive(int) const noexcept { return true; }
  void compare_and_move(const Call& call, const Movement& movement) override;
  void leave_calls(const std::string& reason) noexcept override;

 private:
  void run(const Movement& movement, bool compare);
  std::size_t box_bytes(const Movement& movement) const;
  void put(const Movement& movement, std::uint64_t round);
  void take(const Movement& movement, std::uint64_t round);
  void compare_calls();
  void wait_for_all();
  bool has_come(int rank) const {
    return region_.slot(rank).steps.load(std::memory_order_acquire) > step_;
  }
  void check_on(int rank, bool may_be_dead);
  [[noreturn]] void break_for(int rank, const char* reason);
  std::string ranks_behind() const;
  void check_intact();
  [[noreturn]] void break_group(Breakage::Kind kind, const std::string& message);

  SharedRegion region_;
  Call call_;               ///< the one under way
  std::uint64_t step_ = 0;  ///< the one under way
  std::atomic<bool> is_leaving_ = false;
};

}  // namespace accrue::dist
