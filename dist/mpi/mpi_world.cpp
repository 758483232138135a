#include "accrue/dist/mpi/mpi_world.h"

#include "accrue/dist/mpi/message_group.h"
#include "accrue/dist/mpi/processes.h"
#include "accrue/dist/shared_group.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace accrue::dist {
namespace {

using mpi::call;

std::shared_ptr<ProcessGroup> make_group(MPI_Comm parent, const GroupOptions& options);

/// Where the processes of one host meet. MPI's part lives until MPI ends.
struct Place {
  MPI_Comm comm;
  mpi::Processes processes;
  SharedRegion region;
};

/// Processes of one host, which use MPI to find each other and then meet in shared memory.
class HostGroup final : public SharedGroup, public mpi::World {
 public:
  HostGroup(Place place, int rank, int size, double timeout)
      : SharedGroup(rank, size, timeout, place.region), place_(std::move(place)) {}
  ~HostGroup() override { leave("it dropped its handle of the group"); }
  const char* backend() const override { return "mpi"; }
  void leave_calls(const std::string& reason) noexcept override {
    if (!mpi::is_over()) SharedGroup::leave_calls(reason);
  }

  /// Takes the place of a duplicate that has ended on all ranks, before a new one.
  std::shared_ptr<ProcessGroup> duplicate() override {
    std::string ended;  // here: a letter for each that was made
    for (const Twin& twin : twins_) ended += twin.has_ended(rank()) ? kEnded : 'n';
    const auto told = begin_all_gather_bytes({.kind = CallKind::duplicate}, ended);
    const auto has_ended = [&](std::size_t twin) {
      return std::ranges::all_of(told, [&](const std::string& other) {
        return twin < other.size() && other[twin] == kEnded;
      });
    };
    std::size_t at = 0;
    while (at < twins_.size() && !has_ended(at)) ++at;
    std::shared_ptr<HostGroup> twin;
    if (at < twins_.size()) {
      twin = reopen(twins_[at].place);
    } else {
      twin = std::static_pointer_cast<HostGroup>(make_group(place_.comm, {.timeout = timeout()}));
      twins_.push_back({twin->place_, {}});
    }
    twins_[at].handle = twin;
    return add_twin(twin);
  }
  bool end(double seconds) noexcept override {
    leave_twins();
    leave("its process ended");
    return all_have_left(seconds);
  }

 private:
  struct Twin {
    Place place;
    std::weak_ptr<HostGroup> handle;
    /// A handle expires before it leaves: another thread may be at it.
    bool has_ended(int rank) const {
      return handle.expired() && place.region.slot(rank).has_left.load(std::memory_order_acquire);
    }
  };

  static constexpr char kEnded = 'y';

  std::shared_ptr<HostGroup> reopen(Place& place) const {
    if (rank() == 0) place.region.construct();
    call("MPI_Barrier", [&] { return MPI_Barrier(place.comm); });
    return std::make_shared<HostGroup>(place, rank(), size(), timeout());
  }
  void note_broken() noexcept override { mpi::note_breakage(); }
  bool is_alive(int rank) const noexcept override { return !place_.processes.is_dead(rank); }

  Place place_;
  std::vector<Twin> twins_;
};

/// A window of MPI's. It lives until MPI ends, because a rank that leaves cannot tell whether the
/// others still read.
SharedRegion region_of(MPI_Comm comm, int rank, int size) {
  constexpr std::size_t kAlignment = 64;
  std::size_t bytes = SharedRegion::bytes_for(size) + kAlignment;
  const auto mine = static_cast<MPI_Aint>(rank == 0 ? bytes : 0);
  MPI_Win window = MPI_WIN_NULL;
  void* memory = nullptr;
  call("MPI_Win_allocate_shared",
       [&] { return MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, comm, &memory, &window); });
  MPI_Aint found = 0;
  int unit = 0;
  call("MPI_Win_shared_query",
       [&] { return MPI_Win_shared_query(window, 0, &found, &unit, &memory); });
  memory = std::align(kAlignment, SharedRegion::bytes_for(size), memory, bytes);
  SharedRegion region(std::shared_ptr<void>(memory, [](void*) {}), size);
  if (rank == 0) region.construct();
  call("MPI_Barrier", [&] { return MPI_Barrier(comm); });
  return region;
}

/// Blocks in MPI until all ranks of `parent` have called it.
std::shared_ptr<ProcessGroup> make_group(MPI_Comm parent, const GroupOptions& options) {
  MPI_Comm comm = MPI_COMM_NULL, host = MPI_COMM_NULL;
  int rank = 0, size = 0, host_rank = 0, host_size = 0;
  call("MPI_Comm_dup", [&] { return MPI_Comm_dup(parent, &comm); });
  call("MPI_Comm_set_errhandler", [&] { return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN); });
  call("MPI_Comm_rank", [&] { return MPI_Comm_rank(comm, &rank); });
  call("MPI_Comm_size", [&] { return MPI_Comm_size(comm, &size); });
  call("MPI_Comm_split_type",
       [&] { return MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host); });
  call("MPI_Comm_rank", [&] { return MPI_Comm_rank(host, &host_rank); });
  call("MPI_Comm_size", [&] { return MPI_Comm_size(host, &host_size); });
  mpi::Processes processes(comm, host);
  if (host_size == size && options.shared_memory) {
    Place place{comm, std::move(processes), region_of(host, rank, size)};
    return std::make_shared<HostGroup>(std::move(place), rank, size, options.timeout);
  }
  call("MPI_Comm_free", [&] { return MPI_Comm_free(&host); });
  return std::make_shared<mpi::MessageGroup>(
      comm, rank, size, host_rank, options, std::move(processes), &make_group);
}

}  // namespace

std::shared_ptr<ProcessGroup> mpi_world(int size, const GroupOptions& options) {
  mpi::start();
  int found = 0;
  call("MPI_Comm_size", [&] { return MPI_Comm_size(MPI_COMM_WORLD, &found); });
  ACCRUE_CHECK(size == 0 || size == found,
               ValueError,
               "world",
               "MPI must find the ",
               size,
               " processes of its launcher, got ",
               found,
               "; start with the mpirun of the MPI that this program links, or srun --mpi=pmix");
  const std::shared_ptr<ProcessGroup> world = make_group(MPI_COMM_WORLD, options);
  mpi::end_with(std::dynamic_pointer_cast<mpi::World>(world), options.timeout);
  return world;
}

}  // namespace accrue::dist
