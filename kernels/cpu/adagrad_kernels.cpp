// The loop of an Adagrad step: one pass over parameter, gradient and sum.
#include "accrue/kernels/cpu/adagrad.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <bool kDecay, class T>
void step(const AdagradStep<T>& args, std::int64_t begin, std::int64_t end) {
  using scalar::fma;
  T* __restrict const p = args.p;
  T* __restrict const sum = args.sum;
  const T* __restrict const g = args.g;
  const double past = static_cast<double>(args.step - 1);
  const T rate = static_cast<T>(-(args.lr / (1.0 + past * args.lr_decay)));
  const T decay = static_cast<T>(args.weight_decay), eps = static_cast<T>(args.eps);
  const T sign = args.maximize ? T(-1) : T(1);
  for (std::int64_t i = begin; i < end; ++i) {
    T d = sign * g[i];
    if (kDecay) d = fma(decay, p[i], d);
    const T squares = fma(d, d, sum[i]);
    sum[i] = squares;
    p[i] = p[i] + rate * d / (scalar::sqrt(squares) + eps);
  }
}

template <class T>
void step_any(const AdagradStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.weight_decay != 0) return step<true>(args, begin, end);
  step<false>(args, begin, end);
}

}  // namespace

void adagrad_step(const AdagradStep<float>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}
void adagrad_step(const AdagradStep<double>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
