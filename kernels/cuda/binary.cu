// Elementwise functions of two and three operands on CUDA.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/map.cuh"
#include "accrue/kernels/scalar/binary.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

/// Formula::apply on the operands' elements.
template <class Formula>
struct Apply {
  template <class T>
  ACCRUE_DEVICE T operator()(const T (&in)[2]) const {
    return Formula::apply(in[0], in[1]);
  }
  template <class T>
  ACCRUE_DEVICE T operator()(const T (&in)[3]) const {
    return Formula::apply(in[0], in[1], in[2]);
  }
};

template <class Formula, int N>
void launch_formula(const char* name, Tensor& out, const Operand (&operands)[N], Stream stream) {
  check_map(name, out, operands);
  visit_floating(out.dtype(), name, [&]<class T>(T) {
    launch_map<T>(name, out, operands, Apply<Formula>{}, stream);
  });
}

void launch_binary(BinaryOp op, const Operand (&operands)[2], Tensor& y, Stream stream) {
  const char* const name = name_of(op);
  switch (op) {
    case BinaryOp::add:
      return launch_formula<scalar::Add>(name, y, operands, stream);
    case BinaryOp::sub:
      return launch_formula<scalar::Sub>(name, y, operands, stream);
    case BinaryOp::mul:
      return launch_formula<scalar::Mul>(name, y, operands, stream);
    case BinaryOp::div:
      return launch_formula<scalar::Div>(name, y, operands, stream);
    case BinaryOp::maximum:
      return launch_formula<scalar::Maximum>(name, y, operands, stream);
    case BinaryOp::minimum:
      return launch_formula<scalar::Minimum>(name, y, operands, stream);
  }
}

}  // namespace

void launch_cuda(const BinaryForward& args, Stream stream) {
  launch_binary(args.op, {args.a, args.b}, args.y, stream);
}

void launch_cuda(const ScalarForward& args, Stream stream) {
  launch_binary(args.op, {args.a, args.b}, args.y, stream);
}

void launch_cuda(const LargerBackward& args, Stream stream) {
  const Operand operands[] = {args.dy, args.a, args.b};
  launch_formula<scalar::LargerGradient>("larger", args.dx, operands, stream);
}

void launch_cuda(const AddScaled& args, Stream stream) {
  const Operand operands[] = {args.x, args.alpha, args.y};
  launch_formula<scalar::FusedMultiplyAdd>("add_scaled", args.y, operands, stream);
}

}  // namespace accrue::kernels
