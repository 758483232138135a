// Layer and RMS normalisation on CUDA: a team per row.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/row_team.cuh"
#include "accrue/kernels/row_checks.h"
#include "accrue/kernels/scalar/layer_norm.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

struct Normalize {
  LayerNormForward<float> args;
  float eps;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const std::int64_t cols = args.x.cols;
    const float count = static_cast<float>(cols);
    const float* const x = args.x.data + n * args.x.row_stride;
    float* const y = args.y.data + n * args.y.row_stride;
    scalar::NormRow<float> row{x};
    if (args.kind == NormKind::layer) {
      row.mean = team.sum(cols, [=](std::int64_t c) { return x[c]; }) / count;
    }
    const float squares =
        team.accumulate(cols, [=](float acc, std::int64_t c) { return row.add_square(acc, c); });
    row.rstd = row.rstd_of(squares, count, eps);
    for (std::int64_t c = team.index(); c < cols; c += Team::kThreads) {
      y[c] = row.output(c, args.weight, args.bias);
    }
    if (team.index() != 0) return;
    args.mean[n] = row.mean;
    args.rstd[n] = row.rstd;
  }
};

struct NormalizeGradient {
  LayerNormBackward<float> args;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const std::int64_t cols = args.x.cols;
    const float count = static_cast<float>(cols);
    const scalar::NormGradRow<float> row{
        {args.x.data + n * args.x.row_stride, args.mean[n], args.rstd[n]},
        args.dy.data + n * args.dy.row_stride,
        args.weight};
    float* const dx = args.dx.data == nullptr ? nullptr : args.dx.data + n * args.dx.row_stride;
    float* const normal = args.n.data == nullptr ? nullptr : args.n.data + n * args.n.row_stride;
    float k = 0, offset = 0;
    if (dx != nullptr) {
      k = team.accumulate(cols, [=](float acc, std::int64_t c) {
        return row.add_product(acc, c);
      }) / count;
      if (args.kind == NormKind::layer) {
        offset = team.sum(cols, [=](std::int64_t c) { return row.g(c); }) / count;
      }
    }
    for (std::int64_t c = team.index(); c < cols; c += Team::kThreads) {
      const float of_x = row.n(c);  // before dx: it may lie where x does
      if (dx != nullptr) dx[c] = row.dx(args.kind, c, k, offset);
      if (normal != nullptr) normal[c] = of_x;
    }
  }
};

}  // namespace

void launch_cuda(const LayerNormForward<float>& args, Stream stream) {
  check_arguments(args);
  const Normalize body{args, static_cast<float>(args.eps)};
  launch_rows(args.kName, args.x.rows, args.x.cols, body, stream);
}

void launch_cuda(const LayerNormBackward<float>& args, Stream stream) {
  check_arguments(args);
  launch_rows(args.kName, args.x.rows, args.x.cols, NormalizeGradient{args}, stream);
}

}  // namespace accrue::kernels
