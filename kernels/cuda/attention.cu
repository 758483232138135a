// Attention on CUDA: products of a batch, and softmax on their rows, for as many query rows at a
// time as fit a workspace that stays in the GPU's second cache.
#include "accrue/kernels/attention.h"
#include "accrue/kernels/cuda/batch.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/only_float32.h"
#include "accrue/kernels/cuda/row_team.cuh"
#include "accrue/kernels/cuda/softmax_row.cuh"

#include <algorithm>

namespace accrue::kernels {
namespace {

using namespace cuda;

constexpr std::int64_t kScores = std::int64_t{1} << 22;  ///< elements of a workspace
constexpr std::int64_t kTileRows = 64;

/// Rows of scores; row n, of query first_row + n % rows, has keys(n) of them.
struct Scores {
  float* data;
  std::int64_t rows, row_stride, first_row;  ///< of each matrix
  bool causal;
  float scale;

  ACCRUE_DEVICE float* at(std::int64_t n) const { return data + n * row_stride; }
  ACCRUE_DEVICE std::int64_t keys(std::int64_t n) const {
    return causal ? first_row + n % rows + 1 : row_stride;
  }
};

/// Scores become weights.
struct Weigh {
  Scores scores;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    float* const x = scores.at(n);
    const std::int64_t count = scores.keys(n);
    const float scale = scores.scale;
    const auto scaled = [=](std::int64_t c) { return x[c] * scale; };
    const SoftmaxRow row = softmax_row(team, count, scaled);
    for (std::int64_t c = team.index(); c < count; c += Team::kThreads)
      x[c] = row.weight(scaled(c));
  }
};

/// p becomes t, the gradient of the scores.
struct WeighGradient {
  Scores weights, gradient;

  template <class Team>
  ACCRUE_DEVICE void operator()(Team& team, std::int64_t n) const {
    const float* const w = weights.at(n);
    float* const p = gradient.at(n);
    const std::int64_t count = weights.keys(n);
    const float k = softmax_product(team, count, w, p);
    for (std::int64_t c = team.index(); c < count; c += Team::kThreads) {
      p[c] = w[c] * (p[c] - k) * weights.scale;
    }
  }
};

Matrix<const float> rows_from(Matrix<const float> m, std::int64_t begin, std::int64_t end) {
  return {m.data + begin * m.row_stride, end - begin, m.cols, m.row_stride, m.col_stride};
}

/// Query rows [row, row_end) of the matrices [first, last) of a batch, and what they see.
struct Chunk {
  Matrices<const float> q, k, v;
  bool causal;
  float scale;
  Stream stream;
  std::int64_t first = 0, last = 0, row = 0, row_end = 0;

  std::int64_t rows() const { return row_end - row; }
  std::int64_t keys() const { return causal ? row_end : k[0].rows; }
  Scores scores_in(float* space) const { return {space, rows(), keys(), row, causal, scale}; }
  std::int64_t num_rows() const { return (last - first) * rows(); }

  /// Launches a product for each matrix, whose offsets are place(i).
  template <class Place>
  void run(Product product, Triangle triangle, const Place& place) const {
    if (causal) product.triangle = triangle;
    product.diagonal = row;
    BatchOffsets offsets;
    for (std::int64_t i = first; i < last; ++i) offsets.push_back(place(i));
    launch_batch("attention", product, offsets, stream);
  }
  std::int64_t offset_of_scores(const Scores& scores, std::int64_t i) const {
    return (i - first) * rows() * scores.row_stride;
  }

  /// out(i, j) = the chain over columns of x(i, :) * y(j, :).
  void score(const Matrices<const float>& x,
             const Matrices<const float>& y,
             const Scores& out) const {
    Product product;
    product.a = rows_of(rows_from(x[0], row, row_end));
    product.b = rows_of(rows_from(y[0], 0, keys()));
    product.add(LaneInstruction::zero());
    product.add(LaneInstruction::chain(0, x[0].cols));
    product.add(LaneInstruction::store(0));
    product.few_slots[0] = {out.data, out.row_stride};
    run(product, Triangle::upper_outputs, [&](std::int64_t i) {
      return std::array{offset_of(x, i), offset_of(y, i), offset_of_scores(out, i)};
    });
  }

  /// out(i, :) = the chain over keys of x(i, j) * y(j, :).
  void over_keys(const Scores& x,
                 const Matrices<const float>& y,
                 const Matrices<float>& out) const {
    Product product;
    product.a = {x.data, rows(), x.row_stride, 1};
    product.b = rows_of(rows_from(y[0], 0, keys()).transposed());
    product.add(LaneInstruction::zero());
    product.add(LaneInstruction::chain(0, keys()));
    product.add(LaneInstruction::store(0));
    product.few_slots[0] = {out[0].data + row * out[0].row_stride, out[0].row_stride};
    run(product, Triangle::upper, [&](std::int64_t i) {
      return std::array{offset_of_scores(x, i), offset_of(y, i), offset_of(out, i)};
    });
  }

  /// Continues out(j, :), the chain over query rows of x(i, j) * y(i, :), by these rows.
  void over_rows(const Scores& x,
                 const Matrices<const float>& y,
                 const Matrices<float>& out) const {
    Product product;
    product.a = {x.data, keys(), 1, x.row_stride};
    product.b = rows_of(rows_from(y[0], row, row_end).transposed());
    product.add(LaneInstruction::load(0));
    product.add(LaneInstruction::chain(0, rows()));
    product.add(LaneInstruction::store(0));
    product.few_slots[0] = {out[0].data, out[0].row_stride};
    run(product, Triangle::lower, [&](std::int64_t i) {
      return std::array{offset_of_scores(x, i), offset_of(y, i), offset_of(out, i)};
    });
  }

  void fill_weights(const Scores& weights) const {
    score(q, k, weights);
    launch_rows("attention_weights", num_rows(), keys(), Weigh{weights}, stream);
  }
};

/// Calls body(chunk, space) for the whole batch, query rows ascending; space(i) is memory for the
/// scores of a chunk, of which it needs `num_scores`.
template <class Args, class Body>
void for_chunks(const Args& args, int num_scores, Stream stream, const Body& body) {
  Chunk chunk{Matrices<const float>(args.q),
              Matrices<const float>(args.k),
              Matrices<const float>(args.v),
              args.causal,
              static_cast<float>(args.scale),
              stream};
  const std::int64_t count = chunk.q.count();
  if (count == 0) return;
  const std::int64_t all_rows = chunk.q[0].rows, width = std::max<std::int64_t>(chunk.k[0].rows, 1);
  const std::int64_t fit = std::max(kScores / width / kTileRows * kTileRows, kTileRows);
  const std::int64_t rows = std::max<std::int64_t>(std::min(all_rows, fit), 1);
  const std::int64_t matrices =
      rows < all_rows ? 1 : std::clamp<std::int64_t>(kScores / (rows * width), 1, count);
  const std::int64_t size = matrices * rows * width;
  Workspace memory(static_cast<std::size_t>(num_scores * size) * sizeof(float), stream);
  const auto space = [&](int i) { return memory.as<float>() + i * size; };
  for (chunk.first = 0; chunk.first < count; chunk.first = chunk.last) {
    chunk.last = std::min(chunk.first + matrices, count);
    for (chunk.row = 0; chunk.row < all_rows; chunk.row = chunk.row_end) {
      chunk.row_end = std::min(chunk.row + rows, all_rows);
      body(chunk, space);
    }
  }
}

/// A gradient to which chunks add, all +0; undefined if it is not wanted.
void start_at_zero(Tensor gradient, Stream stream) {
  if (!gradient.defined() || gradient.numel() == 0) return;
  Product product;
  product.a.count = gradient.numel() / gradient.shape().back();
  product.b.count = gradient.shape().back();
  product.add(LaneInstruction::zero());
  product.add(LaneInstruction::store(0));
  product.few_slots[0] = {gradient.mutable_data<float>(), product.b.count};
  launch_product("attention_zero", product, stream);
}

}  // namespace

void launch_cuda(const AttentionForward& args, Stream stream) {
  check_float32(args.kName, args.q);
  Tensor output = args.y;
  const Matrices<float> y(output);
  for_chunks(args, 1, stream, [&](const Chunk& chunk, const auto& space) {
    const Scores weights = chunk.scores_in(space(0));
    chunk.fill_weights(weights);
    chunk.over_keys(weights, chunk.v, y);
  });
}

void launch_cuda(const AttentionBackward& args, Stream stream) {
  check_float32(args.kName, args.q);
  Tensor outputs[] = {args.dq, args.dk, args.dv};
  std::vector<Matrices<float>> gradients;
  for (Tensor& output : outputs) {
    start_at_zero(output, stream);
    if (!output.defined()) output = Tensor::empty({0, 0});
    gradients.emplace_back(output);
  }
  const bool wants_scores = args.dq.defined() || args.dk.defined();
  const Matrices<const float> dy(args.dy);
  for_chunks(args, 2, stream, [&](const Chunk& chunk, const auto& space) {
    const Scores weights = chunk.scores_in(space(0)), scores = chunk.scores_in(space(1));
    chunk.fill_weights(weights);
    if (args.dv.defined()) chunk.over_rows(weights, dy, gradients[2]);
    if (!wants_scores) return;
    chunk.score(dy, chunk.v, scores);
    const WeighGradient finish{weights, scores};
    launch_rows("attention_scores", chunk.num_rows(), chunk.keys(), finish, stream);
    if (args.dq.defined()) chunk.over_keys(scores, chunk.k, gradients[0]);
    if (args.dk.defined()) chunk.over_rows(scores, chunk.q, gradients[1]);
  });
}

}  // namespace accrue::kernels
