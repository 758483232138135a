// The loop of an SGD step: one pass over parameter, gradient and buffer.
#include "accrue/kernels/cpu/sgd.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

enum class Momentum { none, first, later };

template <Momentum kMomentum, bool kDecay, class T>
void step(const SgdStep<T>& args, std::int64_t begin, std::int64_t end) {
  using scalar::fma;
  T* const p = args.p;
  T* const buffer = args.buffer;
  const T* const g = args.g;
  const T decay = static_cast<T>(args.weight_decay), momentum = static_cast<T>(args.momentum);
  const T kept = static_cast<T>(1.0 - args.dampening), rate = static_cast<T>(-args.lr);
  const T sign = args.maximize ? T(-1) : T(1);
  const bool nesterov = args.nesterov;
  for (std::int64_t i = begin; i < end; ++i) {
    T d = sign * g[i];
    if (kDecay) d = fma(decay, p[i], d);
    if (kMomentum != Momentum::none) {
      const T b = kMomentum == Momentum::first ? d : fma(kept, d, buffer[i] * momentum);
      buffer[i] = b;
      d = nesterov ? fma(momentum, b, d) : b;
    }
    p[i] = fma(rate, d, p[i]);
  }
}

template <Momentum kMomentum, class T>
void step_with(const SgdStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.weight_decay != 0) return step<kMomentum, true>(args, begin, end);
  step<kMomentum, false>(args, begin, end);
}

template <class T>
void step_any(const SgdStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.momentum == 0) return step_with<Momentum::none>(args, begin, end);
  if (args.first_step) return step_with<Momentum::first>(args, begin, end);
  step_with<Momentum::later>(args, begin, end);
}

}  // namespace

void sgd_step(const SgdStep<float>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}
void sgd_step(const SgdStep<double>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
