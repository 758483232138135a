#include "accrue/dist/threads.h"

#include "accrue/dist/caught_text.h"
#include "accrue/dist/shared_group.h"
#include "accrue/dist/thread_world.h"

#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace accrue::dist {
namespace {

/// A region and those of its duplicates, made by the first rank that asks and kept until the last.
class Hub {
 public:
  explicit Hub(int size) : region_(SharedRegion::on_heap(size)), size_(size) {}
  const SharedRegion& region() const { return region_; }

  std::shared_ptr<Hub> duplicate(std::size_t index) {
    const std::lock_guard lock(mutex_);
    auto& [hub, num_asked] = duplicates_[index];
    if (!hub) hub = std::make_shared<Hub>(size_);
    const std::shared_ptr<Hub> result = hub;
    if (++num_asked == size_) duplicates_.erase(index);
    return result;
  }

 private:
  SharedRegion region_;
  int size_;
  std::mutex mutex_;
  /// Those that some ranks have not asked for, and how many have.
  std::map<std::size_t, std::pair<std::shared_ptr<Hub>, int>> duplicates_;
};

class ThreadsGroup final : public SharedGroup {
 public:
  ThreadsGroup(int rank, int size, double timeout, std::shared_ptr<Hub> hub)
      : SharedGroup(rank, size, timeout, hub->region()), hub_(std::move(hub)) {}
  ~ThreadsGroup() override {
    leave(std::uncaught_exceptions() > 0 ? "it threw an exception"
                                         : "it dropped its handle of the group");
  }
  const char* backend() const override { return "threads"; }

  std::shared_ptr<ProcessGroup> duplicate() override {
    begin_empty(CallKind::duplicate);
    const auto twin = std::make_shared<ThreadsGroup>(
        rank(), size(), timeout(), hub_->duplicate(num_duplicates_++));
    std::erase_if(twins_, [](const auto& other) { return other.expired(); });
    twins_.push_back(twin);
    return twin;
  }
  bool may_share_devices() const override { return true; }
  /// Also for the duplicates.
  void leave_all(const std::string& reason, bool in_peace = false) {
    leave(reason, in_peace);
    for (const auto& other : twins_) {
      if (const auto twin = other.lock()) twin->leave_all(reason, in_peace);
    }
  }

 private:
  std::shared_ptr<Hub> hub_;
  std::size_t num_duplicates_ = 0;
  std::vector<std::weak_ptr<ThreadsGroup>> twins_;  ///< duplicates that are alive
};

/// The first exception of any rank.
class Failure {
 public:
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(error);
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

void run_rank(const std::shared_ptr<ThreadsGroup>& group, RankBody body, Failure& failure) {
  thread_world() = group;
  try {
    body(*group);
  } catch (...) {
    failure.keep(std::current_exception());
    return group->leave_all("it threw " + caught_text());
  }
  group->leave_all("it returned", true);
}

}  // namespace

void run_rank_threads(int size, RankBody body, const GroupOptions& options) {
  ACCRUE_CHECK(size >= 1,
               ValueError,
               "run_ranks",
               "the number of ranks must be >= 1, got ",
               size,
               "; pass how many threads to start");
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::shared_ptr<ThreadsGroup>> groups;
  for (int r = 0; r < size; ++r) {
    groups.push_back(std::make_shared<ThreadsGroup>(r, size, options.timeout, hub));
  }
  Failure failure;
  std::vector<std::thread> threads;
  try {
    for (const auto& group : groups) {
      threads.emplace_back([&] { run_rank(group, body, failure); });
    }
  } catch (...) {  // no more threads: those that run must not wait for the others
    failure.keep(std::current_exception());
    for (std::size_t r = threads.size(); r < groups.size(); ++r) {
      groups[r]->leave_all("its thread did not start");
    }
  }
  for (std::thread& thread : threads) thread.join();
  failure.rethrow();
}

}  // namespace accrue::dist
