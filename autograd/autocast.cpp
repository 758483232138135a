#include "accrue/autograd/autocast.h"

#include "accrue/autograd/grad_mode.h"
#include "accrue/autograd/ops/unary.h"

namespace accrue {
namespace {

thread_local std::optional<DType> current;

bool is_cast(const Variable& x) { return x.defined() && x.dtype() == DType::float32; }

}  // namespace

Autocast::Autocast(DType dtype, bool enabled) : previous_(current) {
  ACCRUE_CHECK(dtype == DType::bfloat16 || dtype == DType::float16,
               ValueError,
               "autocast",
               "dtype must be bfloat16 or float16, got ",
               dtype,
               "; float32 needs no scope");
  current = enabled ? std::optional(dtype) : std::nullopt;
}

Autocast::~Autocast() { current = previous_; }

std::optional<DType> autocast_dtype() { return current; }

Variable autocast_operand(const Variable& x, DType dtype) {
  return is_cast(x) ? round_to(x, dtype) : x;
}

Variable autocast_weight(const Variable& w, DType dtype) {
  if (!is_cast(w)) return w;
  const NoGrad no_grad;
  return Variable(round_to(w, dtype).value(), w.node());
}

}  // namespace accrue
