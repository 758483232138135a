#include "accrue/kernels/simt/nccl/communicator.h"

#include "accrue/core/error.h"
#include "accrue/kernels/simt/nccl/device.h"

#include <chrono>
#include <cstring>
#include <utility>

using accrue::simt::nccl::Meeting;
using accrue::simt::nccl::Operation;
using accrue::simt::nccl::Transfers;

namespace {

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

/// to = the sum of `parts`, slice s from rank s + 1 on.
template <class T>
void add_in_ring(const Operation& operation, const std::vector<std::vector<std::byte>>& parts) {
  const std::size_t size = parts.size();
  auto* const to = static_cast<T*>(operation.to);
  const auto part = [&](std::size_t rank) {
    return reinterpret_cast<const T*>(parts[rank % size].data());
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

ncclComm::~ncclComm() {
  if (starter_.joinable()) starter_.join();
}

void ncclComm::set(ncclResult_t state, const std::string& error) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  error_ = error;
}

ncclResult_t ncclComm::start(int num_ranks, const ncclUniqueId& id, int rank, bool blocks) {
  blocks_ = blocks;
  const int device = accrue::simt::nccl::current_device();
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
    nap();
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
  return state_;
}

ncclResult_t ncclComm::check_ready() {
  const std::lock_guard lock(mutex_);
  if (state_ == ncclSuccess && is_polled_) return ncclSuccess;
  if (state_ != ncclSuccess && state_ != ncclInProgress) return state_;
  error_ = "the last call is in progress: poll ncclCommGetAsyncError first";
  return ncclInvalidUsage;
}

ncclResult_t ncclComm::run(const std::vector<Operation>& operations) {
  ++num_running_;
  move(operations);
  {
    const std::lock_guard lock(mutex_);
    is_polled_ = blocks_;
  }
  const ncclResult_t result = blocks_ ? ncclSuccess : ncclInProgress;
  --num_running_;  // now abort() may free this
  return result;
}

void ncclComm::move(const std::vector<Operation>& operations) {
  Transfers transfers(*meeting_);
  const int me = meeting_->rank(), size = meeting_->num_ranks();
  std::vector<std::vector<std::vector<std::byte>>> parts(operations.size());
  const auto send_to_others = [&](const Operation& it) {
    for (int r = 0; r < size; ++r) {
      if (r != me) transfers.send(it.from, it.bytes(), r);
    }
  };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& it = operations[i];
    const bool is_root = it.peer == me;
    if (it.kind == Operation::send) transfers.send(it.from, it.bytes(), it.peer);
    if (it.kind == Operation::receive) transfers.receive(it.to, it.bytes(), it.peer);
    if (it.kind == Operation::broadcast && !is_root) transfers.receive(it.to, it.bytes(), it.peer);
    if (it.kind == Operation::broadcast && is_root) {
      if (it.bytes() > 0) std::memmove(it.to, it.from, it.bytes());
      send_to_others(it);
    }
    if (it.kind != Operation::all_gather && it.kind != Operation::all_reduce) continue;
    send_to_others(it);
    const bool adds = it.kind == Operation::all_reduce;
    if (adds) parts[i].assign(static_cast<std::size_t>(size), std::vector<std::byte>(it.bytes()));
    for (int r = 0; r < size; ++r) {
      const auto rank = static_cast<std::size_t>(r);
      std::byte* const to =
          adds ? parts[i][rank].data() : static_cast<std::byte*>(it.to) + rank * it.bytes();
      if (r != me) transfers.receive(to, it.bytes(), r);
      if (r == me && it.bytes() > 0) std::memmove(to, it.from, it.bytes());
    }
  }
  wait_for(transfers);
  for (std::size_t i = 0; i < operations.size() && transfers.are_done(); ++i) {
    if (operations[i].kind != Operation::all_reduce) continue;
    const bool is_double = operations[i].type == ncclFloat64;
    (is_double ? add_in_ring<double> : add_in_ring<float>)(operations[i], parts[i]);
  }
}

/// As a kernel of NCCL does: until all is moved, or ncclCommAbort().
void ncclComm::wait_for(Transfers& transfers) {
  std::string error;
  while (!transfers.are_done() && !is_aborted_) {
    const int gone = transfers.find_gone();  // first: what it sent before may still arrive
    if (state() == ncclSuccess && transfers.advance(error)) continue;
    if (!error.empty()) set(ncclInvalidUsage, std::exchange(error, ""));
    if (gone >= 0 && state() == ncclSuccess) set_gone(gone);
    nap();
  }
}

void ncclComm::abort() {
  is_aborted_ = true;
  if (starter_.joinable()) starter_.join();
  while (num_running_ > 0) nap();
  leave();
}

void ncclComm::leave() {
  if (meeting_) meeting_->leave();
}

std::string ncclComm::last_error() {
  const std::lock_guard lock(mutex_);
  return error_;
}
