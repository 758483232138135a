// Cross-entropy on CUDA: a team per row, in the operations that kernels/cross_entropy.h lists.
#include "accrue/kernels/cuda/fault.cuh"
#include "accrue/kernels/cuda/kept_rows.cuh"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/row_checks.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

/// What both directions read; letters as in the header.
struct Inputs {
  Matrix<const float> logits;
  const std::int64_t* target;
  const float* w;
  std::int64_t ignore_index;
  float a, b;
  int* fault;

  Inputs(const CrossEntropyInputs<float>& in, Stream stream)
      : logits(in.logits),
        target(in.target),
        w(in.class_weights),
        ignore_index(in.ignore_index),
        a(static_cast<float>(1 - in.label_smoothing)),
        b(static_cast<float>(in.label_smoothing / static_cast<double>(in.logits.cols))),
        fault(stream.fault) {}

  ACCRUE_DEVICE bool is_class(std::int64_t t) const { return t >= 0 && t < logits.cols; }
  ACCRUE_DEVICE float weight(std::int64_t c) const { return w == nullptr ? 1.0f : w[c]; }
  /// The factor of the target's term; 0 for a row that does not count.
  ACCRUE_DEVICE float target_factor(std::int64_t t) const { return w == nullptr ? a : a * w[t]; }
  /// Notes a target that is no class. One thread of a row calls it.
  ACCRUE_DEVICE void check(std::int64_t t) const {
    if (t != ignore_index && !is_class(t)) note_fault(fault, Fault::target);
  }
  ACCRUE_DEVICE bool counts(std::int64_t t) const {
    return t != ignore_index && (!is_class(t) || target_factor(t) != 0.0f || b != 0.0f);
  }
};

struct Forward {
  Inputs in;
  float *loss, *row_max, *row_sum;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const std::int64_t t = in.target[n], classes = in.logits.cols;
    const bool writes = team.index() == 0;
    if (writes) in.check(t);
    if (!in.counts(t)) {
      if (writes) loss[n] = 0.0f;
      return;
    }
    const float* const x = team.keep(in.logits.data + n * in.logits.row_stride, classes);
    const float max = team.max(classes, [=](std::int64_t c) { return x[c]; });
    const float sum = team.sum(classes, [=](std::int64_t c) { return scalar::exp(x[c] - max); });
    const float log_sum = scalar::log(sum);
    const float aw = in.is_class(t) ? in.target_factor(t) : __builtin_nanf("");
    float value = 0.0f;
    if (aw != 0.0f) value = aw * (log_sum - (x[in.is_class(t) ? t : 0] - max));
    if (in.b != 0.0f) {
      const float* const w = in.w;
      const float smooth = team.sum(classes, [=](std::int64_t c) {
        const float w_c = w == nullptr ? 1.0f : w[c];
        return w_c == 0.0f ? 0.0f : w_c * (log_sum - (x[c] - max));
      });
      value = scalar::fma(in.b, smooth, value);
    }
    if (!writes) return;
    loss[n] = value;
    row_max[n] = max;
    row_sum[n] = sum;
  }
};

struct Backward {
  Inputs in;
  const float *row_max, *row_sum, *dloss;
  std::int64_t dloss_stride;
  Matrix<float> dlogits;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const std::int64_t t = in.target[n], classes = in.logits.cols;
    const float* const x = in.logits.data + n * in.logits.row_stride;
    float* const dx = dlogits.data + n * dlogits.row_stride;
    if (team.index() == 0) in.check(t);
    if (!in.counts(t)) {
      for (std::int64_t c = team.index(); c < classes; c += Team::kThreads) dx[c] = 0.0f;
      return;
    }
    const float max = row_max[n], sum = row_sum[n], upstream = dloss[n * dloss_stride];
    const float aw = in.is_class(t) ? in.target_factor(t) : __builtin_nanf("");
    const float* const w = in.w;
    float sum_w = static_cast<float>(classes);
    if (in.b != 0.0f && w != nullptr)
      sum_w = team.sum(classes, [=](std::int64_t c) { return w[c]; });
    const auto slope = [=, this](std::int64_t c, float x_c) {
      const float p = scalar::exp(x_c - max) / sum;
      float u = (c == t ? p - 1.0f : p) * aw;
      if (in.b != 0.0f) u = scalar::fma(in.b, scalar::fma(p, sum_w, -in.weight(c)), u);
      return u * upstream;
    };
    const int head = elements_to_aligned(x);
    team.template visit<1>(
        classes,
        head == elements_to_aligned(dx) ? head : classes,
        [=](std::int64_t c) {
          Float4 quad = load4(x + c);
          ACCRUE_UNROLL
          for (int i = 0; i < 4; ++i) quad.v[i] = slope(c + i, quad.v[i]);
          stream4(dx + c, quad);
        },
        [=](std::int64_t c) { dx[c] = slope(c, x[c]); });
  }
};

}  // namespace

void launch_cuda(const CrossEntropyForward<float>& args, Stream stream) {
  check_arguments(args);
  const auto& logits = args.in.logits;
  const Forward body{Inputs(args.in, stream), args.loss, args.row_max, args.row_sum};
  launch_kept_rows("cross_entropy", logits.rows, logits.cols, body, stream);
}

void launch_cuda(const CrossEntropyBackward<float>& args, Stream stream) {
  check_arguments(args);
  const auto& logits = args.in.logits;
  const Backward body{Inputs(args.in, stream),
                      args.row_max,
                      args.row_sum,
                      args.dloss,
                      args.dloss_stride,
                      args.dlogits};
  launch_rows("cross_entropy_backward", logits.rows, logits.cols, body, stream);
}

}  // namespace accrue::kernels
