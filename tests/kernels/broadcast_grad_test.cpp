// BroadcastGrad against plain loops: every bit, over shapes, layouts, programs and CPU paths.
#include "accrue/kernels/broadcast_grad.h"

#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/layouts.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

// The operands: a gradient of shape `full`, a parameter of shape `parameter` expanded to it.
struct Case {
  Shape full, parameter;
  int row_dims;
};

const Case kCases[] = {
    {{}, {}, 0},
    {{9}, {}, 1},
    {{9}, {1}, 0},
    {{9}, {9}, 1},
    {{12, 5}, {5}, 1},
    {{12, 5}, {}, 1},
    {{12, 5}, {12, 1}, 1},
    {{12, 5}, {12, 5}, 2},
    {{12, 40}, {1, 40}, 1},
    {{6, 4, 3}, {4, 3}, 2},
    {{6, 4, 3}, {4, 1}, 1},
    {{6, 4, 3}, {6, 1, 3}, 2},
    {{2, 3, 4, 5}, {3, 1, 5}, 3},
    {{0, 3}, {3}, 1},
    {{4, 0}, {4, 1}, 1},
    {{4, 3, 0}, {0}, 1},
};

// What one element of the parameter meets: its products in order, and where each row's start.
struct Products {
  std::vector<float> a, b;
  std::vector<bool> live;
  std::vector<std::int64_t> row_begin;
};

// Deals the elements of the gradient, in row-major order, to the parameter's elements.
std::vector<Products> deal(const Case& shapes, const Tensor& a, const Tensor& b) {
  const std::vector<float> as = a.to_vector<float>();
  const std::vector<float> bs = b.defined() ? b.to_vector<float>() : std::vector(as.size(), 1.0f);
  const auto num_elements = product(shapes.parameter, 0, shapes.parameter.rank());
  const auto num_rows = product(shapes.full, 0, shapes.row_dims);
  const auto row_size =
      static_cast<std::size_t>(product(shapes.full, shapes.row_dims, shapes.full.rank()));
  std::vector<Products> result(static_cast<std::size_t>(num_elements));
  const std::vector<std::int64_t> owner = Tensor::arange(num_elements)
                                              .view(shapes.parameter)
                                              .expand(shapes.full)
                                              .to_vector<std::int64_t>();
  for (std::size_t row = 0; row < static_cast<std::size_t>(num_rows); ++row) {
    for (auto& products : result) products.row_begin.push_back(std::ssize(products.a));
    const auto begin = row * row_size, end = begin + row_size;
    bool live = false;
    for (std::size_t i = begin; i < end; ++i) live = live || as[i] != 0.0f;
    for (std::size_t i = begin; i < end; ++i) {
      Products& products = result[static_cast<std::size_t>(owner[i])];
      products.a.push_back(as[i]);
      products.b.push_back(bs[i]);
      products.live.push_back(live);
    }
  }
  for (auto& products : result) products.row_begin.push_back(std::ssize(products.a));
  return result;
}

// The slots' values after `program` ran on one element, by plain loops over its products.
void run_on(const Products& products, const Program& program, std::vector<float>& slots) {
  std::vector<LaneInstruction> instructions = program.instructions;
  for (auto& it : instructions) {
    if (it.op != LaneOp::chain) continue;
    it.begin = products.row_begin[static_cast<std::size_t>(it.begin)];
    it.end = products.row_begin[static_cast<std::size_t>(it.end)];
  }
  const auto at = [](const std::vector<float>& values) {
    return [&values](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  };
  run_reference(instructions, products.live, at(products.a), at(products.b), slots);
}

// Buffers of the parameter's size: random where the program reads them first, else NaN.
std::vector<std::vector<float>> make_buffers(const Program& program,
                                             std::int64_t numel,
                                             Dice& dice) {
  std::vector<std::vector<float>> buffers;
  for (const bool loaded : program.loaded) {
    buffers.emplace_back(static_cast<std::size_t>(numel), NAN);
    if (!loaded) continue;
    for (float& value : buffers.back()) value = dice.value();
  }
  return buffers;
}

// Runs a program and counts the values in buffers that differ from the oracle's.
int count_faults(
    const Case& shapes, const Tensor& a, const Tensor& b, const Program& program, Dice& dice) {
  const std::int64_t numel = product(shapes.parameter, 0, shapes.parameter.rank());
  auto buffers = make_buffers(program, numel, dice);
  const auto before = buffers;
  std::vector<float*> pointers;
  for (auto& buffer : buffers) pointers.push_back(buffer.data());
  launch_cpu(
      BroadcastGrad<float>{a, b, shapes.row_dims, shapes.parameter, program.view(), pointers});
  const std::vector<Products> products = deal(shapes, a, b);
  int faults = 0;
  for (std::size_t e = 0; e < products.size(); ++e) {
    std::vector<float> slots(buffers.size() + static_cast<std::size_t>(program.num_scratch), NAN);
    for (std::size_t s = 0; s < buffers.size(); ++s) slots[s] = before[s][e];
    run_on(products[e], program, slots);
    for (std::size_t s = 0; s < buffers.size(); ++s) {
      faults += canonical_bits(buffers[s][e]) != canonical_bits(slots[s]);
    }
  }
  return faults;
}

// A gradient in which every third row is all zero, in the given layout.
Tensor random_gradient(const Case& shapes, Layout layout, std::mt19937_64& random) {
  Tensor a = random_tensor<float>(shapes.full, random);
  const auto row_size = product(shapes.full, shapes.row_dims, shapes.full.rank());
  float* values = a.mutable_data<float>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (i / row_size % 3 == 1) values[i] = i % 2 ? 0.0f : -0.0f;
  }
  return with_layout(a, layout);
}

const Tensor kNoFactor;

}  // namespace

TEST_CASE("kernels.broadcast_grad: gradients equal the interpreted lane program in every bit") {
  std::mt19937_64 random(1);
  Dice dice{std::mt19937(1)};
  int num_programs = 0;
  for_each_cpu_path([&] {
    for (const Case& shapes : kCases) {
      for (const Layout layout_a : kLayouts) {
        for (const Layout layout_b : kLayouts) {
          CAPTURE(shapes.full);
          CAPTURE(shapes.parameter);
          CAPTURE(static_cast<int>(layout_a));
          CAPTURE(static_cast<int>(layout_b));
          const Tensor a = random_gradient(shapes, layout_a, random);
          const Tensor b = with_layout(random_tensor<float>(shapes.full, random, true), layout_b);
          const auto num_rows = product(shapes.full, 0, shapes.row_dims);
          const Program program = random_program(num_rows, dice);
          CHECK(count_faults(shapes, a, b, program, dice) == 0);
          CHECK(count_faults(shapes, a, kNoFactor, program, dice) == 0);
          num_programs += 2;
        }
      }
    }
  });
  MESSAGE(num_programs << " programs");
}

TEST_CASE("kernels.broadcast_grad: lanes merge by the tree") {
  std::mt19937_64 random(2);
  Dice dice{std::mt19937(2)};
  const Case shapes{{50, 33}, {33}, 1};
  for_each_cpu_path([&] {
    for (int lanes = 1; lanes <= 16; ++lanes) {
      std::vector<std::int64_t> ends;
      for (int lane = 1; lane < lanes; ++lane) ends.push_back(dice.below(51));
      ends.push_back(50);
      std::sort(ends.begin(), ends.end());
      const Tensor a = random_gradient(shapes, Layout::contiguous, random);
      const Tensor b = random_tensor<float>(shapes.full, random);
      CHECK(count_faults(shapes, a, b, lane_tree(ends, lanes % 2 == 0), dice) == 0);
    }
  });
}

TEST_CASE("kernels.broadcast_grad: a row of zeros does not meet an infinite factor") {
  const Tensor a = Tensor::of<float>({{1, 2}, {0, -0.0f}});
  const Tensor b = Tensor::of<float>({{3, 4}, {HUGE_VALF, NAN}});
  const LaneInstruction program[] = {LaneInstruction::zero(),
                                     LaneInstruction::chain(0, 2),
                                     LaneInstruction::close(),
                                     LaneInstruction::store(0)};
  float gradient[2] = {};
  float* const buffers[] = {gradient};
  launch_cpu(BroadcastGrad<float>{a, b, 1, {2}, {program, 1, 0}, buffers});
  CHECK(gradient[0] == 3.0f);
  CHECK(gradient[1] == 8.0f);
}

TEST_CASE("kernels.broadcast_grad: double gradients are chains too") {
  std::mt19937_64 random(3);
  const Tensor a = random_tensor<double>({20, 7}, random),
               b = random_tensor<double>({20, 7}, random);
  const LaneInstruction program[] = {
      LaneInstruction::load(0), LaneInstruction::chain(3, 20), LaneInstruction::store(0)};
  for_each_cpu_path([&] {
    double gradient[7] = {1, 2, 3, 4, 5, 6, 7}, expected[7] = {1, 2, 3, 4, 5, 6, 7};
    double* const buffers[] = {gradient};
    launch_cpu(BroadcastGrad<double>{a, b, 1, {7}, {program, 1, 0}, buffers});
    for (std::size_t i = 21; i < 140; ++i) {
      expected[i % 7] = std::fma(a.data<double>()[i], b.data<double>()[i], expected[i % 7]);
    }
    CHECK(hash_bits(std::span(gradient)) == hash_bits(std::span(expected)));
  });
}

TEST_CASE("kernels.broadcast_grad: arguments that do not fit are refused") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3}), d = a.to(DType::float64);
  const LaneInstruction program[] = {LaneInstruction::zero(), LaneInstruction::chain(0, 2)};
  const LaneProgram view{program, 0, 0};
  CHECK_THROWS_WITH_AS(launch_cpu(BroadcastGrad<float>{a, b, 1, {3}, view, {}}),
                       "[broadcast_grad] the factor must have the gradient's shape [2, 3], "
                       "got [3]; expand it first",
                       ShapeError);
  CHECK_THROWS_WITH_AS(launch_cpu(BroadcastGrad<float>{b, kNoFactor, 1, {2, 3}, view, {}}),
                       "[broadcast_grad] the parameter must broadcast to the gradient's shape [3], "
                       "got [2, 3]; reduce the gradient first",
                       ShapeError);
  CHECK_THROWS_WITH_AS(launch_cpu(BroadcastGrad<float>{d, kNoFactor, 1, {3}, view, {}}),
                       "[broadcast_grad] operands must have the parameter's dtype float32, "
                       "got float64; convert with to()",
                       DTypeError);
  CHECK_THROWS_WITH_AS(launch_cpu(BroadcastGrad<float>{a, kNoFactor, 3, {3}, view, {}}),
                       "[broadcast_grad] row_dims must lie in [0, 2], got 3; "
                       "it counts leading dimensions",
                       ShapeError);
  CHECK_THROWS_AS(launch_cpu(BroadcastGrad<float>{a, kNoFactor, 0, {3}, view, {}}), IndexError);
}
