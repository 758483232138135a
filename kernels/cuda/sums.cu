// Sums on CUDA in the order of core/sum_order.h: along rows, over dimensions, of squares.
//
// First every block of 1,024 elements of every sum is added, by a warp, or by eight warps for 32
// sums whose elements lie beside each other. Then kernels fold 32 blocks each until one is left.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/layouts.cuh"
#include "accrue/kernels/reduce_checks.h"

#include <numeric>
#include <vector>

namespace accrue::kernels {
namespace {

using namespace cuda;

static_assert(kSumPartials == kWarpSize);

constexpr int kSumThreads = 256, kSumWarps = kSumThreads / kWarpSize;

/// Where results go: result n to the element n of a layout.
template <class A>
struct Results {
  A* data;
  Layouts<1> layout;

  ACCRUE_DEVICE void put(std::int64_t n, A value) const { data[layout.offsets(n)[0]] = value; }
};

/// The elements of T of all sums, which are added as A.
template <class T, class A>
struct Summands {
  const T* x;
  Layouts<1> kept, summed;  ///< counts sums, and elements of a sum
  std::int64_t blocks;      ///< of one sum
  bool squares;

  ACCRUE_DEVICE std::int64_t items() const { return kept.count * blocks; }
  /// The end of the block that begins at an element.
  ACCRUE_DEVICE std::int64_t end_of_block(std::int64_t begin) const {
    return begin + kSumBlock < summed.count ? begin + kSumBlock : summed.count;
  }
  ACCRUE_DEVICE A load(const T* first, std::int64_t j) const {
    const A value = first[summed.offsets(j)[0]];
    return squares ? value * value : value;
  }
};

/// The index of this warp among all.
ACCRUE_DEVICE std::int64_t warp_item() {
  return std::int64_t{block_x()} * kSumWarps + thread_index() / kWarpSize;
}

/// Result n * blocks + b is the sum of block b of sum n. A warp for each.
template <class T, class A>
ACCRUE_KERNEL(kSumThreads)
void sum_rows(ACCRUE_PARAMETER Summands<T, A> in, ACCRUE_PARAMETER Results<A> out) {
  const std::int64_t item = warp_item();
  if (item >= in.items()) return;
  const int lane = thread_index() % kWarpSize;
  std::int64_t block;
  const T* const first = in.x + in.kept.offsets(divide(item, in.blocks, block))[0];
  const std::int64_t begin = block * kSumBlock, end = in.end_of_block(begin);
  A partial = 0;
  ACCRUE_UNROLL_BY(4)
  for (std::int64_t j = begin + lane; j < end; j += kWarpSize) partial += in.load(first, j);
  ACCRUE_UNROLL
  for (int width = kWarpSize / 2; width > 0; width /= 2) partial += shuffle_xor(partial, width);
  if (lane == 0) out.put(item, partial + A(0));
}

/// As sum_rows, for a block of 32 sums by all threads: lanes count sums, and warp w adds the
/// partials w, w + 8, w + 16 and w + 24.
template <class T>
ACCRUE_KERNEL(kSumThreads)
void sum_columns(ACCRUE_PARAMETER Summands<T, T> in, ACCRUE_PARAMETER Results<T> out) {
  constexpr int kPartials = kSumPartials / kSumWarps;
  static_assert(kPartials == 4);
  ACCRUE_SHARED(T, sums, kSumWarps * kWarpSize);
  const int lane = thread_index() % kWarpSize, warp = thread_index() / kWarpSize;
  std::int64_t block;
  const std::int64_t n = divide(block_x(), in.blocks, block) * kWarpSize + lane;
  const std::int64_t begin = block * kSumBlock, end = in.end_of_block(begin);
  T partial[kPartials] = {};
  if (n < in.kept.count) {
    const T* const first = in.x + in.kept.offsets(n)[0];
    for (std::int64_t j = begin + warp; j < end; j += kSumPartials) {
      ACCRUE_UNROLL
      for (int p = 0; p < kPartials; ++p) {
        if (j + p * kSumWarps < end) partial[p] += in.load(first, j + p * kSumWarps);
      }
    }
  }
  sums[thread_index()] = (partial[0] + partial[2]) + (partial[1] + partial[3]);
  for (int width = kSumWarps / 2; width > 0; width /= 2) {
    sync_block();
    if (warp < width) sums[thread_index()] += sums[thread_index() + width * kWarpSize];
  }
  if (warp == 0 && n < in.kept.count) out.put(n * in.blocks + block, sums[lane] + T(0));
}

/// Result n * groups + g is the aligned tree over 32 of `count` nodes of sum n. A warp for each.
template <class A>
ACCRUE_KERNEL(kSumThreads)
void fold_sums(const A* nodes,
               std::int64_t count,
               std::int64_t groups,
               std::int64_t sums,
               ACCRUE_PARAMETER Results<A> out) {
  const std::int64_t item = warp_item();
  if (item >= sums * groups) return;
  const int lane = thread_index() % kWarpSize;
  std::int64_t group;
  const std::int64_t n = divide(item, groups, group), begin = group * kWarpSize;
  const std::int64_t present = count - begin;
  A node = lane < present ? nodes[n * count + begin + lane] : A(0);
  ACCRUE_UNROLL
  for (int width = 1; width < kWarpSize; width *= 2) {
    const A right = shuffle_down(node, width);
    if (lane + width < present) node = node + right;
  }
  if (lane == 0) out.put(item, node);
}

Launch warps(const char* name, std::int64_t items, Stream stream) {
  return {.name = name,
          .grid_x = (items + kSumWarps - 1) / kSumWarps,
          .threads = kSumThreads,
          .stream = stream};
}

template <class A>
void fold(const char* name,
          const A* nodes,
          std::int64_t count,
          std::int64_t sums,
          const Results<A>& out,
          Stream stream) {
  const std::int64_t groups = (count + kWarpSize - 1) / kWarpSize;
  const auto start = [&](const Results<A>& results) {
    launch(warps(name, sums * groups, stream), fold_sums<A>, nodes, count, groups, sums, results);
  };
  if (groups == 1) return start(out);
  Workspace next(static_cast<std::size_t>(sums * groups) * sizeof(A), stream);
  start({next.as<A>(), Layouts<1>({sums * groups}, {Shape{1}})});
  fold<A>(name, next.as<A>(), groups, sums, out, stream);
}

template <class T, class A>
void sum_blocks(const char* name, const Summands<T, A>& in, const Results<A>& out, Stream stream) {
  if constexpr (std::is_same_v<T, A>) {
    const bool are_neighbours = in.kept.rank > 0 && in.kept.stride[0][0] == 1;
    if (are_neighbours && (in.summed.rank == 0 || in.summed.stride[0][0] != 1)) {
      Launch how = warps(name, 0, stream);
      how.grid_x = (in.kept.count + kWarpSize - 1) / kWarpSize * in.blocks;
      return launch(how, sum_columns<T>, in, out);
    }
  }
  launch(warps(name, in.kept.count * in.blocks, stream), sum_rows<T, A>, in, out);
}

template <class T, class A>
void sum(const char* name, Summands<T, A> in, const Results<A>& out, Stream stream) {
  const std::int64_t sums = in.kept.count;
  if (sums == 0) return;
  in.blocks = in.summed.count > kSumBlock ? (in.summed.count + kSumBlock - 1) / kSumBlock : 1;
  if (in.blocks == 1) return sum_blocks(name, in, out, stream);
  Workspace blocks(static_cast<std::size_t>(sums * in.blocks) * sizeof(A), stream);
  sum_blocks<T, A>(name, in, {blocks.as<A>(), Layouts<1>({sums * in.blocks}, {Shape{1}})}, stream);
  fold<A>(name, blocks.as<A>(), in.blocks, sums, out, stream);
}

template <class T>
void sum_matrix(const RowSum<T>& args, Stream stream) {
  const auto& x = args.x;
  sum<T, T>(args.kName,
            {x.data,
             Layouts<1>({x.rows}, {Shape{x.row_stride}}),
             Layouts<1>({x.cols}, {Shape{x.col_stride}}),
             1,
             args.squares},
            {args.sum, Layouts<1>({x.rows}, {Shape{1}})},
            stream);
}

}  // namespace

void launch_cuda(const RowSum<float>& args, Stream stream) { sum_matrix(args, stream); }
void launch_cuda(const RowSum<double>& args, Stream stream) { sum_matrix(args, stream); }

void launch_cuda(const SumDims& args, Stream stream) {
  const SumSplit split(args);
  check_arguments(args, split);
  const Shape strides = split.permuted(args.x).strides();
  const auto num_kept = static_cast<std::size_t>(split.kept.rank());
  const std::span all(strides.begin(), strides.end());
  visit_floating(args.x.dtype(), name_of(args), [&]<class T>(T) {
    sum<T, T>(name_of(args),
              {args.x.data<T>(),
               Layouts<1>(split.kept, {Shape(all.first(num_kept))}),
               Layouts<1>(split.summed, {Shape(all.subspan(num_kept))}),
               1,
               args.squares},
              {args.y.mutable_data<T>(), Layouts<1>(split.kept, {args.y.strides()})},
              stream);
  });
}

double launch_cuda(const SquareSum& args, Stream stream) {
  std::vector<double> of_tensors(args.tensors.size());
  const std::size_t bytes = of_tensors.size() * sizeof(double);
  const Workspace results(bytes, stream);
  double* next = results.as<double>();
  for (const Tensor& x : args.tensors) {
    visit_floating(x.dtype(), args.kName, [&]<class T>(T) {
      const Layouts<1> one({}, {Shape{}});
      sum<T, double>(args.kName,
                     {x.data<T>(), one, Layouts<1>(x.shape(), {x.strides()}), 1, true},
                     {next, one},
                     stream);
    });
    ++next;
  }
  results.download(of_tensors.data(), bytes);
  return std::accumulate(of_tensors.begin(), of_tensors.end(), args.start);
}

}  // namespace accrue::kernels
