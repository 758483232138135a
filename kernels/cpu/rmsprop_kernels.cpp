// The loop of an RMSprop step: one pass over parameter, gradient and averages.
#include "accrue/kernels/cpu/rmsprop.h"
#include "accrue/kernels/scalar/float_ops.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <bool kDecay, bool kCentered, bool kMomentum, class T>
void step(const RmspropStep<T>& args, std::int64_t begin, std::int64_t end) {
  using scalar::fma;
  T* __restrict const p = args.p;
  T* __restrict const square_average = args.square_average;
  T* __restrict const average = args.average;
  T* __restrict const buffer = args.buffer;
  const T* __restrict const g = args.g;
  const T kept = static_cast<T>(args.alpha), taken = static_cast<T>(1.0 - args.alpha);
  const T decay = static_cast<T>(args.weight_decay), eps = static_cast<T>(args.eps);
  const T momentum = static_cast<T>(args.momentum), rate = static_cast<T>(-args.lr);
  const T sign = args.maximize ? T(-1) : T(1);
  for (std::int64_t i = begin; i < end; ++i) {
    T d = sign * g[i];
    if (kDecay) d = fma(decay, p[i], d);
    T square = fma(taken * d, d, square_average[i] * kept);
    square_average[i] = square;
    if (kCentered) {
      const T mean = fma(taken, d, average[i] * kept);
      average[i] = mean;
      square = fma(-mean, mean, square);
      square = square < T(0) ? T(0) : square;
    }
    const T root = scalar::sqrt(square) + eps;
    if (kMomentum) {
      const T speed = buffer[i] * momentum + d / root;
      buffer[i] = speed;
      p[i] = fma(rate, speed, p[i]);
    } else {
      p[i] = p[i] + rate * d / root;
    }
  }
}

template <bool kDecay, bool kCentered, class T>
void step_with(const RmspropStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.buffer != nullptr) return step<kDecay, kCentered, true>(args, begin, end);
  step<kDecay, kCentered, false>(args, begin, end);
}

template <bool kDecay, class T>
void step_with(const RmspropStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.average != nullptr) return step_with<kDecay, true>(args, begin, end);
  step_with<kDecay, false>(args, begin, end);
}

template <class T>
void step_any(const RmspropStep<T>& args, std::int64_t begin, std::int64_t end) {
  if (args.weight_decay != 0) return step_with<true>(args, begin, end);
  step_with<false>(args, begin, end);
}

}  // namespace

void rmsprop_step(const RmspropStep<float>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}
void rmsprop_step(const RmspropStep<double>& args, std::int64_t begin, std::int64_t end) {
  step_any(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
