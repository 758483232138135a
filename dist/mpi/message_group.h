// MessageGroup: collectives between processes that send each other messages.
#pragma once

#include "accrue/dist/mpi/processes.h"
#include "accrue/dist/mpi/runtime.h"
#include "accrue/dist/mpi/staging.h"
#include "accrue/dist/process_group.h"

#include <atomic>
#include <exception>
#include <map>

namespace accrue::dist::mpi {

/// Every step: nonblocking sends and receives, polled until the deadline, since MPI itself would
/// wait for ever. The first step of a collective exchanges calls with all ranks, so that an absent
/// rank is found by all. Ranks that give up hear of each other first, so that all name the same
/// one.
class MessageGroup final : public ProcessGroup, public World {
 public:
  using Maker = std::shared_ptr<ProcessGroup> (*)(MPI_Comm, const GroupOptions&);

  /// `make` builds duplicates.
  MessageGroup(MPI_Comm comm,
               int rank,
               int size,
               int local_rank,
               const GroupOptions& options,
               Processes processes,
               Maker make);

  const char* backend() const override { return "mpi"; }
  int local_rank() const override { return local_rank_; }
  bool shares_memory() const override { return false; }
  std::int64_t step_bytes() const override { return 1 << 20; }
  std::shared_ptr<ProcessGroup> duplicate() override;
  void move(const Movement& movement) override;
  bool end(double seconds) noexcept override;

 private:
  struct News;
  /// A message under way.
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    int rank = 0;
    bool is_receive = false;
  };

  void compare_and_move(const Call& call, const Movement& movement) override;
  void leave_calls(const std::string& reason) noexcept override;
  void post(const Movement& movement, std::vector<Transfer>& transfers);
  void wait(std::vector<Transfer>& transfers);
  void drop(std::vector<Transfer>& transfers) noexcept;
  static bool is_done(const Transfer& transfer);
  std::string ranks_behind(const std::vector<Transfer>& transfers) const;
  void check_intact();
  void hear();
  int take_news();
  static std::string list_ranks(const std::vector<char>& is_marked);
  void check_left(const std::vector<Transfer>& transfers);
  void check_dead(const std::vector<Transfer>& transfers);
  [[noreturn]] void give_up(std::exception_ptr error);
  [[noreturn]] void call_roll(double seconds, const std::string& behind);
  void tell_all(const News& news);

  MPI_Comm comm_;
  int local_rank_;
  Processes processes_;
  Maker make_;
  Staging staging_;
  Call call_;
  std::exception_ptr broken_;
  std::vector<char> is_silent_;      ///< ranks that told nothing so far
  std::map<int, std::string> left_;  ///< ranks, and why they left
  std::atomic<bool> is_leaving_ = false, has_left_ = false;
  std::string reason_;  ///< why this rank left; written before has_left_
};

}  // namespace accrue::dist::mpi
