#include "accrue/nn/linear.h"

#include "accrue/autograd/ops/linear.h"
#include "accrue/core/error.h"

namespace accrue::nn {

Linear::Linear(std::int64_t in, std::int64_t out, bool bias, Generator& generator) {
  ACCRUE_CHECK(in >= 0 && out >= 0,
               ValueError,
               "Linear",
               "sizes must be >= 0, got in ",
               in,
               " and out ",
               out);
  make_parameters({out, in}, bias, generator);
}

Linear::Linear(const Variable& weight, const Variable& bias) {
  adopt_parameters("Linear", "[out, in]", 2, weight, bias);
}

Variable Linear::forward(const Variable& x) { return linear(x, weight(), bias()); }

std::string Linear::options_str() const {
  return text("in_features=",
              in_features(),
              ", out_features=",
              out_features(),
              ", bias=",
              bias().defined() ? "True" : "False");
}

}  // namespace accrue::nn
