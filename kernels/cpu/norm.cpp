// The launchers under norm.h: sums of blocks on all threads, combined in order.
#include "accrue/kernels/cpu/norm.h"

#include "accrue/core/sum_order.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace accrue::kernels {
namespace {

double square_sum(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), SquareSum::kName, [&]<class T>(T) {
    const Tensor dense = tensor.contiguous();
    const T* const x = dense.data<T>();
    const std::int64_t count = dense.numel(), num_blocks = (count + kSumBlock - 1) / kSumBlock;
    constexpr std::int64_t kGrain = 32;  // blocks that are worth waking a thread for
    std::vector<double> sums(static_cast<std::size_t>(num_blocks));
    parallel_for(num_blocks, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t first = block * kSumBlock;
        sums[static_cast<std::size_t>(block)] = ACCRUE_DISPATCH(
            block_square_sum, x + first, std::min<std::int64_t>(kSumBlock, count - first));
      }
    });
    BlockTree<double> tree;
    for (const double sum : sums) tree.push(sum);
    return tree.result();
  });
}

double largest_of(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), MaxAbs::kName, [&]<class T>(T) {
    const Tensor dense = tensor.contiguous();
    if (dense.numel() == 0) return 0.0;
    return ACCRUE_DISPATCH(max_abs, dense.data<T>(), dense.numel());
  });
}

}  // namespace

double launch_cpu(const SquareSum& args) {
  const DefaultFloats floats;
  double total = args.start;
  for (const Tensor& x : args.tensors) total += square_sum(x);
  return total;
}

double launch_cpu(const MaxAbs& args) {
  const DefaultFloats floats;
  double largest = 0;
  for (const Tensor& x : args.tensors) {
    const double next = largest_of(x);
    if (next > largest || std::isnan(next)) largest = next;
  }
  return largest;
}

Nonfinite launch_cpu(const FindNonfinite& args) {
  for (std::size_t i = 0; i < args.tensors.size(); ++i) {
    const Tensor dense = args.tensors[i].contiguous();
    const Nonfinite found = visit_floating(dense.dtype(), args.kName, [&]<class T>(T) {
      const T* const x = dense.data<T>();
      const std::int64_t count = ACCRUE_DISPATCH(count_nonfinite, x, dense.numel());
      if (count == 0) return Nonfinite();
      const T* const first =
          std::find_if(x, x + dense.numel(), [](T v) { return !std::isfinite(v); });
      return Nonfinite{static_cast<std::int64_t>(i), count, first - x};
    });
    if (found.count > 0) return found;
  }
  return {};
}

}  // namespace accrue::kernels
