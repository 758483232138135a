// The loop of an Adam step: one pass over parameter, gradient and averages.
#include "accrue/kernels/cpu/adam.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

using scalar::AdamAverage;
using scalar::AdamNumbers;

template <AdamAverage kAverage, bool kDecay, bool kMax, class T>
void step(const AdamStep<T>& args,
          const AdamNumbers<T>& numbers,
          std::int64_t begin,
          std::int64_t end) {
  constexpr scalar::AdamParts kParts{kAverage, kDecay, kMax};
  const AdamNumbers<T> n = numbers;
  T* __restrict const p = args.p;
  T* __restrict const m = args.m;
  T* __restrict const v = args.v;
  T* __restrict const v_max = args.v_max;
  const T* __restrict const g = args.g;
  for (std::int64_t i = begin; i < end; ++i) {
    T* const max = kMax ? v_max + i : nullptr;
    scalar::adam_element(n, kParts, p[i], g[i], m[i], v[i], max);
  }
}

template <AdamAverage kAverage, class T>
void step_with(const AdamStep<T>& args,
               const AdamNumbers<T>& n,
               std::int64_t begin,
               std::int64_t end) {
  const bool has_max = args.v_max != nullptr;
  if (n.decay != 0) {
    if (has_max) return step<kAverage, true, true>(args, n, begin, end);
    return step<kAverage, true, false>(args, n, begin, end);
  }
  if (has_max) return step<kAverage, false, true>(args, n, begin, end);
  step<kAverage, false, false>(args, n, begin, end);
}

template <class T>
void step_any(const AdamStep<T>& args,
              const AdamNumbers<T>& n,
              std::int64_t begin,
              std::int64_t end) {
  switch (scalar::average_of(args.lerp, n)) {
    case AdamAverage::scaled:
      return step_with<AdamAverage::scaled>(args, n, begin, end);
    case AdamAverage::near:
      return step_with<AdamAverage::near>(args, n, begin, end);
    case AdamAverage::far:
      return step_with<AdamAverage::far>(args, n, begin, end);
  }
}

}  // namespace

void adam_step(const AdamStep<float>& args,
               const AdamNumbers<float>& numbers,
               std::int64_t begin,
               std::int64_t end) {
  step_any(args, numbers, begin, end);
}
void adam_step(const AdamStep<double>& args,
               const AdamNumbers<double>& numbers,
               std::int64_t begin,
               std::int64_t end) {
  step_any(args, numbers, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
