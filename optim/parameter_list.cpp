#include "accrue/optim/parameter_list.h"

#include "accrue/core/error.h"

#include <unordered_map>
#include <unordered_set>

namespace accrue::optim {

void ParameterList::check_distinct(const char* operation) const {
  std::unordered_map<const Node*, std::size_t> position;
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto [first, is_new] = position.emplace((*this)[i].node().get(), i);
    ACCRUE_CHECK(is_new || !(*this)[i].node(),
                 ValueError,
                 operation,
                 "every parameter must be given once, got parameter ",
                 name(first->second),
                 " again as ",
                 name(i));
    ACCRUE_CHECK(names.insert(name(i)).second,
                 ValueError,
                 operation,
                 "names of parameters must differ, got \"",
                 name(i),
                 "\" twice; put the name of the model before them");
  }
}

}  // namespace accrue::optim
