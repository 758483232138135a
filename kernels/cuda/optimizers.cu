// Optimizer steps on CUDA: a thread for four elements of a parameter.
#include "accrue/kernels/adam_checks.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/quad.cuh"
#include "accrue/kernels/scalar/adagrad.h"
#include "accrue/kernels/scalar/adam.h"
#include "accrue/kernels/scalar/rmsprop.h"
#include "accrue/kernels/scalar/sgd.h"
#include "accrue/kernels/sgd_checks.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

/// A parameter, its gradient and what the optimizer keeps beside it; null where it keeps nothing.
template <int kState>
struct Arrays {
  float* p;
  const float* g;
  float* state[kState];
  std::int64_t count;
};

/// Calls step(p, g, state) for each element.
template <class Step>
ACCRUE_KERNEL(kQuadThreads)
void step_kernel(ACCRUE_PARAMETER Step step, ACCRUE_PARAMETER Arrays<Step::kState> arrays) {
  constexpr int kState = Step::kState;
  const std::int64_t i = quad_begin(), count = arrays.count;
  if (i >= count) return;
  Float4 p = read_quad(arrays.p, i, count), state[kState] = {};
  const Float4 g = read_quad(arrays.g, i, count);
  ACCRUE_UNROLL
  for (int s = 0; s < kState; ++s) {
    const bool reads = arrays.state[s] != nullptr && step.reads_state();
    if (reads) state[s] = read_quad(arrays.state[s], i, count);
  }
  ACCRUE_UNROLL
  for (int c = 0; c < kQuad; ++c) {
    float element[kState];
    ACCRUE_UNROLL
    for (int s = 0; s < kState; ++s) element[s] = state[s].v[c];
    step(p.v[c], g.v[c], element);
    ACCRUE_UNROLL
    for (int s = 0; s < kState; ++s) state[s].v[c] = element[s];
  }
  write_quad(arrays.p, i, count, p);
  ACCRUE_UNROLL
  for (int s = 0; s < kState; ++s) {
    if (arrays.state[s] != nullptr) write_quad(arrays.state[s], i, count, state[s]);
  }
}

template <class Step>
void launch_step(const char* name,
                 const Step& step,
                 const Arrays<Step::kState>& arrays,
                 Stream stream) {
  if (arrays.count == 0) return;
  launch(quad_launch(name, arrays.count, stream), step_kernel<Step>, step, arrays);
}

struct Sgd {
  static constexpr int kState = 1;
  scalar::SgdNumbers<float> numbers;
  scalar::SgdMomentum momentum;
  bool decays;

  ACCRUE_DEVICE bool reads_state() const { return momentum == scalar::SgdMomentum::later; }
  ACCRUE_DEVICE void operator()(float& p, float g, float* state) const {
    scalar::sgd_element(numbers, momentum, decays, p, g, state);
  }
};

struct Adam {
  static constexpr int kState = 3;
  scalar::AdamNumbers<float> numbers;
  scalar::AdamParts parts;

  ACCRUE_DEVICE bool reads_state() const { return true; }
  ACCRUE_DEVICE void operator()(float& p, float g, float* state) const {
    scalar::adam_element(numbers, parts, p, g, state[0], state[1], state + 2);
  }
};

struct Adagrad {
  static constexpr int kState = 1;
  scalar::AdagradNumbers<float> numbers;
  bool decays;

  ACCRUE_DEVICE bool reads_state() const { return true; }
  ACCRUE_DEVICE void operator()(float& p, float g, float* state) const {
    scalar::adagrad_element(numbers, decays, p, g, state[0]);
  }
};

struct Rmsprop {
  static constexpr int kState = 3;
  scalar::RmspropNumbers<float> numbers;
  scalar::RmspropParts parts;

  ACCRUE_DEVICE bool reads_state() const { return true; }
  ACCRUE_DEVICE void operator()(float& p, float g, float* state) const {
    scalar::rmsprop_element(numbers, parts, p, g, state[0], state + 1, state + 2);
  }
};

}  // namespace

void launch_cuda(const SgdStep<float>& args, Stream stream) {
  check_arguments(args);
  const auto momentum = scalar::momentum_of(args.momentum, args.first_step);
  float* const buffer = momentum == scalar::SgdMomentum::none ? nullptr : args.buffer;
  const Sgd step{scalar::SgdNumbers<float>(args), momentum, args.weight_decay != 0};
  launch_step(args.kName, step, {args.p, args.g, {buffer}, args.count}, stream);
}

void launch_cuda(const AdamStep<float>& args, Stream stream) {
  check_arguments(args);
  const scalar::AdamNumbers<float> numbers(args);
  const bool has_max = args.v_max != nullptr;
  const Adam step{numbers, {average_of(args.lerp, numbers), numbers.decay != 0, has_max}};
  launch_step(args.kName, step, {args.p, args.g, {args.m, args.v, args.v_max}, args.count}, stream);
}

void launch_cuda(const AdagradStep<float>& args, Stream stream) {
  const Adagrad step{scalar::AdagradNumbers<float>(args), args.weight_decay != 0};
  launch_step(args.kName, step, {args.p, args.g, {args.sum}, args.count}, stream);
}

void launch_cuda(const RmspropStep<float>& args, Stream stream) {
  const scalar::RmspropParts parts{
      args.weight_decay != 0, args.average != nullptr, args.buffer != nullptr};
  const Rmsprop step{scalar::RmspropNumbers<float>(args), parts};
  launch_step(args.kName,
              step,
              {args.p, args.g, {args.square_average, args.average, args.buffer}, args.count},
              stream);
}

}  // namespace accrue::kernels
