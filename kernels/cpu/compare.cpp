// Launchers of comparisons and choices: checks, the split into runs, the choice of the loop.
#include "accrue/kernels/cpu/compare.h"

#include "accrue/kernels/compare_checks.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel_runs.h"

namespace accrue::kernels {
namespace {

constexpr std::int64_t kGrain = 32768;  // elements that are worth waking a thread for

}  // namespace

const char* name_of(CompareOp op) {
  constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  return kNames[static_cast<int>(op)];
}

void launch_cpu(const Compare& args) {
  check_arguments(args);
  const Shape& shape = args.y.shape();
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
  check_arguments(args);
  const Shape& shape = args.y.shape();
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
