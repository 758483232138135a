// One value per parameter group, for the constructors of optimizers. Private to optim.
#pragma once

#include <type_traits>
#include <vector>

namespace accrue::optim {

/// field(group) of each group, in order.
template <class Group, class Field>
auto of_each(const std::vector<Group>& groups, Field field) {
  std::vector<std::decay_t<decltype(field(groups[0]))>> out;
  out.reserve(groups.size());
  for (const Group& group : groups) out.push_back(field(group));
  return out;
}

}  // namespace accrue::optim
