// One thread's rows of cross-entropy, in the operations that kernels/cross_entropy.h lists.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/row_kernels.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// The factors of a row's terms; letters as in the header.
template <class T>
struct Factors {
  const T* w;     // class weights or null
  T sum_w;        // over all classes
  T a, b;         // of the target's term and of smoothing
  T a_times_w_t;  // set for each row

  explicit Factors(const CrossEntropyInputs<T>& in)
      : w(in.class_weights),
        sum_w(static_cast<T>(in.logits.cols)),
        a(static_cast<T>(1 - in.label_smoothing)),
        b(static_cast<T>(in.label_smoothing / static_cast<double>(in.logits.cols))),
        a_times_w_t(a) {
    const T* weights = w;
    if (w != nullptr) {
      sum_w = sum_in_order<T>(in.logits.cols, [weights](std::int64_t c) { return weights[c]; });
    }
  }

  /// Prepares for a row with target t. False if nothing of the row counts.
  bool start_row(std::int64_t t, std::int64_t ignore_index) {
    if (t == ignore_index) return false;
    if (w != nullptr) a_times_w_t = a * w[t];
    return a_times_w_t != 0 || b != 0;
  }
  T weight(std::int64_t c) const { return w == nullptr ? T(1) : w[c]; }
};

template <class T>
T smoothing_sum(const T* x, std::int64_t classes, T max, T log_sum, const T* w) {
  if (w == nullptr) {
    return sum_in_order<T>(classes, [=](std::int64_t c) { return log_sum - (x[c] - max); });
  }
  return sum_in_order<T>(
      classes, [=](std::int64_t c) { return w[c] == 0 ? T(0) : w[c] * (log_sum - (x[c] - max)); });
}

template <class T>
void forward(const CrossEntropyForward<T>& args, RowRange rows) {
  const auto& in = args.in;
  const std::int64_t classes = in.logits.cols;
  Factors<T> factors(in);
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const std::int64_t t = in.target[n];
    args.loss[n] = 0;
    if (!factors.start_row(t, in.ignore_index)) continue;
    const T* x = row_of(in.logits, n);
    const T max = max_in_order<T>(classes, [=](std::int64_t c) { return x[c]; });
    const T sum = sum_in_order<T>(classes, [=](std::int64_t c) { return scalar::exp(x[c] - max); });
    const T log_sum = scalar::log(sum);
    T loss = 0;
    if (factors.a_times_w_t != 0) loss = factors.a_times_w_t * (log_sum - (x[t] - max));
    if (factors.b != 0) {
      loss = scalar::fma(factors.b, smoothing_sum(x, classes, max, log_sum, factors.w), loss);
    }
    args.row_max[n] = max;
    args.row_sum[n] = sum;
    args.loss[n] = loss;
  }
}

template <class T>
void backward(const CrossEntropyBackward<T>& args, RowRange rows) {
  const auto& in = args.in;
  const std::int64_t classes = in.logits.cols;
  Factors<T> factors(in);
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const std::int64_t t = in.target[n];
    T* dx = row_of(args.dlogits, n);
    if (!factors.start_row(t, in.ignore_index)) {
      for (std::int64_t c = 0; c < classes; ++c) dx[c] = 0;
      continue;
    }
    const T* x = row_of(in.logits, n);
    const T max = args.row_max[n], sum = args.row_sum[n], dloss = args.dloss[n * args.dloss_stride];
    const T aw = factors.a_times_w_t, b = factors.b, sum_w = factors.sum_w;
    const auto p = [=](std::int64_t c) { return scalar::exp(x[c] - max) / sum; };
    const auto smoothed = [=](T p_c, T w_c, T u) {
      return scalar::fma(b, scalar::fma(p_c, sum_w, -w_c), u);
    };
    T at_target = (p(t) - 1) * aw;  // before dx, which may be x, is written
    if (b == 0) {
      for (std::int64_t c = 0; c < classes; ++c) dx[c] = p(c) * aw * dloss;
    } else {
      at_target = smoothed(p(t), factors.weight(t), at_target);
      for (std::int64_t c = 0; c < classes; ++c) {
        const T p_c = p(c);
        dx[c] = smoothed(p_c, factors.weight(c), p_c * aw) * dloss;
      }
    }
    dx[t] = at_target * dloss;
  }
}

}  // namespace

void run_rows(const CrossEntropyForward<float>& args, RowRange rows) { forward(args, rows); }
void run_rows(const CrossEntropyForward<double>& args, RowRange rows) { forward(args, rows); }
void run_rows(const CrossEntropyBackward<float>& args, RowRange rows) { backward(args, rows); }
void run_rows(const CrossEntropyBackward<double>& args, RowRange rows) { backward(args, rows); }

}  // namespace accrue::kernels::ACCRUE_ISA
