// The device that interprets: what has run on it, and mistakes to plant.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace accrue::ptx {

/// What ran since the program started, but for what ran with planted changes.
struct Report {
  std::set<std::string> opcodes;         ///< of kernels that ran, with their types
  std::set<std::string> left_out;        ///< kernels, by their short names
  std::size_t num_run = 0, entries = 0;  ///< kernels that ran, and all that the PTX has
  std::int64_t launches = 0;
  std::int64_t instructions = 0;  ///< per lane
  double seconds = 0;
  std::int64_t statements = 0, reached = 0;  ///< of kernels that ran
};
Report report();

/// Changes the text of kernels before they are read, while it lives.
class PlantedChange {
 public:
  explicit PlantedChange(std::function<std::string(const std::string& entry)> change);
  ~PlantedChange();
  PlantedChange(const PlantedChange&) = delete;
  PlantedChange& operator=(const PlantedChange&) = delete;

 private:
  Report report_;
};

}  // namespace accrue::ptx
