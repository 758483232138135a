// Launchers of the elementwise kernels: checks, the split into runs, the choice of the loop.
#include "accrue/kernels/cpu/elementwise.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel_runs.h"
#include "accrue/kernels/elementwise_checks.h"
#include "accrue/kernels/scalar/unary.h"

namespace accrue::kernels {
namespace {

constexpr std::int64_t kGrain = 32768;  // elements that are worth waking a thread for

/// What a launch reads: a tensor, or a number for every element.
struct Operand {
  const Tensor* tensor = nullptr;
  double number = 0.0;
  float number32 = 0.0f;  // the number rounded to float32

  Operand(const Tensor& x) : tensor(&x) {}
  Operand(double x) : number(x), number32(static_cast<float>(x)) {}

  const std::byte* data(DType dtype) const {
    if (tensor != nullptr) return bytes_of(*tensor);
    return dtype == DType::float32 ? reinterpret_cast<const std::byte*>(&number32)
                                   : reinterpret_cast<const std::byte*>(&number);
  }
  bool is_dense() const { return tensor == nullptr || tensor->is_contiguous(); }
  Shape strides(const Shape& shape) const {
    if (tensor != nullptr) return tensor->strides();
    Shape zeros = shape;
    for (int d = 0; d < zeros.rank(); ++d) zeros[d] = 0;
    return zeros;
  }
};

/// Calls body(part) for runs of the operands and, last, `out`, split over threads.
template <std::size_t N, class Body>
void for_each_part(const Tensor& out, const std::array<Operand, N>& operands, const Body& body) {
  bool dense = out.is_contiguous();
  for (const Operand& operand : operands) dense = dense && operand.is_dense();
  if (!dense) {
    std::array<Shape, N + 1> strides;
    for (std::size_t k = 0; k < N; ++k) strides[k] = operands[k].strides(out.shape());
    strides[N] = out.strides();
    return parallel_runs<N + 1>(out.shape(), strides, out.numel(), kGrain, body);
  }
  parallel_for(out.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    StridedRun<N + 1> part{end - begin, {}, {}};
    for (std::size_t k = 0; k <= N; ++k) {
      part.stride[k] = k == N || operands[k].tensor != nullptr;
      part.offset[k] = begin * part.stride[k];
    }
    body(part);
  });
}

/// Calls kernel(run) for runs of all elements.
template <std::size_t N, class Kernel>
void launch_map(const char* operation,
                Tensor& out,
                const std::array<Operand, N>& operands,
                const Kernel& kernel) {
  const DType dtype = out.dtype();
  visit_floating(dtype, operation, [](auto) {});
  std::array<const std::byte*, N> in;
  for (std::size_t k = 0; k < N; ++k) {
    const Tensor* const tensor = operands[k].tensor;
    if (tensor != nullptr) check_operand(operation, *tensor, out.shape(), dtype);
    in[k] = operands[k].data(dtype);
  }
  std::byte* const result = mutable_bytes_of(out);
  for_each_part(out, operands, [&](const StridedRun<N + 1>& part) {
    MapRun run;
    run.dtype = dtype;
    run.count = part.count;
    run.out = result + part.offset[N] * size_of(dtype);
    run.out_stride = part.stride[N];
    for (std::size_t k = 0; k < N; ++k) {
      run.in[k] = in[k] + part.offset[k] * size_of(dtype);
      run.in_stride[k] = part.stride[k];
    }
    kernel(static_cast<const MapRun&>(run));
  });
}

}  // namespace

const char* name_of(UnaryOp op) {
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return #name;
#include "accrue/kernels/unary_ops.def"
  }
  return "";
}

bool backward_reads_x(UnaryOp op) {
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return scalar::Formula::kReadsX;
#include "accrue/kernels/unary_ops.def"
  }
  return false;
}

bool backward_reads_y(UnaryOp op) {
  switch (op) {
#define ACCRUE_UNARY_OP(name, Formula) \
  case UnaryOp::name:                  \
    return scalar::Formula::kReadsY;
#include "accrue/kernels/unary_ops.def"
  }
  return false;
}

const char* name_of(BinaryOp op) {
  constexpr const char* kNames[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
  return kNames[static_cast<int>(op)];
}

void launch_cpu(const UnaryForward& args) {
  launch_map<1>(name_of(args.op), args.y, {args.x}, [&](const MapRun& run) {
    ACCRUE_DISPATCH_512(unary_forward, args.op, args.parameters, run);
  });
}

void launch_cpu(const UnaryBackward& args) {
  const Tensor& x = backward_reads_x(args.op) ? args.x : args.dy;
  const Tensor& y = backward_reads_y(args.op) ? args.y : args.dy;
  launch_map<3>(name_of(args.op), args.dx, {args.dy, x, y}, [&](const MapRun& run) {
    ACCRUE_DISPATCH_512(unary_backward, args.op, args.parameters, run);
  });
}

void launch_cpu(const BinaryForward& args) {
  launch_map<2>(name_of(args.op), args.y, {args.a, args.b}, [&](const MapRun& run) {
    ACCRUE_DISPATCH_512(binary, args.op, run);
  });
}

void launch_cpu(const ScalarForward& args) {
  launch_map<2>(name_of(args.op), args.y, {args.a, args.b}, [&](const MapRun& run) {
    ACCRUE_DISPATCH_512(binary, args.op, run);
  });
}

void launch_cpu(const LargerBackward& args) {
  launch_map<3>("larger", args.dx, {args.dy, args.a, args.b}, [](const MapRun& run) {
    ACCRUE_DISPATCH_512(larger_backward, run);
  });
}

void launch_cpu(const AddScaled& args) {
  launch_map<3>("add_scaled", args.y, {args.x, args.alpha, args.y}, [](const MapRun& run) {
    ACCRUE_DISPATCH_512(fused_multiply_add, run);
  });
}

}  // namespace accrue::kernels
