// Elementwise functions of one operand on CUDA, with the formulas of unary_ops.def.
//
// In float32 each function is a kernel of its own; in float64, which is for gradient checks, one
// kernel holds all.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/map.cuh"
#include "accrue/kernels/scalar/unary.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

template <class T>
struct Numbers : scalar::Parameters<T> {
  explicit Numbers(const UnaryParameters& p)
      : scalar::Parameters<T>{static_cast<T>(p.first), static_cast<T>(p.second)} {}
};

template <class Formula>
struct Value {
  Numbers<float> p;

  ACCRUE_DEVICE float operator()(const float (&in)[1]) const {
    return scalar::forward<Formula, float>(in[0], p);
  }
};

template <class Formula>
struct Slope {
  Numbers<float> p;

  ACCRUE_DEVICE float operator()(const float (&in)[3]) const {
    return scalar::backward<Formula, float>(in[1], in[2], in[0], p);
  }
};

struct AnyValue {
  UnaryOp op;
  Numbers<double> p;

  ACCRUE_DEVICE double operator()(const double (&in)[1]) const {
    switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return scalar::forward<scalar::Formula, double>(in[0], p);
#include "accrue/kernels/unary_ops.def"
    }
    return 0;
  }
};

struct AnySlope {
  UnaryOp op;
  Numbers<double> p;

  ACCRUE_DEVICE double operator()(const double (&in)[3]) const {
    switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return scalar::backward<scalar::Formula, double>(in[1], in[2], in[0], p);
#include "accrue/kernels/unary_ops.def"
    }
    return 0;
  }
};

}  // namespace

void launch_cuda(const UnaryForward& args, Stream stream) {
  const char* const name = name_of(args.op);
  const Operand operands[] = {args.x};
  check_map(name, args.y, operands);
  if (args.y.dtype() == DType::float64) {
    const AnyValue any{args.op, Numbers<double>(args.parameters)};
    return launch_map<double>(name, args.y, operands, any, stream);
  }
  const Numbers<float> p(args.parameters);
  switch (args.op) {
#define ACCRUE_UNARY_OP(op, Formula) \
  case UnaryOp::op:                  \
    return launch_map<float>(name, args.y, operands, Value<scalar::Formula>{p}, stream);
#include "accrue/kernels/unary_ops.def"
  }
}

void launch_cuda(const UnaryBackward& args, Stream stream) {
  const char* const name = name_of(args.op);
  const Operand unread(0.0);
  const Operand operands[] = {args.dy,
                              backward_reads_x(args.op) ? Operand(args.x) : unread,
                              backward_reads_y(args.op) ? Operand(args.y) : unread};
  check_map(name, args.dx, operands);
  if (args.dx.dtype() == DType::float64) {
    const AnySlope any{args.op, Numbers<double>(args.parameters)};
    return launch_map<double>(name, args.dx, operands, any, stream);
  }
  const Numbers<float> p(args.parameters);
  switch (args.op) {
#define ACCRUE_UNARY_OP(op, Formula) \
  case UnaryOp::op:                  \
    return launch_map<float>(name, args.dx, operands, Slope<scalar::Formula>{p}, stream);
#include "accrue/kernels/unary_ops.def"
  }
}

}  // namespace accrue::kernels
