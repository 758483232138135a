#include "accrue/kernels/simt/nccl/communicator.h"

#include "accrue/core/error.h"
#include "accrue/kernels/simt/devices.h"
#include "accrue/kernels/simt/streams.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace accrue::simt::nccl {
namespace {

std::atomic<int> alive = 0;

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

/// to = the sum of all ranks' parts, slice s from rank s + 1 on.
template <class T>
void add_in_ring(const Operation& operation, const std::vector<std::byte>& parts) {
  const std::size_t size = parts.size() / std::max<std::size_t>(operation.bytes(), 1);
  auto* const to = static_cast<T*>(operation.to);
  const auto part = [&](std::size_t rank) {
    return reinterpret_cast<const T*>(parts.data() + rank % size * operation.bytes());
  };
  for (std::size_t s = 0; s < size; ++s) {
    const std::size_t begin = operation.count * s / size, end = operation.count * (s + 1) / size;
    for (std::size_t i = begin; i < end; ++i) {
      to[i] = part(s + 1)[i];
      for (std::size_t r = 2; r <= size; ++r) to[i] = part(s + r)[i] + to[i];
    }
  }
}

}  // namespace

Group::Group(ncclComm& comm, std::vector<Operation> operations)
    : comm_(comm), operations_(std::move(operations)), transfers_(*comm.meeting_) {
  ++comm_.num_groups_;
}

Group::~Group() { --comm_.num_groups_; }

void Group::start() {
  const int size = comm_.meeting_->num_ranks();
  gathered_.resize(operations_.size());
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& it = operations_[i];
    switch (it.kind) {
      case Operation::send:
        transfers_.send(it.from, it.bytes(), it.peer);
        break;
      case Operation::receive:
        transfers_.receive(it.to, it.bytes(), it.peer);
        break;
      case Operation::all_reduce:
        gathered_[i].resize(it.bytes() * static_cast<std::size_t>(size));
        gather(it, gathered_[i].data());
        break;
    }
  }
}

void Group::gather(const Operation& operation, std::byte* to) {
  const std::size_t bytes = operation.bytes();
  for (int r = 0; r < comm_.meeting_->num_ranks(); ++r, to += bytes) {
    if (r == comm_.meeting_->rank()) {
      if (bytes > 0) std::memcpy(to, operation.from, bytes);
    } else {
      transfers_.send(operation.from, bytes, r);
      transfers_.receive(to, bytes, r);
    }
  }
}

void Group::finish() {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].kind != Operation::all_reduce) continue;
    const bool is_double = operations_[i].type == ncclFloat64;
    (is_double ? add_in_ring<double> : add_in_ring<float>)(operations_[i], gathered_[i]);
  }
}

int Group::find_absent() const {
  const Meeting& meeting = *comm_.meeting_;
  for (const Operation& it : operations_) {
    const bool is_of_all = it.kind == Operation::all_reduce;
    for (int r = is_of_all ? 0 : it.peer; r < (is_of_all ? meeting.num_ranks() : it.peer + 1); ++r)
      if (!meeting.has_issued(r)) return r;
  }
  return -1;
}

bool Group::advance() {
  if (is_done_ || comm_.is_aborted_) return true;
  if (!std::exchange(has_started_, true)) start();
  const int gone = transfers_.find_gone();  // first: what it sent before may still arrive
  std::string error;
  bool has_moved = false;
  while (comm_.state() == ncclSuccess && transfers_.advance(error)) has_moved = true;
  if (!error.empty()) comm_.set(ncclInvalidUsage, error);
  if (gone >= 0 && !has_moved && comm_.state() == ncclSuccess) comm_.set_gone(gone);
  is_done_ = transfers_.are_done();
  if (is_done_) finish();
  return is_done_;
}

}  // namespace accrue::simt::nccl

using accrue::simt::nccl::Group;
using accrue::simt::nccl::Meeting;
using accrue::simt::nccl::Operation;

ncclComm::ncclComm() { ++accrue::simt::nccl::alive; }

ncclComm::~ncclComm() {
  if (starter_.joinable()) starter_.join();
  --accrue::simt::nccl::alive;
}

int ncclComm::num_alive() { return accrue::simt::nccl::alive; }

void ncclComm::set(ncclResult_t state, const std::string& error) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  error_ = error;
}

ncclResult_t ncclComm::start(int num_ranks, const ncclUniqueId& id, int rank, bool blocks) {
  blocks_ = blocks;
  const int device = accrue::simt::current_device();
  if (blocks) {
    initialise(id, num_ranks, rank, device);
    return state();
  }
  is_polled_ = false;
  starter_ = std::thread([=, this] { initialise(id, num_ranks, rank, device); });
  return ncclInProgress;
}

void ncclComm::initialise(ncclUniqueId id, int num_ranks, int rank, int device) {
  std::string error;
  const ncclResult_t result = Meeting::join(id, num_ranks, rank, device, meeting_, error);
  if (result != ncclSuccess) return set(result, error);
  while (!meeting_->is_complete()) {
    if (is_aborted_) return;
    for (int r = 0; r < num_ranks; ++r) {
      if (meeting_->is_gone(r) && !meeting_->is_complete()) return set_gone(r);
    }
    accrue::simt::nccl::nap();
  }
  error = meeting_->duplicate_device();
  set(error.empty() ? ncclSuccess : ncclInvalidUsage, error);
}

void ncclComm::set_gone(int rank) {
  set(ncclRemoteError, accrue::text("rank ", rank, " left or died"));
}

ncclResult_t ncclComm::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

ncclResult_t ncclComm::poll() {
  const std::lock_guard lock(mutex_);
  is_polled_ = true;
  if (issuer_ != std::thread::id() && issuer_ != std::this_thread::get_id()) {
    state_ = ncclInternalError;
    error_ = "another thread polled while a group was open";
  }
  return state_;
}

void ncclComm::set_issuer(std::thread::id issuer) {
  const std::lock_guard lock(mutex_);
  issuer_ = issuer;
}

ncclResult_t ncclComm::check_ready() {
  const std::lock_guard lock(mutex_);
  if (state_ == ncclSuccess && is_polled_) return ncclSuccess;
  if (state_ != ncclSuccess && state_ != ncclInProgress) return state_;
  error_ = "the last call is in progress: poll ncclCommGetAsyncError first";
  return ncclInvalidUsage;
}

ncclResult_t ncclComm::run(std::vector<Operation> operations, cudaStream_t stream) {
  auto group = std::make_shared<Group>(*this, std::move(operations));  // keeps abort() waiting
  const auto queue = [stream, group] {
    accrue::simt::enqueue_steps(reinterpret_cast<accrue::simt::Stream*>(stream),
                                [group] { return group->advance(); });
  };
  meeting_->note_issued();
  const bool is_connected = blocks_ || stream == nullptr || group->find_absent() < 0;
  {
    const std::lock_guard lock(mutex_);
    is_polled_ = blocks_;
    if (!is_connected) state_ = ncclInProgress;
  }
  if (is_connected) {
    queue();
    return blocks_ ? ncclSuccess : ncclInProgress;
  }
  if (starter_.joinable()) starter_.join();
  starter_ = std::thread([this, group, queue] {
    connect(*group);
    if (is_aborted_ || state() != ncclInProgress) return;
    queue();
    set(ncclSuccess);
  });
  return ncclInProgress;
}

/// Returns when all ranks of a group have come, or one of them is gone.
void ncclComm::connect(const Group& group) {
  for (int absent = 0; !is_aborted_ && (absent = group.find_absent()) >= 0;) {
    if (meeting_->is_gone(absent) && group.find_absent() == absent) return set_gone(absent);
    accrue::simt::nccl::nap();
  }
}

void ncclComm::abort() {
  is_aborted_ = true;
  if (starter_.joinable()) starter_.join();
  while (num_groups_ > 0) accrue::simt::nccl::nap();
  leave();
}

void ncclComm::leave() {
  if (meeting_) meeting_->leave();
}

std::string ncclComm::last_error() {
  const std::lock_guard lock(mutex_);
  return error_;
}
