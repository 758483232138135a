#include "accrue/dist/nccl/communicator.h"

#include <algorithm>
#include <utility>

namespace accrue::dist::nccl {
namespace {

constexpr std::chrono::milliseconds kGlance{5};
// Between two polls at first and at most: most groups are issued within some tens of microseconds.
constexpr std::chrono::microseconds kShortNap{5}, kLongNap{1000};
constexpr double kGrace = 0.2;  // seconds in which a group that is being issued may end
constexpr double kFlush = 1;    // in which work may end that all ranks have issued

std::string words_of(ncclResult_t result, const char* call, ncclComm_t comm) {
  const char* const more = ncclGetLastError(comm);
  const bool has_more = more != nullptr && *more != '\0';
  return text(
      "[", call, "] ", ncclGetErrorString(result), has_more ? ": " : "", has_more ? more : "");
}

template <class Done>
bool wait_until(const Done& done, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (auto nap = kShortNap; !done(); nap = std::min(2 * nap, kLongNap)) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (waited.count() > seconds) return false;
    std::this_thread::sleep_for(nap);
  }
  return true;
}

/// Ends a communicator that no other call uses any more.
void close(ncclComm_t comm, bool flushes) noexcept {
  ncclResult_t state = flushes ? ncclCommFinalize(comm) : ncclInProgress;
  if (flushes && state == ncclInProgress) {
    wait_until(
        [&] {
          return ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress;
        },
        kFlush);
  }
  const bool has_ended = flushes && state == ncclSuccess;
  has_ended ? ncclCommDestroy(comm) : ncclCommAbort(comm);
}

}  // namespace

void check(ncclResult_t result, const char* call, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string words = words_of(result, call, comm);
  if (result == ncclRemoteError) {
    fail<DistributedError>(words, "; see why that rank ended, then start all ranks again");
  }
  fail<DeviceError>(words,
                    "; every rank needs an NVIDIA GPU of its own and its driver, else keep tensors "
                    "on the CPU; NCCL_DEBUG=INFO says more");
}

Communicator::Communicator(const ncclUniqueId& id, const ProcessGroup& group, Progress& progress)
    : timeout_(group.timeout()), progress_(progress) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result = ncclCommInitRankConfig(&comm_, group.size(), id, group.rank(), &config);
  if (result == ncclInProgress) result = await(&group);
  if (result != ncclSuccess) {
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    try {
      check_start(result, comm, group.has_left());
    } catch (...) {
      if (comm != nullptr) ncclCommAbort(comm);
      throw;
    }
  }
  watcher_ = std::thread([this] { watch(); });
}

void Communicator::check_start(ncclResult_t result, ncclComm_t comm, bool has_left) const {
  constexpr const char* kCall = "ncclCommInitRankConfig";
  if (result != ncclInProgress) return check(result, kCall, comm);
  ACCRUE_CHECK(!has_left,
               DistributedError,
               kCall,
               "a rank must stay in its group, got this one gone while it connected");
  fail<TimeoutError>("[",
                     kCall,
                     "] all ranks must come within ",
                     timeout_.load(),
                     " s; see what the other ranks do, or raise the timeout");
}

Communicator::~Communicator() {
  abort("its communicator was destroyed");
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

/// What NCCL says once it no longer says that it is in progress, at the deadline, or when this rank
/// leaves `group`.
ncclResult_t Communicator::await(const ProcessGroup* group) {
  ncclResult_t state = ncclInProgress;
  wait_until(
      [&] {
        const std::lock_guard lock(mutex_);
        return comm_ == nullptr || ncclCommGetAsyncError(comm_, &state) != ncclSuccess ||
               state != ncclInProgress || (group != nullptr && group->has_left());
      },
      timeout_);
  return state;
}

void Communicator::check_intact() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

ncclComm_t Communicator::begin(const char* name) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  is_issuing_ = is_active_ = true;
  name_ = name;
  began_ = Clock::now();
  changed_.notify_all();
  return comm_;
}

void Communicator::end(ncclResult_t result) {
  if (result == ncclInProgress) result = await();
  if (result == ncclSuccess) progress_.note_issued();  // before the watcher asks whether it is done
  is_issuing_ = false;
  std::exception_ptr fault;
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    if (result == ncclSuccess) return;
    fault = error_of(result);
    if (!fault) fault = late();  // what was not issued would seem done
  }
  break_off(fault, false);
  std::rethrow_exception(fault);
}

void Communicator::watch() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || (is_active_ && !error_); });
    if (is_stopping_) return;
    if (!is_issuing_ && progress_.is_done()) {
      is_active_ = false;
      continue;
    }
    if (std::exception_ptr fault = find_fault(Clock::now())) {
      lock.unlock();
      break_off(std::move(fault), false);
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kGlance);
  }
}

/// What is wrong with the work under way, or null. Under the mutex.
std::exception_ptr Communicator::find_fault(Clock::time_point now) const {
  // The end of a group links a job to the communicator before it starts it, and to ask completes
  // the job: meanwhile only the thread that issues may ask.
  ncclResult_t state = ncclSuccess;
  if (!is_issuing_) ncclCommGetAsyncError(comm_, &state);
  std::exception_ptr fault = error_of(state);
  const std::chrono::duration<double> waited = now - began_;
  return fault || waited.count() < timeout_ ? fault : late();
}

/// What a state of the communicator means; null while nothing is wrong. Under the mutex.
std::exception_ptr Communicator::error_of(ncclResult_t state) const {
  try {
    check(state, name_, comm_);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::exception_ptr Communicator::late() const {
  return std::make_exception_ptr(TimeoutError(
      text("[",
           name_,
           "] all ranks must come within ",
           timeout_.load(),
           " s, got some that did not; see what the other ranks do, or raise the timeout")));
}

void Communicator::abort(const std::string& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
  }
  const bool is_idle =
      wait_until([&] { return !is_issuing_.load() && progress_.is_done(); }, kFlush);
  break_off(std::make_exception_ptr(DistributedError(
                text("[nccl] a rank must stay in its group, got this one gone: ", reason))),
            is_idle);
}

/// NCCL's own abort frees the communicator, so nobody may see it any more. `flushes`: what others
/// still read of this rank arrives first.
void Communicator::break_off(std::exception_ptr error, bool flushes) noexcept {
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    comm = std::exchange(comm_, nullptr);
  }
  if (comm == nullptr) return;
  if (!flushes) progress_.note_lost(error_);  // before what waits for the work goes on
  // A group that hangs while it is issued ends by the abort; others end before.
  wait_until([&] { return !is_issuing_.load(); }, kGrace);
  close(comm, flushes);
}

}  // namespace accrue::dist::nccl
