// Row invariance (contract 10): what an operation makes of a sample, and of the gradient that comes
// back, does not depend on the samples around it.
#include "accrue/autograd/ops/views.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/op_case.h"

#include <limits>

using namespace accrue;
using namespace accrue::test;

namespace {

struct Counts {
  int batches = 0;
  std::int64_t samples = 0;
};

/// A batch, the gradient of its result, and what one pass makes of them.
struct Batch {
  std::vector<Tensor> inputs;
  Tensor dy;
  Tensor y;
  std::vector<Tensor> gradients;  ///< of the inputs that carry samples; else undefined

  std::int64_t num_samples(const OpCase& op) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (op.inputs[i].role == Role::samples) return inputs[i].size(0);
    }
    return 0;
  }
  void run(const OpCase& op) {
    const std::vector<Variable> x = variables_of(op, inputs);
    const Variable result = op.function(x);
    y = result.value();
    result.backward(dy);
    gradients.clear();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool is_batch = op.inputs[i].role == Role::samples && x[i].requires_grad();
      gradients.push_back(is_batch ? x[i].grad() : Tensor());
    }
  }
};

/// `like` with entries [begin, end) of `x` at `start`.
Tensor placed(
    const Tensor& x, std::int64_t begin, std::int64_t end, Tensor like, std::int64_t start) {
  like.narrow(0, start, end - begin).copy_from(x.narrow(0, begin, end - begin));
  return like;
}

/// `count` entries of NaN, infinity and zeros.
Tensor poison(const Tensor& x, std::int64_t count) {
  constexpr double kPoison[] = {NAN, HUGE_VAL, -HUGE_VAL, 0};
  Shape shape = x.shape();
  shape[0] = count;
  Tensor result = Tensor::zeros(shape, x.dtype(), x.device());
  for (std::int64_t i = 0; i < count && is_floating(x.dtype()); ++i) {
    result.select(0, i).fill(kPoison[i % 4]);
  }
  return result;
}

/// Samples [begin, end) of `whole` behind `before` padding samples and before `after` of them.
Batch part_of(const OpCase& op,
              const Batch& whole,
              std::int64_t begin,
              std::int64_t end,
              std::int64_t before,
              std::int64_t after) {
  const std::int64_t size = before + end - begin + after;
  Batch part;
  for (std::size_t i = 0; i < whole.inputs.size(); ++i) {
    const Tensor& x = whole.inputs[i];
    part.inputs.push_back(
        op.inputs[i].role == Role::samples ? placed(x, begin, end, poison(x, size), before) : x);
  }
  const std::int64_t rows = whole.y.size(0) / whole.num_samples(op);
  part.dy =
      placed(whole.dy, begin * rows, end * rows, poison(whole.dy, size * rows), before * rows);
  return part;
}

void compare(const OpCase& op,
             const Batch& whole,
             const Batch& part,
             std::int64_t begin,
             std::int64_t end,
             std::int64_t before) {
  const auto same = [&](const Tensor& all, const Tensor& some, std::int64_t rows) {
    const std::int64_t count = (end - begin) * rows;
    return equal_bits(all.narrow(0, begin * rows, count), some.narrow(0, before * rows, count));
  };
  const std::int64_t rows = part.y.size(0) / part.num_samples(op);
  CHECK(part.y.sample_axis() == SampleAxis{0, rows});
  CHECK(same(whole.y, part.y, rows));
  for (std::size_t i = 0; i < part.gradients.size(); ++i) {
    if (part.gradients[i].defined()) CHECK(same(whole.gradients[i], part.gradients[i], 1));
  }
}

/// Every sample alone, and parts of the batch among padding.
void sweep_parts(const OpCase& op, Batch& whole, std::mt19937_64& random, Counts& counts) {
  whole.run(op);
  const std::int64_t num_samples = whole.num_samples(op);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (std::int64_t i = 0; i < num_samples + 6; ++i) {
    const bool alone = i < num_samples;
    const std::int64_t begin = alone ? i : below(num_samples);
    const std::int64_t end = alone ? i + 1 : begin + 1 + below(num_samples - begin);
    const std::int64_t before = alone ? 0 : below(9), after = alone ? 0 : below(9);
    Batch part = part_of(op, whole, begin, end, before, after);
    part.run(op);
    CAPTURE(begin);
    CAPTURE(end);
    CAPTURE(before);
    CAPTURE(after);
    compare(op, whole, part, begin, end, before);
    counts.samples += end - begin;
    ++counts.batches;
  }
}

/// The shapes for a batch of `num_samples`; none if the row has no batch in them.
std::vector<Shape> with_samples(const OpCase& op,
                                std::vector<Shape> shapes,
                                std::int64_t num_samples) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (op.inputs[i].role != Role::samples) continue;
    if (shapes[i].rank() == 0) return {};
    shapes[i][0] = num_samples;
  }
  return shapes;
}

void sweep_shapes(const OpCase& op,
                  const std::vector<Shape>& shapes,
                  std::mt19937_64& random,
                  Counts& counts) {
  for (const bool special : {false, true}) {
    Batch whole;
    for (const Tensor& x : draw_all(op, shapes, DType::float32, random, special)) {
      whole.inputs.push_back(laid_out(x, kWritableLayouts[random() % 3]));
    }
    const Array y = op.forward(arrays_of(whole.inputs));
    whole.dy = draw_gradient(y.shape, DType::float32, random, special);
    for (const kernels::Isa isa : isas_under_test()) {
      kernels::set_isa(isa);
      sweep_parts(op, whole, random, counts);
    }
  }
}

}  // namespace

TEST_CASE("sweeps.rows: a sample's value and gradient do not depend on the samples around it") {
  std::mt19937_64 random(3);
  Counts counts;
  int num_rows = 0;
  for (const OpCase& op : op_cases()) {
    if (!op.has(Role::samples)) continue;
    ++num_rows;
    CAPTURE(op.name);
    for (const std::vector<Shape>& row : op.shapes) {
      for (const std::int64_t num_samples : {2, 5, 33}) {
        if (is_quick() && num_samples == 33) continue;
        const std::vector<Shape> shapes = with_samples(op, row, num_samples);
        if (shapes.empty()) continue;
        CAPTURE(shapes[0]);
        sweep_shapes(op, shapes, random, counts);
      }
    }
  }
  MESSAGE("a sample's bits do not depend on the samples around it: "
          << counts.samples << " samples in " << counts.batches << " batches, of " << num_rows
          << " rows");
}
