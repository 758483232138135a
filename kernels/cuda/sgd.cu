// The SGD step on CUDA: a thread for four elements.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/quad.cuh"
#include "accrue/kernels/scalar/sgd.h"
#include "accrue/kernels/sgd_checks.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

struct Step {
  float* p;
  const float* g;
  float* buffer;
  std::int64_t count;
  scalar::SgdMomentum momentum;
  bool decays;
};

ACCRUE_KERNEL(kQuadThreads)
void sgd_kernel(ACCRUE_PARAMETER Step step, ACCRUE_PARAMETER scalar::SgdNumbers<float> numbers) {
  const std::int64_t i = quad_begin();
  if (i >= step.count) return;
  Float4 p = read_quad(step.p, i, step.count), buffer{};
  const Float4 g = read_quad(step.g, i, step.count);
  const bool has_buffer = step.momentum != scalar::SgdMomentum::none;
  if (step.momentum == scalar::SgdMomentum::later) buffer = read_quad(step.buffer, i, step.count);
  ACCRUE_UNROLL
  for (int c = 0; c < kQuad; ++c) {
    scalar::sgd_element(numbers, step.momentum, step.decays, p.v[c], g.v[c], &buffer.v[c]);
  }
  write_quad(step.p, i, step.count, p);
  if (has_buffer) write_quad(step.buffer, i, step.count, buffer);
}

}  // namespace

void launch_cuda(const SgdStep<float>& args, Stream stream) {
  check_arguments(args);
  if (args.count == 0) return;
  const Step step{args.p,
                  args.g,
                  args.buffer,
                  args.count,
                  scalar::momentum_of(args.momentum, args.first_step),
                  args.weight_decay != 0};
  launch(quad_launch(args.kName, args.count, stream),
         sgd_kernel,
         step,
         scalar::SgdNumbers<float>(args));
}

}  // namespace accrue::kernels
