// Split invariance (contract 1, 2, 5 to 7): every split of a window gives a parameter the same
// gradient, the one that plain loops over lanes give.
#include "accrue/autograd/engine.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/op_case.h"
#include "accrue/tests/support/window_reference.h"

#include <cmath>

using namespace accrue;
using namespace accrue::test;

namespace {

struct Counts {
  int windows = 0, splits = 0;
};

/// One window of a row's operation.
struct Problem {
  const OpCase& op;
  WindowSpan span;
  std::int64_t rows;           ///< entries of dimension 0 per sample
  std::vector<Tensor> inputs;  ///< of the whole window
  Tensor dy = {};
  float weight = 1;

  bool is_batch(std::size_t input) const { return op.inputs[input].role == Role::samples; }
  /// Entries of the result per sample.
  std::int64_t rows_of_result() const { return dy.size(0) / span.size; }
};

// ---- drawing ----

/// In one of five entries the gradient is zero and the inputs are not finite, like padding, where a
/// label is ignored.
void draw_padding(Problem& problem, std::mt19937_64& random) {
  const std::int64_t count = problem.span.size * problem.rows;
  const std::int64_t ratio = problem.dy.size(0) / count;
  for (std::int64_t i = 0; i < count; ++i) {
    if (random() % 5 != 0) continue;
    problem.dy.narrow(0, i * ratio, ratio).fill(random() % 2 == 0 ? 0.0 : -0.0);
    for (std::size_t k = 0; k < problem.inputs.size(); ++k) {
      Tensor& x = problem.inputs[k];
      if (problem.op.inputs[k].domain == Domain::classes_or_ignored) x.select(0, i).fill(-100);
      if (!problem.is_batch(k) || !is_floating(x.dtype())) continue;
      x.select(0, i).fill(random() % 2 == 0 ? NAN : HUGE_VAL);
    }
  }
}

Problem draw_problem(const OpCase& op,
                     std::vector<Shape> shapes,
                     const WindowSpan& span,
                     std::int64_t rows,
                     std::mt19937_64& random) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (op.inputs[i].role == Role::samples) shapes[i][0] = span.size * rows;
  }
  Problem problem{op, span, rows, draw_all(op, shapes, DType::float32, random)};
  const Array y = op.forward(arrays_of(problem.inputs));
  problem.dy = draw_gradient(y.shape, DType::float32, random);
  problem.weight = static_cast<float>(span.size * rows);
  draw_padding(problem, random);
  return problem;
}

// ---- both sides ----

Arrays reference_gradients(const Problem& problem) {
  const Arrays inputs = arrays_of(problem.inputs);
  const Array y = problem.op.forward(inputs), dy = array_of(problem.dy);
  std::vector<std::vector<std::vector<float>>> lanes(inputs.size());  // of each input
  for (int lane = 0; lane < problem.span.lanes.count; ++lane) {
    const auto [begin, end] = lane_positions(problem.span, lane);
    Arrays x = inputs;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (problem.is_batch(i)) x[i] = entries(x[i], begin * problem.rows, end * problem.rows);
    }
    const std::int64_t rows = problem.rows_of_result();
    const Arrays gradients = problem.op.backward(
        x, entries(y, begin * rows, end * rows), entries(dy, begin * rows, end * rows));
    for (std::size_t i = 0; i < x.size(); ++i) lanes[i].push_back(gradients[i].values);
  }
  Arrays result = inputs;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (problem.op.inputs[i].role != Role::parameter) continue;
    result[i].values = tree(lanes[i]);
    for (float& value : result[i].values) value /= problem.weight;
  }
  return result;
}

void run_window(const Problem& problem,
                const std::vector<Range>& micro_batches,
                std::span<const Variable> leaves) {
  Window window;
  window.begin(problem.span);
  for (const auto& [begin, end] : micro_batches) {
    const MicroBatch scope(window, begin, end);
    std::vector<Variable> x;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Tensor& input = problem.inputs[i];
      const std::int64_t rows = problem.rows;
      x.push_back(
          problem.is_batch(i)
              ? Variable(
                    input.narrow(0, begin * rows, (end - begin) * rows).with_sample_axis({0, rows}))
              : leaves[i]);
    }
    const std::int64_t rows = problem.rows_of_result();
    Engine({}).run(problem.op.function(x),
                   problem.dy.narrow(0, begin * rows, (end - begin) * rows));
  }
  window.finish(problem.weight);
}

void sweep_window(const Problem& problem, std::mt19937_64& random, Counts& counts) {
  const Arrays wanted = reference_gradients(problem);
  std::vector<Variable> leaves;
  for (const Tensor& x : problem.inputs) {
    leaves.push_back(is_floating(x.dtype()) ? Variable::leaf(x) : Variable(x));
  }
  const std::vector<std::vector<Range>> splits = splits_of(problem.span.size, random);
  for_each_cpu_path([&] {
    for (std::size_t split = 0; split < splits.size(); ++split) {
      CAPTURE(split);
      run_window(problem, splits[split], leaves);
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (problem.op.inputs[i].role != Role::parameter) continue;
        CAPTURE(i);
        CHECK(same_bits(leaves[i].grad(), wanted[i]));
        leaves[i].zero_grad();
      }
      ++counts.splits;
    }
  });
  ++counts.windows;
}

void sweep_row(const OpCase& op,
               const std::vector<Shape>& shapes,
               std::int64_t nominal_size,
               std::mt19937_64& random,
               Counts& counts) {
  const std::vector<int> lane_counts = is_quick() ? std::vector{1, 8} : std::vector{1, 2, 4, 8, 16};
  for (const int lanes : lane_counts) {
    for (const std::int64_t rows : {1, 3}) {
      WindowSpan span{.lanes = {.nominal_size = nominal_size, .count = lanes}, .end_lane = lanes};
      span.size = random() % 3 == 0 ? 1 + static_cast<std::int64_t>(random() % nominal_size)
                                    : nominal_size;  // one in three windows is a short tail
      CAPTURE(lanes);
      CAPTURE(rows);
      CAPTURE(span.size);
      sweep_window(draw_problem(op, shapes, span, rows, random), random, counts);
    }
  }
}

/// Rows whose products take long: these sweep one size of windows.
bool is_large(const std::vector<Shape>& shapes) {
  const std::int64_t products = numel(shapes[0]) * (shapes.size() > 1 ? numel(shapes[1]) : 1);
  return products > 10'000 || std::any_of(shapes.begin(), shapes.end(), [](const Shape& shape) {
           return numel(shape) > 500;
         });
}

bool has_elements(const std::vector<Shape>& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return numel(s) > 0; });
}

}  // namespace

TEST_CASE("sweeps.splits: every split of a window gives a parameter the gradient of the lanes") {
  std::mt19937_64 random(4);
  Counts counts;
  int num_rows = 0;
  std::vector<std::int64_t> sizes = {30, 24};  // large rows sweep the first
  for (std::int64_t b = 1; b <= 17; ++b) sizes.push_back(b);
  if (is_quick()) sizes = {13, 1, 6};
  for (const OpCase& op : op_cases()) {
    if (!op.has(Role::samples) || !op.has(Role::parameter)) continue;
    ++num_rows;
    CAPTURE(op.name);
    for (const std::vector<Shape>& shapes : op.shapes) {
      if (!has_elements(shapes)) continue;
      CAPTURE(shapes[0]);
      for (const std::int64_t size : sizes) {
        if (is_large(shapes) && size != sizes[0]) continue;
        CAPTURE(size);
        sweep_row(op, shapes, size, random, counts);
      }
    }
  }
  MESSAGE("every split of a window gives the gradient of the lanes: "
          << counts.splits << " splits of " << counts.windows << " windows, of " << num_rows
          << " rows, on all CPU paths");
}
