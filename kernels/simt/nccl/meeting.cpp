#include "accrue/kernels/simt/nccl/meeting.h"

#include "accrue/core/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace accrue::simt::nccl {
namespace {

/// What a unique id holds.
struct Address {
  char mark[16] = "accrue nccl";
  int process = 0, file = -1;
};

}  // namespace

struct Meeting::Head {
  std::atomic<int> num_ranks, num_seated;
  std::atomic<bool> is_closed;  ///< the file of the id, by one rank of its process
  Seat seats[kMaxRanks];
};

std::size_t Meeting::bytes_for(int num_ranks) {
  return (sizeof(Head) + 63) / 64 * 64 + sizeof(Mailbox) * static_cast<std::size_t>(num_ranks) *
                                             static_cast<std::size_t>(num_ranks);
}

ncclResult_t Meeting::found(ncclUniqueId& id) {
  Address address;
  address.process = getpid();
  address.file = memfd_create("accrue-nccl", MFD_CLOEXEC);
  if (address.file < 0) return ncclSystemError;
  id = {};
  std::memcpy(id.internal, &address, sizeof(address));
  return ncclSuccess;
}

ncclResult_t Meeting::join(const ncclUniqueId& id,
                           int num_ranks,
                           int rank,
                           int device,
                           std::unique_ptr<Meeting>& meeting,
                           std::string& error) {
  Address address;
  std::memcpy(&address, id.internal, sizeof(address));
  if (std::strcmp(address.mark, Address{}.mark) != 0) {
    error = "the unique id was not made by ncclGetUniqueId";
    return ncclInvalidArgument;
  }
  const std::string path = text("/proc/", address.process, "/fd/", address.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const std::size_t bytes = bytes_for(num_ranks);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    error = text("the process that made the unique id cannot be reached: ", std::strerror(errno));
    return ncclSystemError;
  }
  meeting.reset(new Meeting(num_ranks, rank));
  meeting->head_ = static_cast<Head*>(memory);
  meeting->mailboxes_ =
      reinterpret_cast<Mailbox*>(static_cast<std::byte*>(memory) + (sizeof(Head) + 63) / 64 * 64);
  Head& head = *meeting->head_;
  int first = 0;
  head.num_ranks.compare_exchange_strong(first, num_ranks);
  Seat& seat = head.seats[rank];
  int expected = Seat::free;
  if ((first != 0 && first != num_ranks) ||
      !seat.state.compare_exchange_strong(expected, Seat::taken)) {
    error = text("rank ", rank, " of ", num_ranks, " is not free in a communicator of ", first);
    return ncclInvalidArgument;
  }
  seat.process = getpid();
  seat.device = device;
  seat.state = Seat::seated;
  ++head.num_seated;
  if (address.process == getpid()) meeting->file_ = address.file;
  return ncclSuccess;
}

Meeting::~Meeting() {
  if (file_ >= 0 && !head_->is_closed.exchange(true)) close(file_);
  if (head_ != nullptr) munmap(head_, bytes_for(num_ranks_));
}

bool Meeting::is_complete() const { return head_->num_seated == num_ranks_; }

std::string Meeting::duplicate_device() const {
  for (int a = 0; a < num_ranks_; ++a) {
    for (int b = a + 1; b < num_ranks_; ++b) {
      if (head_->seats[a].device == head_->seats[b].device) {
        return text("Duplicate GPU detected : rank ",
                    a,
                    " and rank ",
                    b,
                    " both on CUDA device ",
                    head_->seats[a].device);
      }
    }
  }
  return "";
}

bool Meeting::is_gone(int rank) const {
  const Seat& seat = head_->seats[rank];
  if (rank == rank_ || seat.state == Seat::left) return rank != rank_;
  return seat.state == Seat::seated && seat.process != getpid() && kill(seat.process, 0) != 0 &&
         errno == ESRCH;
}

void Meeting::leave() { head_->seats[rank_].state = Seat::left; }
void Meeting::note_issued() { head_->seats[rank_].has_issued = true; }
bool Meeting::has_issued(int rank) const { return head_->seats[rank].has_issued; }

}  // namespace accrue::simt::nccl
