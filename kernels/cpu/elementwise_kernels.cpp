// The elementwise loops: dense pieces are computed in place, others pass through small buffers.
#include "accrue/kernels/cpu/elementwise.h"
#include "accrue/kernels/scalar/binary.h"
#include "accrue/kernels/scalar/unary.h"

#include <type_traits>

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

/// map() of F::apply, which takes one element of each operand.
template <int N, class F, class T>
void map_values(const MapRun& run) {
  if constexpr (N == 2) {  // a number beside a tensor stays in a register
    const T* const a = static_cast<const T*>(run.in[0]);
    const T* const b = static_cast<const T*>(run.in[1]);
    if (run.in_stride[1] == 0 && run.in_stride[0] == 1) {
      return map<1, T>(run, [b = *b](auto& in, std::int64_t i) { return F::apply(in[0][i], b); });
    }
    if (run.in_stride[0] == 0 && run.in_stride[1] == 1) {
      MapRun swapped = run;
      swapped.in[0] = b;
      swapped.in_stride[0] = 1;
      return map<1, T>(swapped,
                       [a = *a](auto& in, std::int64_t i) { return F::apply(a, in[0][i]); });
    }
    map<2, T>(run, [](auto& in, std::int64_t i) { return F::apply(in[0][i], in[1][i]); });
  } else {
    map<3, T>(run, [](auto& in, std::int64_t i) { return F::apply(in[0][i], in[1][i], in[2][i]); });
  }
}

/// map_values() for the element type of the run.
template <int N, class F>
void map_floating(const MapRun& run) {
  return run.dtype == DType::float32 ? map_values<N, F, float>(run) : map_values<N, F, double>(run);
}

/// Calls body(power), where power(x) is x^exponent: what depends on the exponent alone is decided
/// here.
template <class T, class Body>
void with_power(T exponent, Body body) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (exponent == 1) return body([](float x) { return x; });
    if (exponent == 2) return body([](float x) { return x * x; });  // exact before it rounds
    if (exponent == 3) return body([](float x) { return scalar::whole_power(x, 3); });
    if (!scalar::is_small_whole(exponent)) {
      return body([=](float x) { return scalar::general_power(x, exponent); });
    }
  }
  body([=](T x) { return scalar::pow(x, exponent); });
}

template <class Formula, class T>
void map_forward(const UnaryParameters& parameters, const MapRun& run) {
  const scalar::Parameters<T> p{static_cast<T>(parameters.first),
                                static_cast<T>(parameters.second)};
  if constexpr (std::is_same_v<Formula, scalar::Pow>) {
    with_power(p.first, [&](auto power) {
      map<1, T>(run, [=](auto& in, std::int64_t i) { return power(in[0][i]); });
    });
  } else {
    map<1, T>(run, [p](auto& in, std::int64_t i) { return scalar::forward<Formula>(in[0][i], p); });
  }
}

template <class Formula, class T>
void map_backward(const UnaryParameters& parameters, const MapRun& run) {
  const scalar::Parameters<T> p{static_cast<T>(parameters.first),
                                static_cast<T>(parameters.second)};
  const auto formula = [&](auto f) {
    map<3, T>(run, [=](auto& in, std::int64_t i) {
      const T x = Formula::kReadsX ? in[1][i] : T(0);
      const T y = Formula::kReadsY ? in[2][i] : T(0);
      return f(x, y, in[0][i]);
    });
  };
  if constexpr (std::is_same_v<Formula, scalar::Pow>) {
    if (p.first == T(0)) return formula([](T, T, T) { return T(0); });
    with_power(p.first - T(1), [&](auto power) {
      formula([=](T x, T, T dy) { return dy * (p.first * power(x)); });
    });
  } else {
    formula([p](T x, T y, T dy) { return scalar::backward<Formula>(x, y, dy, p); });
  }
}

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
      return map_floating<2, scalar::Add>(run);
    case BinaryOp::sub:
      return map_floating<2, scalar::Sub>(run);
    case BinaryOp::mul:
      return map_floating<2, scalar::Mul>(run);
    case BinaryOp::div:
      return map_floating<2, scalar::Div>(run);
    case BinaryOp::maximum:
      return map_floating<2, scalar::Maximum>(run);
    case BinaryOp::minimum:
      return map_floating<2, scalar::Minimum>(run);
  }
}

void larger_backward(const MapRun& run) { map_floating<3, scalar::LargerGradient>(run); }

void fused_multiply_add(const MapRun& run) { map_floating<3, scalar::FusedMultiplyAdd>(run); }

}  // namespace accrue::kernels::ACCRUE_ISA
