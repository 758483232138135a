#include "accrue/dist/mpi/runtime.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace accrue::dist::mpi {
namespace {

std::atomic<bool> is_group_broken = false, is_ended = false;
std::atomic<pid_t> process = 0;  ///< that MPI runs in, not a child that it forked
/// A rank that lost another ends after it, so that the cause is known first.
constexpr std::chrono::milliseconds kAfterCause(300);

/// MPI from the first use until static objects are destroyed.
class Runtime {
 public:
  Runtime() {
    process = getpid();
    int is_running = 0, provided = MPI_THREAD_SINGLE;
    call("MPI_Initialized", [&] { return MPI_Initialized(&is_running); });
    if (is_running) {
      call("MPI_Query_thread", [&] { return MPI_Query_thread(&provided); });
    } else {
      call("MPI_Init_thread",
           [&] { return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided); });
      is_ours_ = true;
    }
    ACCRUE_CHECK(provided >= MPI_THREAD_SERIALIZED,
                 StateError,
                 "world",
                 "MPI must run at MPI_THREAD_SERIALIZED or above, got level ",
                 provided,
                 "; start it by MPI_Init_thread, or leave its start to this library");
  }
  ~Runtime() {
    int is_finalized = 0;
    if (is_over() || MPI_Finalized(&is_finalized) != MPI_SUCCESS || is_finalized) return;
    const bool has_lost = is_group_broken;  // before this rank ends, which breaks groups in use
    const bool all_end = !world_ || world_->end(has_lost ? 1 : seconds_);
    is_ended = true;
    if (is_ours_ && all_end) MPI_Finalize();
    if (has_lost) std::this_thread::sleep_for(kAfterCause);
  }
  void end_with(std::shared_ptr<World> world, double seconds) {
    world_ = std::move(world);
    seconds_ = seconds;
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

 private:
  bool is_ours_ = false;
  std::shared_ptr<World> world_;
  double seconds_ = 0;
};

Runtime& runtime() {
  static Runtime instance;
  return instance;
}

}  // namespace

std::shared_ptr<ProcessGroup> World::add_twin(const std::shared_ptr<ProcessGroup>& twin) {
  std::erase_if(twins_, [](const auto& other) { return other.expired(); });
  twins_.push_back(twin);
  return twin;
}

void World::leave_twins() noexcept {
  for (const auto& twin : twins_) {
    if (const auto group = twin.lock()) group->leave("its process ended");
  }
}

std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}

void start() { runtime(); }

void end_with(std::shared_ptr<World> world, double seconds) {
  runtime().end_with(std::move(world), seconds);
}

void note_breakage() noexcept { is_group_broken = true; }

bool is_over() noexcept { return is_ended || process != getpid(); }

std::string message_of(int code) {
  char message[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) return text("error ", code);
  return message;
}

}  // namespace accrue::dist::mpi
