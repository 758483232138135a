// Squared error, softmax and row sums on CUDA: a team per row, in the operations their headers
// list.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/row_team.cuh"
#include "accrue/kernels/cuda/softmax_row.cuh"
#include "accrue/kernels/row_checks.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

template <class T>
ACCRUE_DEVICE T* line(const Matrix<T>& matrix, std::int64_t n) {
  return matrix.data + n * matrix.row_stride;
}

struct MseLoss {
  MseForward<float> args;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const float *const x = line(args.x, n), *const y = line(args.y, n);
    const float loss = team.accumulate(args.x.cols, [=](float acc, std::int64_t c) {
      const float d = x[c] - y[c];
      return scalar::fma(d, d, acc);
    });
    if (team.index() == 0) args.loss[n] = loss;
  }
};

struct MseGradient {
  MseBackward<float> args;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const float *const x = line(args.x, n), *const y = line(args.y, n);
    const float dloss = args.dloss[n * args.dloss_stride];
    for (std::int64_t c = team.index(); c < args.x.cols; c += Team::kThreads) {
      const float d = x[c] - y[c], dx = (d + d) * dloss;
      if (args.dx.data != nullptr) line(args.dx, n)[c] = dx;
      if (args.dy.data != nullptr) line(args.dy, n)[c] = -dx;
    }
  }
};

struct Softmax {
  SoftmaxForward<float> args;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const float* const x = line(args.x, n);
    float* const y = line(args.y, n);
    const SoftmaxRow row = softmax_row(team, args.x.cols, [=](std::int64_t c) { return x[c]; });
    const float log_sum = scalar::log(row.sum);
    for (std::int64_t c = team.index(); c < args.x.cols; c += Team::kThreads) {
      y[c] = args.kind == SoftmaxKind::plain ? row.weight(x[c]) : x[c] - row.max - log_sum;
    }
  }
};

struct SoftmaxGradient {
  SoftmaxBackward<float> args;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const float *const y = line(args.y, n), *const dy = line(args.dy, n);
    float* const dx = line(args.dx, n);
    const bool is_plain = args.kind == SoftmaxKind::plain;
    const float k = is_plain ? softmax_product(team, args.y.cols, y, dy)
                             : team.sum(args.y.cols, [=](std::int64_t c) { return dy[c]; });
    for (std::int64_t c = team.index(); c < args.y.cols; c += Team::kThreads) {
      dx[c] = is_plain ? y[c] * (dy[c] - k) : scalar::fma(-scalar::exp(y[c]), k, dy[c]);
    }
  }
};

}  // namespace

void launch_cuda(const MseForward<float>& args, Stream stream) {
  check_arguments(args);
  launch_rows("mse", args.x.rows, args.x.cols, MseLoss{args}, stream);
}

void launch_cuda(const MseBackward<float>& args, Stream stream) {
  check_arguments(args);
  launch_rows("mse_backward", args.x.rows, args.x.cols, MseGradient{args}, stream);
}

void launch_cuda(const SoftmaxForward<float>& args, Stream stream) {
  check_arguments(args);
  launch_rows("softmax", args.x.rows, args.x.cols, Softmax{args}, stream);
}

void launch_cuda(const SoftmaxBackward<float>& args, Stream stream) {
  check_arguments(args);
  launch_rows("softmax_backward", args.y.rows, args.y.cols, SoftmaxGradient{args}, stream);
}

}  // namespace accrue::kernels
