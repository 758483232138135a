// Maxima and minima with their places on CUDA.
//
// A warp, or a thread where rows lie beside each other, finds the best of 1,024 elements of a row;
// then of 1,024 candidates, until one is left. Which is better depends on no order.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/layouts.cuh"
#include "accrue/kernels/extremum_checks.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

constexpr int kSearchThreads = 256;
constexpr std::int64_t kPiece = 1024;  // elements of one search

template <class T>
struct Candidate {
  T value;
  std::int64_t place;  ///< -1: none
};

/// The rows, each of which becomes one candidate for each piece.
template <class T>
struct Search {
  const T* x;
  const std::int64_t* places;  ///< of the elements of x in their rows; null: their indices
  Layouts<1> kept;
  std::int64_t length, stride;  ///< of a row, and between its elements
  std::int64_t pieces;
  bool largest, is_by_thread;
  T* values;
  std::int64_t* indices;

  ACCRUE_DEVICE bool is_better(const Candidate<T>& a, const Candidate<T>& b) const {
    if (a.place < 0 || b.place < 0) return b.place < 0;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan;
    if (a_is_nan || a.value == b.value) return a.place < b.place;
    return largest == (a.value > b.value);
  }
  /// The best of elements begin, begin + step, ... below `end` of row n.
  ACCRUE_DEVICE Candidate<T> find(std::int64_t n,
                                  std::int64_t begin,
                                  std::int64_t end,
                                  int step) const {
    const std::int64_t row = kept.offsets(n)[0];
    Candidate<T> best{T(0), -1};
    ACCRUE_UNROLL_BY(4)
    for (std::int64_t j = begin; j < end; j += step) {
      const std::int64_t at = row + j * stride;
      const Candidate<T> it{x[at], places == nullptr ? j : places[at]};
      if (is_better(it, best)) best = it;
    }
    return best;
  }
};

template <class T>
ACCRUE_KERNEL(kSearchThreads)
void search_kernel(ACCRUE_PARAMETER Search<T> search) {
  const std::int64_t thread = std::int64_t{block_x()} * kSearchThreads + thread_index();
  const int team = search.is_by_thread ? 1 : kWarpSize, member = thread_index() % team;
  const std::int64_t item = thread / team;
  if (item >= search.kept.count * search.pieces) return;
  std::int64_t piece;
  const std::int64_t n = divide(item, search.pieces, piece), begin = piece * kPiece;
  const std::int64_t end = begin + kPiece < search.length ? begin + kPiece : search.length;
  Candidate<T> best = search.find(n, begin + member, end, team);
  for (int width = team / 2; width > 0; width /= 2) {
    const Candidate<T> other{shuffle_xor(best.value, width), shuffle_xor(best.place, width)};
    if (search.is_better(other, best)) best = other;
  }
  if (member > 0) return;
  search.values[item] = best.value;
  search.indices[item] = best.place;
}

template <class T>
void find_best(const char* name, Search<T> search, Stream stream) {
  const std::int64_t rows = search.kept.count;
  search.pieces = (search.length + kPiece - 1) / kPiece;
  const auto start = [&] {
    const std::int64_t threads = rows * search.pieces * (search.is_by_thread ? 1 : kWarpSize);
    launch({.name = name,
            .grid_x = (threads + kSearchThreads - 1) / kSearchThreads,
            .threads = kSearchThreads,
            .stream = stream},
           search_kernel<T>,
           search);
  };
  if (search.pieces == 1) return start();
  const std::int64_t count = rows * search.pieces;
  Workspace values(static_cast<std::size_t>(count) * sizeof(T), stream);
  Workspace places(static_cast<std::size_t>(count) * sizeof(std::int64_t), stream);
  const Search<T> next{values.as<T>(),
                       places.as<std::int64_t>(),
                       Layouts<1>({rows}, {Shape{search.pieces}}),
                       search.pieces,
                       1,
                       1,
                       search.largest,
                       false,
                       search.values,
                       search.indices};
  search.values = values.as<T>();
  search.indices = places.as<std::int64_t>();
  start();
  find_best(name, next, stream);
}

}  // namespace

void launch_cuda(const Extremum& args, Stream stream) {
  const SearchedRows rows(args);
  Shape strides = rows.x.strides();
  const std::int64_t stride = strides.back();
  strides.erase(strides.rank() - 1);
  visit_floating(args.x.dtype(), args.operation, [&]<class T>(T) {
    const Layouts<1> kept(rows.kept, {strides});
    if (kept.count == 0) return;
    const bool is_by_thread = kept.rank > 0 && kept.stride[0][0] == 1 && stride != 1;
    find_best<T>(args.operation,
                 {rows.x.data<T>(),
                  nullptr,
                  kept,
                  rows.length,
                  stride,
                  1,
                  args.largest,
                  is_by_thread,
                  args.values.mutable_data<T>(),
                  args.indices.mutable_data<std::int64_t>()},
                 stream);
  });
}

}  // namespace accrue::kernels
