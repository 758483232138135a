#include "accrue/dist/world.h"

#include "accrue/dist/launcher.h"
#include "accrue/dist/mpi/mpi_world.h"
#include "accrue/dist/thread_world.h"

#include <mutex>

namespace accrue::dist {
namespace {

struct World {
  std::mutex mutex;
  std::shared_ptr<ProcessGroup> group;

  void make(const GroupOptions& options) {
    const Launch launch = read_launch();
    group =
        launch.by_mpi && launch.size != 1 ? mpi_world(launch.size, options) : self_group(options);
  }
};

World& process_world() {
  static World world;
  return world;
}

}  // namespace

std::shared_ptr<ProcessGroup>& thread_world() {
  static thread_local std::shared_ptr<ProcessGroup> group;
  return group;
}

std::shared_ptr<ProcessGroup> init(const GroupOptions& options) {
  World& world = process_world();
  const std::lock_guard lock(world.mutex);
  ACCRUE_CHECK(!world.group && !thread_world(),
               StateError,
               "init",
               "must come before the first use of world(), got a world of ",
               (world.group ? world.group : thread_world())->size(),
               "; call it first in main");
  world.make(options);
  return world.group;
}

std::shared_ptr<ProcessGroup> world() {
  if (thread_world()) return thread_world();
  World& world = process_world();
  const std::lock_guard lock(world.mutex);
  if (!world.group) world.make({});
  return world.group;
}

}  // namespace accrue::dist
