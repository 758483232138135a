// The linear kernels against plain loops: every bit, over shapes, layouts, threads and CPU paths.
#include "accrue/kernels/linear.h"

#include "accrue/core/error.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const std::vector<std::int64_t> kSizes = {
    0, 1, 2, 3, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 40, 97};
const std::vector<std::int64_t> kDepths = {0, 1, 2, 7, 8, 9, 40, 64, 255, 1023, 1025, 2100};

/// A number of rows or columns; of a deep product a small one, for the time of the plain loop.
std::int64_t pick_size(std::int64_t depth, Dice& dice) {
  return std::min<std::int64_t>(dice.pick(kSizes), depth > 1000 ? 25 : 97);
}

/// Sets a random CPU path and number of threads.
void shuffle_settings(Dice& dice) {
  set_isa(dice.pick(all_isas()));
  set_num_threads(static_cast<int>(1 + dice.below(3)));
}

float chain(Matrix<const float> a, Matrix<const float> b, std::int64_t m, std::int64_t n) {
  float acc = 0.0f;
  for (std::int64_t k = 0; k < a.cols; ++k) acc = std::fma(a(m, k), b(k, n), acc);
  return acc;
}

/// An output of NaN with a gap of NaN after each row.
struct Output {
  std::vector<float> storage;
  Matrix<float> view;
  Output(std::int64_t rows, std::int64_t cols, std::int64_t gap)
      : storage(static_cast<std::size_t>(rows * (cols + gap) + 1), kNan),
        view{storage.data(), rows, cols, cols + gap, 1} {}
};

/// Counts the elements of `out` whose bits differ from expected(i, j), and gaps that were written.
template <class Expected>
std::int64_t count_faults(const Output& out, const Expected& expected) {
  std::int64_t faults = 0;
  for (std::int64_t i = 0; i < out.view.rows; ++i) {
    for (std::int64_t j = 0; j < out.view.row_stride; ++j) {
      const float want = j < out.view.cols ? expected(i, j) : kNan;
      faults += canonical_bits(out.view(i, j)) != canonical_bits(want);
    }
  }
  return faults;
}

}  // namespace

TEST_CASE(
    "kernels.linear: forward, input gradient and product equal plain fma loops in every bit") {
  const KeepSettings keep;
  Dice dice{std::mt19937(1)};
  constexpr int kCases = 400;
  std::int64_t outputs = 0;
  for (int i = 0; i < kCases; ++i) {
    shuffle_settings(dice);
    const auto k = dice.pick(kDepths);
    const auto m = pick_size(k, dice), n = pick_size(k, dice);
    const auto layout = [&] { return static_cast<int>(dice.below(4)); };
    const Operand<> a(m, k, layout(), dice), b(k, n, layout(), dice), bias(1, n, 0, dice);
    const bool biased = dice.once_in(2);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    Output c(m, n, dice.below(3)), y(m, n, dice.below(3)), dx(m, n, dice.below(3));
    launch_cpu(Matmul<float>{a.view, b.view, c.view});
    launch_cpu(LinearInputGrad<float>{a.view, b.view, dx.view});
    launch_cpu(LinearForward<float>{
        a.view, b.view.transposed(), biased ? bias.view.data : nullptr, y.view});
    const auto product = [&](auto r, auto s) { return chain(a.view, b.view, r, s); };
    CHECK(count_faults(c, product) == 0);
    CHECK(count_faults(dx, product) == 0);
    CHECK(count_faults(y, [&](auto r, auto s) {
            return biased ? product(r, s) + bias.view(0, s) : product(r, s);
          }) == 0);
    outputs += 3 * m * n;
  }
  MESSAGE(kCases, " shapes, ", outputs, " outputs");
}

TEST_CASE("kernels.linear: a depth of zero gives the bias or +0") {
  float y[2] = {kNan, kNan};
  const float bias[2] = {-0.0f, 3.0f};
  launch_cpu(
      LinearForward<float>{{nullptr, 1, 0, 0, 1}, {nullptr, 2, 0, 0, 1}, bias, row_major(y, 1, 2)});
  CHECK(hex8(y[0]) == "00000000");  // +0 + -0
  CHECK(y[1] == 3.0f);
  launch_cpu(Matmul<float>{{nullptr, 1, 0, 0, 1}, {nullptr, 0, 2, 2, 1}, row_major(y, 1, 2)});
  CHECK(hex8(y[1]) == "00000000");
}

namespace {

/// Runs a program as weight and bias gradient and counts outputs that differ from the oracle's.
std::int64_t count_gradient_faults(const Program& program,
                                   Matrix<const float> dy,
                                   Matrix<const float> x,
                                   Dice& dice,
                                   bool tiny = false) {
  std::vector<bool> live;
  for (std::int64_t n = 0; n < dy.rows; ++n) live.push_back(!is_zero_row(dy, n));
  const auto num_buffers = static_cast<std::size_t>(program.num_buffers);
  std::vector<std::vector<float>> weight(num_buffers), bias(num_buffers);
  std::vector<float*> weight_data, bias_data;
  for (std::size_t s = 0; s < num_buffers; ++s) {
    weight[s].assign(static_cast<std::size_t>(dy.cols * x.cols), kNan);
    bias[s].assign(static_cast<std::size_t>(dy.cols), kNan);
    if (program.loaded[s]) {
      for (auto& value : weight[s]) value = tiny ? dice.tiny() : dice.value();
      for (auto& value : bias[s]) value = tiny ? dice.tiny() : dice.value();
    }
    weight_data.push_back(weight[s].data());
    bias_data.push_back(bias[s].data());
  }
  const auto before_weight = weight, before_bias = bias;
  launch_cpu(LinearWeightGrad<float>{dy, x, program.view(), weight_data});
  launch_cpu(LinearBiasGrad<float>{dy, program.view(), bias_data});

  std::int64_t faults = 0;
  std::vector<float> slots(num_buffers + static_cast<std::size_t>(program.num_scratch));
  const auto compare = [&](const auto& before, const auto& after, std::size_t at, const auto& b) {
    const auto o =
        static_cast<std::int64_t>(at) / std::max<std::int64_t>(std::ssize(after[0]) / dy.cols, 1);
    for (std::size_t s = 0; s < num_buffers; ++s) slots[s] = before[s][at];
    run_reference(
        program.instructions, live, [&](auto n) { return dy(n, o); }, b, slots);
    for (std::size_t s = 0; s < num_buffers; ++s)
      faults += canonical_bits(slots[s]) != canonical_bits(after[s][at]);
  };
  for (std::int64_t o = 0; o < dy.cols; ++o) {
    compare(before_bias, bias, static_cast<std::size_t>(o), [](auto) { return 1.0f; });
    for (std::int64_t i = 0; i < x.cols; ++i) {
      compare(before_weight, weight, static_cast<std::size_t>(o * x.cols + i), [&](auto n) {
        return x(n, i);
      });
    }
  }
  return faults;
}

/// Makes some rows of dy all zero (of either sign) and puts an infinity beside them in x.
void kill_rows(Matrix<float> dy, Matrix<float> x, Dice& dice) {
  if (dice.once_in(2)) return;
  for (std::int64_t n = 0; n < dy.rows; ++n) {
    if (!dice.once_in(3)) continue;
    for (std::int64_t o = 0; o < dy.cols; ++o) dy(n, o) = dice.once_in(2) ? 0.0f : -0.0f;
    if (x.cols > 0) x(n, dice.below(x.cols)) = std::numeric_limits<float>::infinity();
  }
}

}  // namespace

TEST_CASE(
    "kernels.linear: weight and bias gradients equal the interpreted lane program in every bit") {
  const KeepSettings keep;
  Dice dice{std::mt19937(2)};
  constexpr int kCases = 400;
  std::int64_t instructions = 0;
  for (int i = 0; i < kCases; ++i) {
    shuffle_settings(dice);
    const auto rows = dice.pick(kDepths);
    const auto o = pick_size(rows, dice), in = pick_size(rows, dice);
    CAPTURE(rows);
    CAPTURE(o);
    CAPTURE(in);
    CAPTURE(i);
    const bool tiny = dice.once_in(3);
    Operand<> dy(rows, o, static_cast<int>(dice.below(4)), dice, tiny);
    Operand<> x(rows, in, static_cast<int>(dice.below(4)), dice, tiny);
    kill_rows(dy.view, x.view, dice);
    const Program program = random_program(rows, dice);
    CHECK(count_gradient_faults(program, dy.view, x.view, dice, tiny) == 0);
    instructions += std::ssize(program.instructions);
  }
  MESSAGE(kCases, " programs, ", instructions, " instructions");
}

TEST_CASE("kernels.linear: a close counts wherever -0 could pass it") {
  const KeepSettings keep;
  Dice dice{std::mt19937(6)};
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    set_isa(dice.once_in(2) ? best_isa() : Isa::portable);
    const Operand<> dy(3, 7, 0, dice, true), x(3, 9, 0, dice, true);
    CHECK(count_gradient_faults(random_program(3, dice), dy.view, x.view, dice, true) == 0);
  }
  MESSAGE(kCases, " programs");
}

TEST_CASE("kernels.linear: a program that comes again runs on other rows as on the first") {
  const KeepSettings keep;
  Dice dice{std::mt19937(9)};
  constexpr std::int64_t kRows = 40;
  std::vector<Program> programs;
  for (int i = 0; i < 3; ++i) {
    programs.push_back(random_program(kRows, dice));
    programs.push_back(programs.back());
    ++programs.back().num_scratch;
  }
  constexpr int kCases = 200;
  for (int i = 0; i < kCases; ++i) {
    CAPTURE(i);
    shuffle_settings(dice);
    Operand<> dy(kRows + dice.below(2) * 2000, 17, 0, dice), x(dy.view.rows, 19, 0, dice);
    kill_rows(dy.view, x.view, dice);
    CHECK(count_gradient_faults(dice.pick(programs), dy.view, x.view, dice, false) == 0);
  }
}

TEST_CASE("kernels.linear: lanes merge by the tree inside the kernel, whatever their sizes") {
  const KeepSettings keep;
  Dice dice{std::mt19937(3)};
  constexpr int kCases = 60;
  for (int i = 0; i < kCases; ++i) {
    shuffle_settings(dice);
    const auto rows = dice.pick<std::int64_t>({16, 64, 300, 1500});
    std::vector<std::int64_t> ends;
    for (std::int64_t lanes = 1 + dice.below(80); lanes > 0; --lanes) {
      ends.push_back(dice.below(rows + 1));
    }
    std::sort(ends.begin(), ends.end());
    ends.back() = rows;
    const bool tiny = dice.once_in(3);
    Operand<> dy(rows, 20, 0, dice, tiny), x(rows, 50, 0, dice, tiny);
    kill_rows(dy.view, x.view, dice);
    const Program program = lane_tree(ends, dice.once_in(2));
    CHECK(count_gradient_faults(program, dy.view, x.view, dice, tiny) == 0);
  }
  MESSAGE(kCases, " trees");
}

TEST_CASE("kernels.linear: scratch that crosses blocks of rows is bounded and keeps its values") {
  const KeepSettings keep;
  Dice dice{std::mt19937(4)};
  const std::int64_t rows = 1040, o = 300, in = 370;
  Operand<> dy(rows, o, 0, dice), x(rows, in, 0, dice);
  Program program = lane_tree({40, 90, 100, 240, 500, 515, 525, rows}, true);
  program.num_scratch = kMaxLaneScratch;
  set_isa(best_isa());
  set_num_threads(1);
  CHECK(count_gradient_faults(program, dy.view, x.view, dice) == 0);
}

TEST_CASE("kernels.linear: double follows the same order") {
  Dice dice{std::mt19937(5)};
  const Operand<double> dy(9, 4, 1, dice), x(9, 3, 2, dice);
  const Program program = lane_tree({2, 2, 7, 9}, false);
  double weight[12];
  double* const buffers[] = {weight};
  launch_cpu(LinearWeightGrad<double>{dy.view, x.view, program.view(), buffers});
  const auto lane = [&](std::int64_t begin, std::int64_t end) {
    double acc = 0;
    for (std::int64_t n = begin; n < end; ++n) acc = std::fma(dy.view(n, 1), x.view(n, 2), acc);
    return acc;
  };
  CHECK(weight[5] == (lane(0, 2) + lane(2, 2)) + (lane(2, 7) + lane(7, 9)));
}

TEST_CASE("kernels.linear: views that do not fit and programs out of range are refused") {
  float data[8] = {};
  float* const buffers[] = {data};
  const auto view = [&](std::int64_t rows, std::int64_t cols) {
    return row_major(data, rows, cols);
  };
  CHECK_THROWS_WITH_AS(
      launch_cpu(Matmul<float>{view(2, 2), view(3, 2), view(2, 2)}),
      "[matmul] b must be [2, 2], got [3, 2]; check the views passed to the kernel",
      ShapeError);
  CHECK_THROWS_WITH_AS(
      launch_cpu(Matmul<float>{view(2, 2), view(2, 2), view(2, 2).transposed()}),
      "[matmul] the output must have col_stride 1, got 2; write to a contiguous tensor and copy",
      ShapeError);
  const auto run = [&](LaneInstruction it, std::int32_t num_buffers, std::int32_t num_scratch) {
    launch_cpu(LinearWeightGrad<float>{
        view(2, 2), view(2, 2), {{&it, 1}, num_buffers, num_scratch}, buffers});
  };
  CHECK_THROWS_WITH_AS(
      run(LaneInstruction::chain(0, 3), 1, 0),
      "[linear_weight_grad] chains of the lane program must lie in [0, 2], got [0, "
      "3); rows are those of this micro-batch",
      IndexError);
  CHECK_THROWS_WITH_AS(run(LaneInstruction::store(2), 1, 1),
                       "[linear_weight_grad] slots of the lane program must lie in [0, 2), got 2; "
                       "declare it in num_buffers or num_scratch",
                       IndexError);
  CHECK_THROWS_WITH_AS(run(LaneInstruction::zero(), 2, 0),
                       "[linear_weight_grad] the lane program needs 2 buffers, got 1; pass one "
                       "pointer for each",
                       ValueError);
  CHECK_THROWS_WITH_AS(run(LaneInstruction::zero(), 1, 17),
                       "[linear_weight_grad] a lane program has at most 16 scratch slots, got 17; "
                       "merge lanes earlier",
                       ValueError);
}
