// The loop of an RMSprop step: one pass over parameter, gradient and averages.
#include "accrue/kernels/cpu/rmsprop.h"
#include "accrue/kernels/scalar/rmsprop.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <bool kDecay, bool kCentered, bool kMomentum, class T>
void step(const RmspropStep<T>& args, std::int64_t begin, std::int64_t end) {
  constexpr scalar::RmspropParts kParts{kDecay, kCentered, kMomentum};
  T* __restrict const p = args.p;
  T* __restrict const square_average = args.square_average;
  T* __restrict const average = args.average;
  T* __restrict const buffer = args.buffer;
  const T* __restrict const g = args.g;
  const scalar::RmspropNumbers<T> numbers(args);
  for (std::int64_t i = begin; i < end; ++i) {
    T* const mean = kCentered ? average + i : nullptr;
    T* const speed = kMomentum ? buffer + i : nullptr;
    scalar::rmsprop_element(numbers, kParts, p[i], g[i], square_average[i], mean, speed);
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
