// The loop of an SGD step: one pass over parameter, gradient and buffer.
#include "accrue/kernels/cpu/sgd.h"
#include "accrue/kernels/scalar/sgd.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

using scalar::SgdMomentum;

template <SgdMomentum kMomentum, bool kDecay, class T>
void step(const SgdStep<T>& args, std::int64_t begin, std::int64_t end) {
  T* const p = args.p;
  T* const buffer = args.buffer;
  const T* const g = args.g;
  const scalar::SgdNumbers<T> numbers(args);
  for (std::int64_t i = begin; i < end; ++i) {
    T* const b = kMomentum == SgdMomentum::none ? nullptr : buffer + i;
    scalar::sgd_element(numbers, kMomentum, kDecay, p[i], g[i], b);
  }
}

template <SgdMomentum kMomentum, class T>
void step_with(const SgdStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.weight_decay != 0) return step<kMomentum, true>(args, begin, end);
  step<kMomentum, false>(args, begin, end);
}

template <class T>
void step_any(const SgdStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.momentum == 0) return step_with<SgdMomentum::none>(args, begin, end);
  if (args.first_step) return step_with<SgdMomentum::first>(args, begin, end);
  step_with<SgdMomentum::later>(args, begin, end);
}

}  // namespace

void sgd_step(const SgdStep<float>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}
void sgd_step(const SgdStep<double>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
