// Launchers of comparisons and choices: checks, the split into runs, the choice of the loop.
#include "accrue/kernels/cpu/compare.h"

#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel_runs.h"

namespace accrue::kernels {
namespace {

constexpr std::int64_t kGrain = 32768;  // elements that are worth waking a thread for

void check_operand(const char* operation, const Tensor& x, const Shape& shape, DType dtype) {
  ACCRUE_CHECK(x.shape() == shape,
               ShapeError,
               operation,
               "operands must have the result's shape ",
               shape,
               ", got ",
               x.shape(),
               "; expand them first");
  ACCRUE_CHECK(x.dtype() == dtype,
               DTypeError,
               operation,
               "operands must have dtype ",
               dtype,
               ", got ",
               x.dtype(),
               "; convert with to()");
}

const std::byte* bytes_of(const Tensor& x) {
  return visit_dtype(x.dtype(),
                     [&]<class T>(T) { return reinterpret_cast<const std::byte*>(x.data<T>()); });
}

std::byte* mutable_bytes_of(Tensor& x) {
  return visit_dtype(x.dtype(),
                     [&]<class T>(T) { return reinterpret_cast<std::byte*>(x.mutable_data<T>()); });
}

}  // namespace

const char* name_of(CompareOp op) {
  constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  return kNames[static_cast<int>(op)];
}

void launch_cpu(const Compare& args) {
  const char* name = name_of(args.op);
  const Shape& shape = args.y.shape();
  ACCRUE_CHECK(size_of(args.a.dtype()) != 2,
               DTypeError,
               name,
               "compares no stored halves, got ",
               args.a.dtype(),
               "; convert with to()");
  check_operand(name, args.y, shape, DType::boolean);
  check_operand(name, args.a, shape, args.a.dtype());
  check_operand(name, args.b, shape, args.a.dtype());
  const std::byte *a = bytes_of(args.a), *b = bytes_of(args.b);
  bool* const y = args.y.mutable_data<bool>();
  const std::int64_t size = size_of(args.a.dtype());
  parallel_runs<3>(shape,
                   {args.a.strides(), args.b.strides(), args.y.strides()},
                   args.y.numel(),
                   kGrain,
                   [&](const StridedRun<3>& part) {
                     const CompareRun run{args.a.dtype(),
                                          part.count,
                                          a + part.offset[0] * size,
                                          b + part.offset[1] * size,
                                          part.stride[0],
                                          part.stride[1],
                                          y + part.offset[2],
                                          part.stride[2]};
                     ACCRUE_DISPATCH(compare, args.op, run);
                   });
}

void launch_cpu(const Where& args) {
  const Shape& shape = args.y.shape();
  check_operand(Where::kName, args.condition, shape, DType::boolean);
  check_operand(Where::kName, args.a, shape, args.y.dtype());
  check_operand(Where::kName, args.b, shape, args.y.dtype());
  const bool* const condition = args.condition.data<bool>();
  const std::byte *a = bytes_of(args.a), *b = bytes_of(args.b);
  std::byte* const y = mutable_bytes_of(args.y);
  const std::int64_t size = size_of(args.y.dtype());
  parallel_runs<4>(shape,
                   {args.condition.strides(), args.a.strides(), args.b.strides(), args.y.strides()},
                   args.y.numel(),
                   kGrain,
                   [&](const StridedRun<4>& part) {
                     WhereRun run{size, part.count, condition + part.offset[0]};
                     run.a = a + part.offset[1] * size;
                     run.b = b + part.offset[2] * size;
                     run.y = y + part.offset[3] * size;
                     run.condition_stride = part.stride[0];
                     run.a_stride = part.stride[1];
                     run.b_stride = part.stride[2];
                     run.y_stride = part.stride[3];
                     ACCRUE_DISPATCH(where, run);
                   });
}

}  // namespace accrue::kernels
