// The elementwise loops: dense pieces are computed in place, others pass through small buffers.
#include "accrue/kernels/cpu/elementwise.h"
#include "accrue/kernels/scalar/float_ops.h"
#include "accrue/kernels/scalar/unary.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

constexpr std::int64_t kPiece = 256;

/// Elements [begin, begin + count), dense: where they lie if they are, else copied to `buffer`.
template <class T>
const T* dense(
    const T* in, std::int64_t stride, std::int64_t begin, std::int64_t count, T* buffer) {
  if (stride == 1) return in + begin;
  if (stride == 0 && begin > 0) return buffer;  // holds a first piece, which no other exceeds
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = in[(begin + i) * stride];
  return buffer;
}

/// out[i] = f(in, i), where in[0] to in[N - 1] point to dense operands. Each piece is read before
/// its results are written, so `out` may be an operand.
template <int N, class T, class F>
void map(const MapRun& run, F f) {
  bool all_dense = run.out_stride == 1;
  for (int k = 0; k < N; ++k) all_dense &= run.in_stride[k] == 1;
  const std::int64_t most = all_dense ? run.count : kPiece;
  T buffers[N + 1][kPiece];
  for (std::int64_t begin = 0; begin < run.count; begin += most) {
    const std::int64_t count = run.count - begin < most ? run.count - begin : most;
    const T* in[N];
    for (int k = 0; k < N; ++k) {
      in[k] = dense(static_cast<const T*>(run.in[k]), run.in_stride[k], begin, count, buffers[k]);
    }
    T* const first_out = static_cast<T*>(run.out) + begin * run.out_stride;
    T* const out = run.out_stride == 1 ? first_out : buffers[N];
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(in, i);
    if (out == first_out) continue;
    for (std::int64_t i = 0; i < count; ++i) first_out[i * run.out_stride] = out[i];
  }
}

/// map() for the element type of the run; F::apply(in, i) computes one element of type T.
template <int N, class F>
void map_floating(const MapRun& run) {
  if (run.dtype == DType::float32) {
    map<N, float>(run, [](auto& in, std::int64_t i) { return F::template apply<float>(in, i); });
  } else {
    map<N, double>(run, [](auto& in, std::int64_t i) { return F::template apply<double>(in, i); });
  }
}

template <class Formula, class T>
void map_forward(const UnaryParameters& parameters, const MapRun& run) {
  const scalar::Parameters<T> p{static_cast<T>(parameters.first),
                                static_cast<T>(parameters.second)};
  map<1, T>(run, [p](auto& in, std::int64_t i) { return scalar::forward<Formula>(in[0][i], p); });
}

template <class Formula, class T>
void map_backward(const UnaryParameters& parameters, const MapRun& run) {
  const scalar::Parameters<T> p{static_cast<T>(parameters.first),
                                static_cast<T>(parameters.second)};
  map<3, T>(run, [p](auto& in, std::int64_t i) {
    const T x = Formula::kReadsX ? in[1][i] : T(0);
    const T y = Formula::kReadsY ? in[2][i] : T(0);
    return scalar::backward<Formula>(x, y, in[0][i], p);
  });
}

struct Add {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    return in[0][i] + in[1][i];
  }
};
struct Sub {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    return in[0][i] - in[1][i];
  }
};
struct Mul {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    return in[0][i] * in[1][i];
  }
};
struct Div {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    return in[0][i] / in[1][i];
  }
};
struct Maximum {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    const T a = in[0][i], b = in[1][i];
    const T larger = a < b ? b : a;  // a if it is NaN
    return b != b ? b : larger;
  }
};
struct Minimum {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    const T a = in[0][i], b = in[1][i];
    const T smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
};
struct LargerGradient {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    const T dy = in[0][i], a = in[1][i], b = in[2][i];
    const T share = a == b ? dy * T(0.5) : dy;
    return a < b ? T(0) : share;
  }
};
struct FusedMultiplyAdd {
  template <class T>
  static ACCRUE_HD T apply(const T* const* in, std::int64_t i) {
    return scalar::fma(in[0][i], in[1][i], in[2][i]);
  }
};

}  // namespace

void unary_forward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run) {
  const bool is_float = run.dtype == DType::float32;
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula)                                     \
  case UnaryOp::name:                                                      \
    return is_float ? map_forward<scalar::Formula, float>(parameters, run) \
                    : map_forward<scalar::Formula, double>(parameters, run);
#include "accrue/kernels/unary_ops.def"
  }
}

void unary_backward(UnaryOp op, const UnaryParameters& parameters, const MapRun& run) {
  const bool is_float = run.dtype == DType::float32;
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula)                                      \
  case UnaryOp::name:                                                       \
    return is_float ? map_backward<scalar::Formula, float>(parameters, run) \
                    : map_backward<scalar::Formula, double>(parameters, run);
#include "accrue/kernels/unary_ops.def"
  }
}

void binary(BinaryOp op, const MapRun& run) {
  switch (op) {
    case BinaryOp::add:
      return map_floating<2, Add>(run);
    case BinaryOp::sub:
      return map_floating<2, Sub>(run);
    case BinaryOp::mul:
      return map_floating<2, Mul>(run);
    case BinaryOp::div:
      return map_floating<2, Div>(run);
    case BinaryOp::maximum:
      return map_floating<2, Maximum>(run);
    case BinaryOp::minimum:
      return map_floating<2, Minimum>(run);
  }
}

void larger_backward(const MapRun& run) { map_floating<3, LargerGradient>(run); }

void fused_multiply_add(const MapRun& run) { map_floating<3, FusedMultiplyAdd>(run); }

}  // namespace accrue::kernels::ACCRUE_ISA
