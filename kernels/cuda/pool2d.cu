// Pooling on CUDA: a thread for each element of the result, which gathers what it needs.
#include "accrue/kernels/cuda/images.cuh"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/pool2d.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

struct LargestOfWindow {
  MaxPool2d<float> args;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Sliding& sliding = args.shape.sliding;
    const Pixel output(i, sliding.h.out, sliding.w.out);
    const float* const x = args.x + output.plane * sliding.inputs();
    Largest<float> best;
    for_elements(sliding, output, [&](std::int64_t at) { best.take(x[at], at); });
    args.y[i] = best.value;
    args.places[i] = best.place;
  }
};

struct GradientOfLargest {
  MaxPool2dGrad<float> args;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Sliding& sliding = args.shape.sliding;
    const Pixel element(i, sliding.h.in, sliding.w.in);
    const std::int64_t place = i - element.plane * sliding.inputs();
    const std::int64_t plane = element.plane * sliding.outputs();
    float sum = 0.0f;
    for_outputs<false>(sliding, element, [&](std::int64_t line, std::int64_t column, std::int64_t) {
      const std::int64_t output = plane + line * sliding.w.out + column;
      if (args.places[output] == place) sum += args.dy[output];
    });
    args.dx[i] = sum;
  }
};

struct MeanOfWindow {
  AvgPool2d<float> args;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Sliding& sliding = args.shape.sliding;
    const Pixel output(i, sliding.h.out, sliding.w.out);
    const float* const x = args.x + output.plane * sliding.inputs();
    float sum = 0.0f;
    for_elements(sliding, output, [&](std::int64_t at) { sum += x[at]; });
    args.y[i] = sum / static_cast<float>(args.divisor.of(sliding, output.line, output.column));
  }
};

struct GradientOfMean {
  AvgPool2dGrad<float> args;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Sliding& sliding = args.shape.sliding;
    const Pixel element(i, sliding.h.in, sliding.w.in);
    const float* const dy = args.dy + element.plane * sliding.outputs();
    float sum = 0.0f;
    for_outputs<true>(sliding, element, [&](std::int64_t line, std::int64_t column, std::int64_t) {
      const auto divisor = static_cast<float>(args.divisor.of(sliding, line, column));
      sum += dy[line * sliding.w.out + column] / divisor;
    });
    args.dx[i] = sum;
  }
};

}  // namespace

void launch_cuda(const MaxPool2d<float>& args, Stream stream) {
  const std::int64_t outputs = args.shape.planes * args.shape.sliding.outputs();
  launch_each(args.kName, outputs, LargestOfWindow{args}, stream);
}

void launch_cuda(const MaxPool2dGrad<float>& args, Stream stream) {
  const std::int64_t inputs = args.shape.planes * args.shape.sliding.inputs();
  launch_each(args.kName, inputs, GradientOfLargest{args}, stream);
}

void launch_cuda(const AvgPool2d<float>& args, Stream stream) {
  const std::int64_t outputs = args.shape.planes * args.shape.sliding.outputs();
  launch_each(args.kName, outputs, MeanOfWindow{args}, stream);
}

void launch_cuda(const AvgPool2dGrad<float>& args, Stream stream) {
  const std::int64_t inputs = args.shape.planes * args.shape.sliding.inputs();
  launch_each(args.kName, inputs, GradientOfMean{args}, stream);
}

}  // namespace accrue::kernels
