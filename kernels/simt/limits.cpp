#include "accrue/kernels/simt/limits.h"

#include "accrue/kernels/simt/arena.h"

namespace accrue::simt {
namespace {

void refuse_unless(bool holds, const char* name, const char* error, const char* rule, auto got) {
  if (!holds)
    fail<KernelFault>("[", name, "] ", error, ": ", rule, ", got ", got, "; split the work");
}

}  // namespace

void check_launch(const LaunchShape& shape) {
  constexpr const char* kConfiguration = "cudaErrorInvalidConfiguration";
  const auto [name, grid, block, dynamic_shared] = shape;
  const auto limit = [&](bool holds, const char* rule, Dim3 got) {
    refuse_unless(holds, name, kConfiguration, rule, got);
  };
  limit(grid.x >= 1 && grid.y >= 1 && grid.z >= 1, "a grid has at least one block", grid);
  limit(block.x >= 1 && block.y >= 1 && block.z >= 1, "a block has at least one thread", block);
  limit(grid.x <= 0x7fffffffU, "grid.x is at most 2147483647", grid);
  limit(grid.y <= 65535 && grid.z <= 65535, "grid.y and grid.z are at most 65535", grid);
  limit(block.x <= 1024 && block.y <= 1024 && block.z <= 64 && block.x * block.y * block.z <= 1024,
        "a block has at most 1024 threads, 64 in z",
        block);
  refuse_unless(dynamic_shared <= Arena::kMaxTotal,
                name,
                "cudaErrorInvalidValue",
                "shared memory of a block is at most 232448 bytes",
                dynamic_shared);
}

}  // namespace accrue::simt
