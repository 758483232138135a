#include "accrue/dist/mpi/message_group.h"

#include "accrue/dist/waiting.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace accrue::dist::mpi {
namespace {

constexpr int kDataTag = 1, kNewsTag = 2;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // MPI counts in int
/// Seconds in which all ranks that are there hear of each other when one gives up.
constexpr double kRollCall = 0.15;

}  // namespace

/// What a rank tells all others. Small enough that MPI sends it without the receiver.
struct MessageGroup::News {
  /// It left, and why; it is there, and gives the group up; why all do: a rank is absent, or dead.
  enum Kind : int { left, here, absent, dead };

  explicit News(Kind of = left, const std::string& text = "") : kind(of) {
    message[text.copy(message, sizeof message - 1)] = '\0';
  }
  Kind kind;
  char message[1020] = {};
};

MessageGroup::MessageGroup(MPI_Comm comm,
                           int rank,
                           int size,
                           int local_rank,
                           const GroupOptions& options,
                           Processes processes,
                           Maker make)
    : ProcessGroup(rank, size, options.timeout),
      comm_(comm),
      local_rank_(local_rank),
      processes_(std::move(processes)),
      make_(make),
      is_silent_(static_cast<std::size_t>(size), 1) {
  is_silent_[static_cast<std::size_t>(rank)] = 0;
}

std::shared_ptr<ProcessGroup> MessageGroup::duplicate() {
  begin_empty(CallKind::duplicate);
  return add_twin(make_(comm_, {.timeout = timeout(), .shared_memory = false}));
}

bool MessageGroup::end(double seconds) noexcept {
  leave_twins();
  try {
    set_timeout(seconds);
    begin_empty(CallKind::end);
    return true;
  } catch (const std::exception&) {
    // The launcher kills a job from which a process goes without MPI_Finalize. Others learn now
    // that this one ends, and have something to say first.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return false;
  }
}

void MessageGroup::compare_and_move(const Call& call, const Movement& movement) {
  call_ = call;
  std::vector<Call> calls(static_cast<std::size_t>(size()));
  const std::span<const std::byte> mine = std::as_bytes(std::span(&call, 1));
  std::vector<std::span<std::byte>> incoming;
  for (Call& other : calls) incoming.push_back(std::as_writable_bytes(std::span(&other, 1)));
  move({{&mine, 1}, incoming});
  try {
    check_same(calls);
  } catch (const DistributedError&) {  // known to all: each compared the same calls
    give_up(std::current_exception());
  }
  move(movement);
}

void MessageGroup::move(const Movement& movement) {
  check_intact();
  std::vector<Transfer> transfers;
  try {
    post(staging_.open(movement), transfers);
    wait(transfers);
  } catch (...) {
    drop(transfers);
    if (!broken_) {  // memory is short, or MPI failed: the others wait in this step
      leave_calls("it failed within a collective");
      give_up(std::current_exception());
    }
    throw;
  }
  const auto me = static_cast<std::size_t>(rank());
  const std::span<std::byte> to = movement.incoming[me];
  const auto from = movement.outgoing[movement.outgoing.size() == 1 ? 0 : me];
  if (!to.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), to.size());
  staging_.deliver(movement, me);
}

void MessageGroup::post(const Movement& movement, std::vector<Transfer>& transfers) {
  const auto start = [&](int other, bool is_receive, auto bytes, const auto& begin) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kMostBytes))) {
      const int count = static_cast<int>(std::min(bytes.size(), kMostBytes));
      Transfer& transfer = transfers.emplace_back(Transfer{MPI_REQUEST_NULL, other, is_receive});
      call("MPI_Isend or MPI_Irecv", [&] { return begin(bytes.data(), count, &transfer.request); });
    }
  };
  // Neighbours first, so that not all ranks send to the same one at once.
  for (int i = 1; i < size(); ++i) {
    const int from = (rank() + size() - i) % size(), to = (rank() + i) % size();
    start(from,
          true,
          movement.incoming[static_cast<std::size_t>(from)],
          [&](auto* data, int n, auto* r) {
            return MPI_Irecv(data, n, MPI_BYTE, from, kDataTag, comm_, r);
          });
    const std::size_t piece = movement.outgoing.size() == 1 ? 0 : static_cast<std::size_t>(to);
    start(to, false, movement.outgoing[piece], [&](const auto* data, int n, auto* r) {
      return MPI_Isend(data, n, MPI_BYTE, to, kDataTag, comm_, r);
    });
  }
}

void MessageGroup::wait(std::vector<Transfer>& transfers) {
  std::vector<MPI_Request> requests;
  for (const Transfer& transfer : transfers) requests.push_back(transfer.request);
  Waiting waiting(timeout());
  for (int done = 0;;) {
    call("MPI_Testall", [&] {
      return MPI_Testall(
          static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    });
    if (done) return;
    hear();
    check_left(transfers);
    if (waiting.is_long()) check_dead(transfers);
    if (!waiting.pause()) call_roll(kRollCall, ranks_behind(transfers));
  }
}

/// Lets go of messages. A send, and a receive that has met its message, cannot be cancelled.
void MessageGroup::drop(std::vector<Transfer>& transfers) noexcept {
  const std::lock_guard guard(lock());
  for (Transfer& transfer : transfers) {
    if (transfer.request == MPI_REQUEST_NULL) continue;
    int done = 0;
    if (transfer.is_receive) MPI_Cancel(&transfer.request);
    if (MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) continue;
    MPI_Request_free(&transfer.request);
    staging_.abandon();
  }
}

bool MessageGroup::is_done(const Transfer& transfer) {
  int done = 0;
  call("MPI_Request_get_status",
       [&] { return MPI_Request_get_status(transfer.request, &done, MPI_STATUS_IGNORE); });
  return done != 0;
}

std::string MessageGroup::ranks_behind(const std::vector<Transfer>& transfers) const {
  std::vector<char> is_behind(static_cast<std::size_t>(size()));
  for (const Transfer& transfer : transfers) {
    if (!is_done(transfer)) is_behind[static_cast<std::size_t>(transfer.rank)] = 1;
  }
  return list_ranks(is_behind);
}

/// Numbers of the ranks that are marked.
std::string MessageGroup::list_ranks(const std::vector<char>& is_marked) {
  std::string ranks;
  for (std::size_t r = 0; r < is_marked.size(); ++r) {
    if (is_marked[r]) ranks += text(ranks.empty() ? "" : ", ", r);
  }
  return ranks;
}

void MessageGroup::check_intact() {
  if (!broken_) hear();
  if (broken_) std::rethrow_exception(broken_);
}

/// Throws when another rank gives up, or notes that it left.
void MessageGroup::hear() {
  const int caller = take_news();
  if (caller >= 0) call_roll(2 * kRollCall, text(caller));  // whose verdict comes before
}

/// Takes what one rank tells, which is returned if it gives up, else -1. Throws a verdict.
int MessageGroup::take_news() {
  int has_news = 0;
  MPI_Status status;
  call("MPI_Iprobe",
       [&] { return MPI_Iprobe(MPI_ANY_SOURCE, kNewsTag, comm_, &has_news, &status); });
  if (!has_news) return -1;
  News news;
  call("MPI_Recv", [&] {
    return MPI_Recv(
        &news, sizeof news, MPI_BYTE, status.MPI_SOURCE, kNewsTag, comm_, MPI_STATUS_IGNORE);
  });
  if (news.kind == News::absent) give_up(std::make_exception_ptr(TimeoutError(news.message)));
  if (news.kind == News::dead) give_up(std::make_exception_ptr(DistributedError(news.message)));
  if (news.kind == News::left) left_.emplace(status.MPI_SOURCE, news.message);
  is_silent_[static_cast<std::size_t>(status.MPI_SOURCE)] = 0;
  return news.kind == News::here ? status.MPI_SOURCE : -1;
}

/// Finds out which ranks are absent, together with those that are not, tells all and throws. A rank
/// that this one waits for may itself wait for another; `behind` is named when none is absent.
void MessageGroup::call_roll(double seconds, const std::string& behind) {
  tell_all(News(News::here));
  for (Waiting waiting(seconds); waiting.pause();) take_news();
  const std::string absent = list_ranks(is_silent_);
  const std::string message = late(call_, timeout(), absent.empty() ? behind : absent);
  tell_all(News(News::absent, message));
  give_up(std::make_exception_ptr(TimeoutError(message)));
}

void MessageGroup::leave_calls(const std::string& reason) noexcept {
  if (is_leaving_.exchange(true) || is_over()) return;
  reason_ = reason;
  has_left_.store(true, std::memory_order_release);
  try {
    tell_all(News(News::left, reason));
  } catch (const Error&) {  // the others find out at their deadline
  }
}

/// Ends a wait for a rank that left, or if another thread of this rank did.
void MessageGroup::check_left(const std::vector<Transfer>& transfers) {
  const auto give_up_for = [&](int rank, const std::string& reason) {
    give_up(std::make_exception_ptr(DistributedError(gone(call_, rank, reason))));
  };
  if (has_left_.load(std::memory_order_acquire)) give_up_for(rank(), reason_);
  for (const auto& [rank, reason] : left_) {
    // What it sent before it left has arrived before the news.
    if (std::any_of(transfers.begin(), transfers.end(), [&, r = rank](const Transfer& transfer) {
          return transfer.rank == r && !is_done(transfer);
        })) {
      give_up_for(rank, reason);
    }
  }
}

/// Ranks of other hosts cannot see that a process died.
void MessageGroup::check_dead(const std::vector<Transfer>& transfers) {
  for (const Transfer& transfer : transfers) {
    // What it sent before it died still counts.
    if (is_done(transfer) || !processes_.is_dead(transfer.rank) || is_done(transfer)) continue;
    const std::string message = gone(call_, transfer.rank, "its process died");
    tell_all(News(News::dead, message));
    give_up(std::make_exception_ptr(DistributedError(message)));
  }
}

void MessageGroup::give_up(std::exception_ptr error) {
  note_breakage();
  broken_ = std::move(error);
  std::rethrow_exception(broken_);
}

/// Does not wait for any.
void MessageGroup::tell_all(const News& told) {
  // Never freed: MPI may send it as long as the process lives.
  const auto* const news = new News(told);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    call("MPI_Isend",
         [&] { return MPI_Isend(news, sizeof *news, MPI_BYTE, r, kNewsTag, comm_, &request); });
  }
}

}  // namespace accrue::dist::mpi
