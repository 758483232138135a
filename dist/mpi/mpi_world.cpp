#include "accrue/dist/mpi/mpi_world.h"

#include "accrue/dist/mpi/message_group.h"
#include "accrue/dist/mpi/processes.h"
#include "accrue/dist/shared_group.h"

#include <memory>

namespace accrue::dist {
namespace {

using mpi::call;

std::shared_ptr<ProcessGroup> make_group(MPI_Comm parent, const GroupOptions& options);

/// Processes of one host, which use MPI to find each other and then meet in shared memory.
class HostGroup final : public SharedGroup, public mpi::World {
 public:
  HostGroup(MPI_Comm comm,
            int rank,
            int size,
            const GroupOptions& options,
            mpi::Processes processes,
            SharedRegion region)
      : SharedGroup(rank, size, options.timeout, std::move(region)),
        comm_(comm),
        processes_(std::move(processes)) {}
  ~HostGroup() override { leave("it dropped its handle of the group"); }
  const char* backend() const override { return "mpi"; }
  void leave(const std::string& reason) noexcept override {
    if (!mpi::is_over()) SharedGroup::leave(reason);
  }

  std::shared_ptr<ProcessGroup> duplicate() override {
    begin_empty(CallKind::duplicate);
    return add_twin(make_group(comm_, {.timeout = timeout()}));
  }
  bool end(double seconds) noexcept override {
    leave_twins();
    leave("its process ended");
    return all_have_left(seconds);
  }

 private:
  void note_broken() noexcept override { mpi::note_breakage(); }
  bool is_alive(int rank) const noexcept override { return !processes_.is_dead(rank); }

  MPI_Comm comm_;
  mpi::Processes processes_;
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
    return std::make_shared<HostGroup>(
        comm, rank, size, options, std::move(processes), region_of(host, rank, size));
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
