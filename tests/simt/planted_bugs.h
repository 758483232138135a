// Kernels with a bug planted in each, and their clean twins: what the simulator must find.
#pragma once

#include <string>
#include <vector>

namespace accrue::test {

/// A kernel whose bug shows in some builds. `found_*` is a part of the report there, or null where
/// the build cannot see the bug.
struct PlantedBug {
  const char* name;
  std::string (*examine)(bool has_bug);  ///< what test::examine found
  const char *found_plain, *found_asan, *found_race;
};

std::vector<PlantedBug> bugs_of_order();   ///< barriers, warps, races
std::vector<PlantedBug> bugs_of_memory();  ///< edges, overflow, values, limits

}  // namespace accrue::test
