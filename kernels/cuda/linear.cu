// Launchers of the linear layer's kernels: each is one product whose program states the order.
#include "accrue/kernels/cuda/blas_linear.h"
#include "accrue/kernels/cuda/device_program.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/live_rows.cuh"
#include "accrue/kernels/linear_checks.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

/// c = a b, plus a bias per column unless it is null.
void multiply(const char* name,
              Matrix<const float> a,
              Matrix<const float> b,
              const float* bias,
              Matrix<float> c,
              Stream stream) {
  Product product;
  product.a = rows_of(a);
  product.b = rows_of(b.transposed());
  product.add(LaneInstruction::zero());
  product.add(LaneInstruction::chain(0, a.cols));
  if (bias != nullptr) product.add(LaneInstruction::merge(1));
  product.add(LaneInstruction::store(0));
  product.few_slots[0] = {c.data, c.row_stride};
  product.few_slots[1] = {const_cast<float*>(bias), 0};  // the program only reads it
  launch_product(name, product, stream);
}

/// Runs a parameter's program over the rows of dy: buffers [a.count, b.count].
template <class Args>
void accumulate(const Args& args, Side a, Side b, Stream stream) {
  const std::int64_t outputs = a.count * b.count;
  if (outputs == 0) return;
  const Matrix<const float>& dy = args.dy;
  Workspace live(static_cast<std::size_t>(dy.rows), stream);
  const Layouts<1> rows({dy.rows}, {Shape{dy.row_stride}}),
      inner({dy.cols}, {Shape{dy.col_stride}});
  find_live_rows(dy.data, rows, inner, live.as<std::uint8_t>(), stream);
  const DeviceProgram program(args.program, args.buffers, outputs, b.count, stream);
  Product product;
  product.a = a;
  product.b = b;
  product.live = live.as<std::uint8_t>();
  program.give_to(product);
  launch_product(args.kName, product, stream);
}

}  // namespace

void launch_cuda(const LinearForward<float>& args, Stream stream) {
  check_arguments(args);
  if (run_by_blas(args, stream)) return;
  multiply(args.kName, args.x, args.w.transposed(), args.bias, args.y, stream);
}

void launch_cuda(const LinearInputGrad<float>& args, Stream stream) {
  check_arguments(args);
  if (run_by_blas(args, stream)) return;
  multiply(args.kName, args.dy, args.w, nullptr, args.dx, stream);
}

void launch_cuda(const Matmul<float>& args, Stream stream) {
  check_arguments(args);
  if (run_by_blas(args, stream)) return;
  multiply(args.kName, args.a, args.b, nullptr, args.c, stream);
}

void launch_cuda(const LinearWeightGrad<float>& args, Stream stream) {
  check_arguments(args);
  if (run_by_blas(args, stream)) return;
  accumulate(args, rows_of(args.dy.transposed()), rows_of(args.x.transposed()), stream);
}

void launch_cuda(const LinearBiasGrad<float>& args, Stream stream) {
  check_arguments(args);
  const Side ones{nullptr, 1, 0, 0};
  accumulate(args, ones, rows_of(args.dy.transposed()), stream);
}

}  // namespace accrue::kernels
