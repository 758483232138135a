#include "accrue/dist/same_lines.h"

#include <sstream>

namespace accrue::dist {
namespace {

/// A line of each of two texts.
struct Difference {
  std::string first, second;
};

Difference first_difference(const std::string& first, const std::string& second) {
  std::istringstream a(first), b(second);
  Difference difference;
  do {
    if (!std::getline(a, difference.first)) difference.first = "nothing";
    if (!std::getline(b, difference.second)) difference.second = "nothing";
  } while (difference.first == difference.second);
  return difference;
}

}  // namespace

void check_same_lines(ProcessGroup& group,
                      const std::string& lines,
                      const char* operation,
                      const char* must,
                      const char* advice) {
  const std::vector<std::string> all = group.all_gather_bytes(lines);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const Difference got = first_difference(all[0], all[rank]);
    fail<MismatchError>("[",
                        operation,
                        "] ",
                        must,
                        ", got ",
                        got.first,
                        " on rank 0 and ",
                        got.second,
                        " on rank ",
                        rank,
                        "; ",
                        advice);
  }
}

}  // namespace accrue::dist
