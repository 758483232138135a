// The loop of an Adagrad step: one pass over parameter, gradient and sum.
#include "accrue/kernels/cpu/adagrad.h"
#include "accrue/kernels/scalar/adagrad.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <bool kDecay, class T>
void step(const AdagradStep<T>& args, std::int64_t begin, std::int64_t end) {
  T* __restrict const p = args.p;
  T* __restrict const sum = args.sum;
  const T* __restrict const g = args.g;
  const scalar::AdagradNumbers<T> numbers(args);
  for (std::int64_t i = begin; i < end; ++i) {
    scalar::adagrad_element(numbers, kDecay, p[i], g[i], sum[i]);
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
