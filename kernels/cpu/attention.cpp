// Attention on the CPU: blocks of query rows, whose weights are made, used and forgotten.
#include "accrue/kernels/cpu/attention.h"

#include "accrue/kernels/attention.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/linear.h"
#include "accrue/kernels/matrices.h"
#include "accrue/kernels/softmax.h"

#include <algorithm>
#include <vector>

namespace accrue::kernels {
namespace {

constexpr std::int64_t kBlockRows = 32;

template <class T>
Matrix<T> rows_of(const Matrix<T>& m, std::int64_t begin, std::int64_t end) {
  return {m.data + begin * m.row_stride, end - begin, m.cols, m.row_stride, m.col_stride};
}

template <class T>
Matrix<T> cols_of(const Matrix<T>& m, std::int64_t begin, std::int64_t end) {
  return {m.data + begin * m.col_stride, m.rows, end - begin, m.row_stride, m.col_stride};
}

/// c continues a chain over k of a(r, k) * b(k, c), or starts it at +0.
template <class T>
void multiply(const Matrix<T>& a, const Matrix<const T>& b, const Matrix<T>& c, bool continues) {
  const LaneInstruction program[] = {continues ? LaneInstruction::load(0) : LaneInstruction::zero(),
                                     LaneInstruction::chain(0, a.cols),
                                     LaneInstruction::store(0)};
  const GemmSlot<T> slot{c.data, c.row_stride};
  gemm<T>({a, b, {&slot, 1}, {program, 1, 0}});
}

/// The query rows [begin, end) of one matrix of a batch.
template <class T>
struct Block {
  Matrix<const T> q, k, v;
  bool causal;
  T scale;
  std::int64_t begin, end;

  std::int64_t num_rows() const { return end - begin; }
  /// Keys that all rows of the block see, and those that any does.
  std::int64_t shared_keys() const { return causal ? begin : k.rows; }
  std::int64_t all_keys() const { return causal ? end : k.rows; }
  std::int64_t keys_of(std::int64_t row) const { return causal ? begin + row + 1 : k.rows; }

  /// A matrix of this block's rows and all keys in `space`.
  Matrix<T> scores_in(T* space) const { return row_major(space, num_rows(), all_keys()); }

  void fill_weights(const Matrix<T>& w) const {
    launch_cpu(Matmul<T>{rows_of(q, begin, end), rows_of(k, 0, all_keys()).transposed(), w});
    for (std::int64_t r = 0; r < num_rows(); ++r) {
      const Matrix<T> row{&w(r, 0), 1, keys_of(r), w.row_stride, 1};
      for (std::int64_t j = 0; j < row.cols; ++j) row(0, j) = row(0, j) * scale;
      launch_cpu(SoftmaxForward<T>{SoftmaxKind::plain, row, row});
    }
  }

  /// t from p, in place.
  void finish_scores(const Matrix<T>& w, const Matrix<T>& p) const {
    for (std::int64_t r = 0; r < num_rows(); ++r) {
      const Matrix<T> w_row{&w(r, 0), 1, keys_of(r), w.row_stride, 1};
      const Matrix<T> row{&p(r, 0), 1, keys_of(r), p.row_stride, 1};
      launch_cpu(SoftmaxBackward<T>{SoftmaxKind::plain, w_row, row, row});
      for (std::int64_t j = 0; j < row.cols; ++j) row(0, j) = row(0, j) * scale;
    }
  }

  /// out = the chain over keys of x(i, j) * y(j, :), for rows of the block.
  void over_keys(const Matrix<T>& x, const Matrix<const T>& y, const Matrix<T>& out) const {
    const Matrix<T> rows = rows_of(out, begin, end);
    const std::int64_t shared = shared_keys();
    multiply(cols_of(x, 0, shared), rows_of(y, 0, shared), rows, false);
    if (!causal) return;
    const TriangleProduct<T> args{cols_of(x, shared, end), rows_of(y, shared, end), rows, true};
    ACCRUE_DISPATCH(triangle_product, args);
  }

  /// Continues out(j, :), the chain over query rows of x(i, j) * y(i, :), by the block's rows.
  void over_rows(const Matrix<T>& x, const Matrix<const T>& y, const Matrix<T>& out) const {
    const Matrix<const T> rows = rows_of(y, begin, end);
    const std::int64_t shared = shared_keys();
    multiply(cols_of(x, 0, shared).transposed(), rows, rows_of(out, 0, shared), true);
    if (!causal) return;
    const TriangleProduct<T> args{
        cols_of(x, shared, end).transposed(), rows, rows_of(out, shared, end), false};
    ACCRUE_DISPATCH(triangle_product, args);
  }
};

/// Calls body(index, block, space) for all blocks of all matrices: rows ascend, and one thread has
/// all blocks of a matrix. `space` holds two matrices of scores.
template <class T, class Args, class Body>
void for_blocks(const Args& args, const Body& body) {
  const Matrices<const T> q(args.q), k(args.k), v(args.v);
  const std::int64_t num_rows = args.q.size(-2), num_keys = args.k.size(-2);
  parallel_for(q.count(), 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<T> space(
        static_cast<std::size_t>(2 * kBlockRows * std::max<std::int64_t>(num_keys, 1)));
    for (std::int64_t index = first; index < last; ++index) {
      for (std::int64_t begin = 0; begin < num_rows; begin += kBlockRows) {
        const std::int64_t end = std::min(begin + kBlockRows, num_rows);
        const Block<T> block{
            q[index], k[index], v[index], args.causal, static_cast<T>(args.scale), begin, end};
        body(index, block, space.data());
      }
    }
  });
}

template <class T>
void run(const AttentionForward& args) {
  Tensor y_tensor = args.y;
  const Matrices<T> y(y_tensor);
  for_blocks<T>(args, [&](std::int64_t index, const Block<T>& block, T* space) {
    const Matrix<T> w = block.scores_in(space);
    block.fill_weights(w);
    block.over_keys(w, block.v, y[index]);
  });
}

/// A gradient that is wanted, all +0.
template <class T>
Matrices<T> start_at_zero(Tensor& gradient) {
  std::fill_n(gradient.mutable_data<T>(), gradient.numel(), T(0));
  return Matrices<T>(gradient);
}

template <class T>
void run(const AttentionBackward& args) {
  Tensor outputs[] = {args.dq, args.dk, args.dv};
  std::vector<Matrices<T>> gradients;
  for (Tensor& output : outputs) {
    if (!output.defined()) output = Tensor::empty({0, 0}, args.q.dtype());
    gradients.push_back(start_at_zero<T>(output));
  }
  const bool wants_scores = args.dq.defined() || args.dk.defined();
  const Matrices<const T> dy(args.dy);
  for_blocks<T>(args, [&](std::int64_t index, const Block<T>& block, T* space) {
    const Matrix<T> w = block.scores_in(space);
    block.fill_weights(w);
    if (args.dv.defined()) block.over_rows(w, dy[index], gradients[2][index]);
    if (!wants_scores) return;
    const Matrix<T> t = block.scores_in(space + kBlockRows * block.k.rows);
    const Matrix<const T> dy_rows = rows_of(dy[index], block.begin, block.end);
    launch_cpu(Matmul<T>{dy_rows, rows_of(block.v, 0, block.all_keys()).transposed(), t});
    block.finish_scores(w, t);
    if (args.dq.defined()) block.over_keys(t, block.k, gradients[0][index]);
    if (args.dk.defined()) block.over_rows(t, block.q, gradients[1][index]);
  });
}

}  // namespace

void launch_cpu(const AttentionForward& args) {
  visit_floating(args.q.dtype(), args.kName, [&]<class T>(T) { run<T>(args); });
}

void launch_cpu(const AttentionBackward& args) {
  visit_floating(args.q.dtype(), args.kName, [&]<class T>(T) { run<T>(args); });
}

}  // namespace accrue::kernels
