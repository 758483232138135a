#include "accrue/nn/dropout.h"

#include "accrue/autograd/ops/dropout.h"
#include "accrue/core/error.h"

namespace accrue::nn {

Dropout::Dropout(double p) : p_(p) {
  ACCRUE_CHECK(p >= 0 && p <= 1, ValueError, "Dropout", "p must lie in [0, 1], got ", p);
}

Variable Dropout::forward(const Variable& x) { return dropout(x, p_, is_training(), path()); }

std::string Dropout::options_str() const { return text("p=", p_, ", inplace=False"); }

}  // namespace accrue::nn
