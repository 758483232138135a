#include "accrue/optim/adamw.h"

#include "accrue/optim/groups.h"

namespace accrue::optim {
namespace {

Adam::Group adam_group(const AdamW::Group& group) {
  const AdamWOptions& o = group.options;
  return {group.parameters,
          {.lr = o.lr,
           .beta1 = o.beta1,
           .beta2 = o.beta2,
           .eps = o.eps,
           .weight_decay = o.weight_decay,
           .amsgrad = o.amsgrad,
           .maximize = o.maximize,
           .lerp = o.lerp}};
}

}  // namespace

AdamW::AdamW(const ParameterList& parameters, const AdamWOptions& options)
    : AdamW(std::vector<Group>{{parameters, options}}) {}

AdamW::AdamW(const std::vector<Group>& groups)
    : Adam("AdamW", of_each(groups, adam_group), Decay::decoupled) {}

}  // namespace accrue::optim
