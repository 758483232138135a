// The loop of an Adam step: one pass over parameter, gradient and averages.
#include "accrue/kernels/cpu/adam.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

enum class Average { scaled, near, far };  ///< how m takes in a gradient: kernels/adam.h

template <Average kAverage, bool kDecay, bool kMax, class T>
void step(const AdamStep<T>& args,
          const AdamScalars<T>& scalars,
          std::int64_t begin,
          std::int64_t end) {
  using scalar::fma;
  const AdamScalars<T> s = scalars;
  T* __restrict const p = args.p;
  T* __restrict const m = args.m;
  T* __restrict const v = args.v;
  T* __restrict const v_max = args.v_max;
  const T* __restrict const g = args.g;
  for (std::int64_t i = begin; i < end; ++i) {
    const T x = p[i] * s.shrink;
    T d = s.sign * g[i];
    if (kDecay) d = fma(s.decay, x, d);
    T mean = m[i];
    if (kAverage == Average::scaled) mean = fma(s.w1, d, mean * s.beta1);
    if (kAverage == Average::near) mean = fma(s.w1, d - mean, mean);
    if (kAverage == Average::far) mean = fma(-(d - mean), s.rest1, d);
    T square = fma(s.w2 * d, d, v[i] * s.beta2);
    m[i] = mean;
    v[i] = square;
    if (kMax) v_max[i] = square = square > v_max[i] ? square : v_max[i];
    p[i] = x + s.rate * mean / (scalar::sqrt(square) / s.root + s.eps);
  }
}

template <Average kAverage, class T>
void step_with(const AdamStep<T>& args,
               const AdamScalars<T>& s,
               std::int64_t begin,
               std::int64_t end) {
  const bool has_max = args.v_max != nullptr;
  if (s.decay != 0) {
    if (has_max) return step<kAverage, true, true>(args, s, begin, end);
    return step<kAverage, true, false>(args, s, begin, end);
  }
  if (has_max) return step<kAverage, false, true>(args, s, begin, end);
  step<kAverage, false, false>(args, s, begin, end);
}

template <class T>
void step_any(const AdamStep<T>& args,
              const AdamScalars<T>& s,
              std::int64_t begin,
              std::int64_t end) {
  if (!args.lerp) return step_with<Average::scaled>(args, s, begin, end);
  if (s.w1 < T(0.5)) return step_with<Average::near>(args, s, begin, end);
  step_with<Average::far>(args, s, begin, end);
}

}  // namespace

void adam_step(const AdamStep<float>& args,
               const AdamScalars<float>& scalars,
               std::int64_t begin,
               std::int64_t end) {
  step_any(args, scalars, begin, end);
}
void adam_step(const AdamStep<double>& args,
               const AdamScalars<double>& scalars,
               std::int64_t begin,
               std::int64_t end) {
  step_any(args, scalars, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
