// Batched matrix products on the CPU: one product after the other, or many at once.
#include "accrue/kernels/batched_matmul.h"

#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/linear.h"
#include "accrue/kernels/matrices.h"

namespace accrue::kernels {

void launch_cpu(const BatchedMatmul& args) {
  visit_floating(args.a.dtype(), BatchedMatmul::kName, [&]<class T>(T) {
    Tensor output = args.c;
    const Matrices<const T> a(args.a), b(args.b);
    const Matrices<T> c(output);
    parallel_for(c.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) launch_cpu(Matmul<T>{a[i], b[i], c[i]});
    });
  });
}

}  // namespace accrue::kernels
