// Matrix products over leading dimensions on CUDA: a batch of products.
#include "accrue/kernels/batched_matmul.h"
#include "accrue/kernels/cuda/batch.h"
#include "accrue/kernels/cuda/blas_linear.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/only_float32.h"
#include "accrue/kernels/linear_checks.h"

namespace accrue::kernels {

void launch_cuda(const BatchedMatmul& args, cuda::Stream stream) {
  cuda::check_float32(args.kName, args.a);
  Tensor output = args.c;
  const Matrices<const float> a(args.a), b(args.b);
  const Matrices<float> c(output);
  if (output.numel() == 0) return;
  const Matmul<float> first{a[0], b[0], c[0]};
  check_arguments(first);
  if (cuda::run_by_blas(args, stream)) return;
  if (c.count() == 1) return launch_cuda(first, stream);
  cuda::Product product;
  product.a = cuda::rows_of(first.a);
  product.b = cuda::rows_of(first.b.transposed());
  product.add(LaneInstruction::zero());
  product.add(LaneInstruction::chain(0, first.a.cols));
  product.add(LaneInstruction::store(0));
  product.few_slots[0] = {first.c.data, first.c.row_stride};
  cuda::BatchOffsets offsets;
  for (std::int64_t i = 0; i < c.count(); ++i) {
    offsets.push_back({cuda::offset_of(a, i), cuda::offset_of(b, i), cuda::offset_of(c, i)});
  }
  launch_batch(args.kName, product, offsets, stream);
}

}  // namespace accrue::kernels
