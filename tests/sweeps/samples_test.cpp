// Sample axes (contract 13): what an operation makes of samples knows them or is mixed, whether it
// is recorded or not. Any dimension of any input may count samples here.
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/core/generator.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/op_case.h"

#include <algorithm>
#include <ostream>

using namespace accrue;
using namespace accrue::test;

namespace accrue {

std::ostream& operator<<(std::ostream& out, SampleAxis axis) {
  return out << "dim " << axis.dim << ", rows " << axis.rows;
}

}  // namespace accrue

namespace {

constexpr SampleAxis kConstant{}, kMixed = SampleAxis::mixed();

struct Counts {
  int calls = 0, known = 0, refused = 0;
};

/// One call of a row: its inputs, of which some know samples.
struct Problem {
  const OpCase& op;
  std::vector<Tensor> inputs;

  bool has(bool (*is)(SampleAxis)) const {
    return std::any_of(
        inputs.begin(), inputs.end(), [&](const Tensor& x) { return is(x.sample_axis()); });
  }
  /// Parameters without samples are leaves, all else is the result of operations.
  std::vector<Variable> variables() const {
    std::vector<Variable> result;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& x = inputs[i];
      if (!is_floating(x.dtype())) {
        result.emplace_back(x);
        continue;
      }
      const Variable leaf = Variable::leaf(x);
      const bool is_parameter =
          op.inputs[i].role == Role::parameter && x.sample_axis() == SampleAxis{};
      result.emplace_back(x, is_parameter ? leaf.node() : (leaf * 1.0).node());
    }
    return result;
  }
  Variable result() const {
    manual_seed(1);
    return op.function(variables());
  }
};

/// Nothing, mixed samples, or samples in one of the dimensions.
SampleAxis draw_axis(const Tensor& x, std::mt19937_64& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (x.rank() == 0 || below(3) == 0) return below(8) == 0 ? kMixed : kConstant;
  const int dim = below(x.rank());
  const std::int64_t size = x.size(dim);
  return {dim, size > 0 && size % 2 == 0 && below(3) == 0 ? 2 : 1};
}

/// What becomes of the samples [first, first + 1) of the inputs shows in theirs of the result only.
void check_independence(const Problem& problem, const Tensor& y, std::mt19937_64& random) {
  const SampleAxis axis = y.sample_axis();
  if (y.numel() == 0) return;
  const std::int64_t num_samples = y.size(axis.dim) / axis.rows;
  const auto sample = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(num_samples));
  Problem other = problem;
  for (Tensor& x : other.inputs) {
    const SampleAxis of_x = x.sample_axis();
    if (!of_x.known()) continue;
    CHECK(x.size(of_x.dim) / of_x.rows == num_samples);
    x = x.clone();
    Tensor part = x.with_sample_axis({}).narrow(of_x.dim, sample * of_x.rows, of_x.rows);
    part.fill(is_floating(x.dtype()) ? 0.875 : 0);
  }
  const Tensor z = other.result().value();
  const std::int64_t begin = sample * axis.rows, end = begin + axis.rows;
  const std::int64_t behind = y.size(axis.dim) - end;
  CHECK(equal_bits(y.narrow(axis.dim, 0, begin), z.narrow(axis.dim, 0, begin)));
  CHECK(equal_bits(y.narrow(axis.dim, end, behind), z.narrow(axis.dim, end, behind)));
}

/// In a window the call is refused, or knows as much as outside.
void check_in_window(const Problem& problem, SampleAxis wanted, Counts& counts) {
  Window window;
  window.begin({.lanes = {.nominal_size = 64, .count = 1}, .size = 64, .end_lane = 1});
  const MicroBatch scope(window, 0, 64);
  try {
    const std::vector<Variable> x = problem.variables();
    const Variable result = problem.op.function(x);
    CHECK(result.value().sample_axis() == wanted);
    const bool is_input = std::any_of(
        x.begin(), x.end(), [&](const Variable& v) { return v.node() == result.node(); });
    CHECK((is_input || !result.requires_grad() || !wanted.is_mixed()));
  } catch (const StateError&) {
    ++counts.refused;
  }
}

void sweep(const Problem& problem, std::mt19937_64& random, Counts& counts) {
  const Tensor y = problem.result().value();
  const SampleAxis axis = y.sample_axis();
  if (problem.has([](SampleAxis a) { return a.is_mixed(); })) CHECK(axis == kMixed);
  if (problem.has([](SampleAxis a) { return a.known(); })) CHECK(axis != kConstant);
  {
    const NoGrad no_grad;
    CHECK(problem.result().value().sample_axis() == axis);
    check_in_window(problem, axis, counts);
  }
  check_in_window(problem, axis, counts);
  ++counts.calls;
  if (!axis.known()) return;
  check_independence(problem, y, random);
  ++counts.known;
}

}  // namespace

TEST_CASE("sweeps.samples: what is made of samples knows them or is mixed, recorded or not") {
  std::mt19937_64 random(5);
  Counts counts;
  for (const OpCase& op : op_cases()) {
    CAPTURE(op.name);
    for (const std::vector<Shape>& shapes : op.shapes) {
      for (int i = 0; i < (is_quick() ? 4 : 24); ++i) {
        Problem problem{op, draw_all(op, shapes, DType::float32, random)};
        std::string axes;
        for (Tensor& x : problem.inputs) {
          x = x.with_sample_axis(draw_axis(x, random));
          axes +=
              text(' ', x.shape(), " dim ", x.sample_axis().dim, " rows ", x.sample_axis().rows);
        }
        CAPTURE(axes);
        sweep(problem, random, counts);
      }
    }
  }
  CHECK(counts.known > 100);
  CHECK(counts.refused > 100);
  MESSAGE("calls that keep or mix samples: " << counts.calls << ", keep " << counts.known
                                             << ", refused in windows " << counts.refused);
}
