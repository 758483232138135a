// The fused linear layer and cross-entropy: the bits of both apart, in chunks, windows and graphs.
#include "accrue/autograd/ops/linear_cross_entropy.h"

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/embedding.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/core/allocator.h"
#include "accrue/core/bits.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/window_reference.h"

#include <array>
#include <cmath>
#include <limits>

using namespace accrue;
using namespace accrue::test;

namespace {

struct Sizes {
  std::int64_t rows, classes, width;
};

Tensor normal(const Shape& shape, std::mt19937_64& random, double std = 1) {
  Tensor x = Tensor::empty(shape);
  std::normal_distribution<double> draw(0, std);
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.mutable_data<float>()[i] = static_cast<float>(draw(random));
  return x;
}

/// Operands with rows that are ignored and hold no numbers, rows whose softmax is one class, and
/// gradients of zero.
struct Problem {
  Variable x, w, bias;
  Tensor target, dloss;
  CrossEntropyOptions options;

  Problem(const Sizes& sizes, bool has_bias, bool has_options, std::mt19937_64& random)
      : x(Variable::leaf(there(normal({sizes.rows, sizes.width}, random)))),
        w(Variable::leaf(there(normal({sizes.classes, sizes.width}, random)))),
        target(Tensor::zeros({sizes.rows}, DType::int64)),
        dloss(normal({sizes.rows}, random)) {
    if (has_bias) bias = Variable::leaf(there(normal({sizes.classes}, random)));
    if (has_options)
      options = {.class_weights = there(abs_of(normal({sizes.classes}, random))),
                 .label_smoothing = 0.2};
    for (std::int64_t n = 0; n < sizes.rows; ++n) {
      const auto classes = static_cast<std::uint64_t>(sizes.classes);
      target.mutable_data<std::int64_t>()[n] = static_cast<std::int64_t>(random() % classes);
      if (n % 5 == 1) target.mutable_data<std::int64_t>()[n] = -100;
      if (n % 5 == 1) x.mutable_value().select(0, n).fill(n % 2 == 0 ? NAN : HUGE_VAL);
      if (n % 7 == 2) x.mutable_value().select(0, n).fill(1e4);
      if (n % 6 == 3) dloss.mutable_data<float>()[n] = 0;
    }
    there(target);
    there(dloss);
  }
  static Tensor abs_of(Tensor x) {
    for (std::int64_t i = 0; i < x.numel(); ++i)
      x.mutable_data<float>()[i] = std::abs(x.data<float>()[i]);
    return x;
  }

  Variable fused(std::int64_t chunk_rows = 0) const {
    return linear_cross_entropy_rows(x, w, bias, target, options, chunk_rows);
  }
  Variable apart() const { return cross_entropy_rows(linear(x, w, bias), target, options); }
  std::vector<Variable> leaves() const {
    return bias.defined() ? std::vector{x, w, bias} : std::vector{x, w};
  }
};

/// The rows, and the gradients of all leaves.
std::vector<Tensor> run(const Problem& problem, const Variable& rows) {
  std::vector<Tensor> results = grad(rows, problem.leaves(), problem.dloss);
  results.push_back(rows.value());
  return results;
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(
      a, b, [](const Tensor& s, const Tensor& t) { return equal_bits(s, t); });
}

// ---- windows ----

constexpr std::int64_t kClasses = 13, kWidth = 5;

using RowsOf = Variable (*)(const Variable& x,
                            const Variable& w,
                            const Variable& bias,
                            const Tensor& target);

Variable in_chunks(const Variable& x, const Variable& w, const Variable& b, const Tensor& t) {
  return linear_cross_entropy_rows(x, w, b, t, {}, 3);
}
Variable apart(const Variable& x, const Variable& w, const Variable& b, const Tensor& t) {
  return cross_entropy_rows(linear(x, w, b), t);
}

/// A table that embeds and classifies, and a bias, used twice.
struct Tied {
  Variable table, bias;

  Variable rows(const Tensor& tokens, const Tensor& target, RowsOf rows_of) const {
    const Variable first = rows_of(embedding(table, tokens), table, bias, target);
    return first + rows_of(embedding(table, tokens) * 0.5, table, bias, target);
  }
};

/// Gradients after one window of `tokens` [samples * rows], dealt in `micro_batches`.
std::vector<Tensor> train_window(const Tensor& tokens,
                                 std::int64_t rows,
                                 int lanes,
                                 const std::vector<Range>& micro_batches,
                                 RowsOf rows_of) {
  std::mt19937_64 random(7);
  Tied net{Variable::leaf(there(normal({kClasses, kWidth}, random))),
           Variable::leaf(there(normal({kClasses}, random)))};
  const std::int64_t size = tokens.size(0) / rows;
  Window window;
  window.begin({{.nominal_size = size, .count = lanes}, size, 0, lanes});
  for (const auto& [begin, end] : micro_batches) {
    const MicroBatch scope(window, begin, end);
    const Tensor batch =
        tokens.narrow(0, begin * rows, (end - begin) * rows).with_sample_axis({0, rows});
    const Variable loss = net.rows(batch, batch, rows_of);
    Engine({}).run(loss, There::ones(loss.shape()));
    window.check_uses();
  }
  window.finish(3);
  return {net.table.grad(), net.bias.grad()};
}

}  // namespace

TEST_CASE("autograd.linear_cross_entropy: the bits are those of both apart, whatever the chunk") {
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  std::mt19937_64 random(1);
  int count = 0;
  for (const Sizes& sizes : std::vector<Sizes>{{1, 1, 1},
                                               {5, 3, 7},
                                               {17, 8, 33},
                                               {64, 65, 16},
                                               {65, 130, 5},
                                               {130, 257, 33},
                                               {9, 4, 0},
                                               {0, 4, 3}}) {
    CAPTURE(sizes.rows);
    for (const bool has_bias : {false, true}) {
      for (const bool has_options : {false, true}) {
        const Problem problem(sizes, has_bias, has_options, random);
        for_each_cpu_path([&] {
          const std::vector<Tensor> wanted = run(problem, problem.apart());
          for (const std::int64_t chunk : std::array<std::int64_t, 6>{0, 1, 7, 60, 64, kAll}) {
            CAPTURE(chunk);
            CHECK(same(run(problem, problem.fused(chunk)), wanted));
            ++count;
          }
        });
      }
    }
  }
  MESSAGE("bits of linear and cross_entropy apart: ", count, " runs");
}

TEST_CASE("autograd.linear_cross_entropy: under autocast too the bits are those of both apart") {
  std::mt19937_64 random(5);
  const Problem problem({33, 70, 16}, true, true, random);
  const std::vector<Tensor> single = run(problem, problem.apart());
  for (const DType half : {DType::bfloat16, DType::float16}) {
    const Autocast scope(half);
    const std::vector<Tensor> wanted = run(problem, problem.apart());
    CHECK_FALSE(same(wanted, single));
    for (const std::int64_t chunk : {0, 1, 7, 33})
      CHECK(same(run(problem, problem.fused(chunk)), wanted));
  }
}

TEST_CASE("autograd.linear_cross_entropy: gradients continue in grad() as those of both apart do") {
  std::mt19937_64 random(2);
  Problem problem({33, 10, 6}, true, false, random);
  const auto twice = [&](const auto& rows_of) {
    for (Variable leaf : problem.leaves()) leaf.zero_grad();
    for (int i = 0; i < 2; ++i) rows_of().backward(problem.dloss);
    return std::vector{problem.x.grad(), problem.w.grad(), problem.bias.grad()};
  };
  CHECK(same(twice([&] { return problem.fused(8); }), twice([&] { return problem.apart(); })));
}

TEST_CASE("autograd.linear_cross_entropy: any of its operands may want a gradient, or none") {
  std::mt19937_64 random(3);
  Problem problem({12, 4, 3}, true, false, random);
  const std::vector<Tensor> all = run(problem, problem.fused(5));
  for (unsigned wanted = 1; wanted < 8; ++wanted) {
    CAPTURE(wanted);
    std::vector<Variable> leaves = problem.leaves();
    for (std::size_t i = 0; i < 3; ++i) {
      leaves[i] = Variable::leaf(leaves[i].value());
      leaves[i].set_requires_grad((wanted >> i & 1) != 0);
    }
    linear_cross_entropy_rows(leaves[0], leaves[1], leaves[2], problem.target, {}, 5)
        .backward(problem.dloss);
    for (std::size_t i = 0; i < 3; ++i) {
      if ((wanted >> i & 1) == 0) {
        CHECK(!leaves[i].grad().defined());
      } else {
        CHECK(equal_bits(leaves[i].grad(), all[i]));
      }
    }
  }
  const NoGrad no_grad;
  CHECK(equal_bits(problem.fused(5).value(), all.back()));
  CHECK(!problem.fused(5).requires_grad());
}

TEST_CASE("autograd.linear_cross_entropy: a graph that is kept gives the same gradients again") {
  std::mt19937_64 random(4);
  const Problem problem({20, 6, 4}, true, true, random);
  const std::vector<Tensor> wanted = run(problem, problem.apart());
  const Variable rows = problem.fused(6);
  for (int i = 0; i < 3; ++i) {
    std::vector<Tensor> got = grad(rows, problem.leaves(), problem.dloss, {.retain_graph = true});
    got.push_back(rows.value());
    CHECK(same(got, wanted));
  }
}

TEST_CASE("autograd.linear_cross_entropy: windows give a tied table the bits of both apart") {
  std::mt19937_64 random(5);
  int count = 0;
  for (const std::int64_t rows : {1, 4}) {
    for (const std::int64_t size : {1, 6, 13}) {
      Tensor tokens = Tensor::empty({size * rows}, DType::int64);
      for (std::int64_t i = 0; i < tokens.numel(); ++i)
        tokens.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(random() % kClasses);
      there(tokens);
      for (const int lanes : {1, 2, 8}) {
        const auto splits = splits_of(size, random);
        const std::vector<Tensor> wanted = train_window(tokens, rows, lanes, splits[0], apart);
        for (const std::vector<Range>& split : splits) {
          CHECK(same(train_window(tokens, rows, lanes, split, in_chunks), wanted));
          ++count;
        }
      }
    }
  }
  MESSAGE("windows with a tied table: ", count, " splits");
}

TEST_CASE("autograd.linear_cross_entropy: a pass takes the memory of one chunk of logits") {
  constexpr std::int64_t kRows = 512, kVocabulary = 1000, kChunk = 32;
  std::mt19937_64 random(6);
  const Problem problem({kRows, kVocabulary, 4}, false, false, random);
  const auto allocated = [] { return cpu_memory_stats().allocated_bytes; };
  const std::int64_t before = allocated();
  reset_peak_cpu_memory();
  const std::vector<Tensor> results = run(problem, problem.fused(kChunk));
  const std::int64_t extra = cpu_memory_stats().peak_bytes - allocated();
  CHECK(extra >= kChunk * kVocabulary * 4);
  CHECK(extra < kChunk * kVocabulary * 4 + 32 * kRows);
  CHECK(allocated() - before < 4 * (kRows + kVocabulary) * 4 + 32 * kRows);
  const NoGrad no_grad;
  const std::int64_t idle = allocated();
  const Variable rows = problem.fused(kChunk);
  CHECK(allocated() - idle < 8 * kRows);
}
