// The oracle of parameter kernels: plain loops over lane programs, and programs to run.
#pragma once

#include "accrue/core/bits.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace accrue::test {

using kernels::LaneInstruction;
using kernels::LaneOp;
using kernels::Matrix;

/// Random values and choices, the same on every platform.
struct Dice {
  std::mt19937 engine;

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine()) % n; }
  bool once_in(std::int64_t n) { return below(n) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(std::ssize(from)))];
  }
  /// Mostly in (-1, 1); sometimes a signed zero, a subnormal or a large number.
  float value() {
    const auto sign = once_in(2) ? 1.0f : -1.0f;
    if (once_in(16)) return sign * pick<float>({0.0f, 0x1p-140f, 0x1p-75f, 0x1p100f});
    return sign * static_cast<float>(engine() >> 8) * 0x1p-24f;
  }
  /// Numbers whose products underflow: sums of either zero.
  float tiny() { return (once_in(2) ? 1.0f : -1.0f) * (once_in(2) ? 0.0f : 0x1p-80f); }
};

/// A matrix with storage of its own, not an element more than its layout needs.
template <class T = float>
struct Operand {
  std::vector<T> storage;
  Matrix<T> view;

  /// Layout 0: rows contiguous, 1: columns contiguous, 2: gaps in both directions, 3: reversed
  /// rows.
  Operand(std::int64_t rows, std::int64_t cols, int layout, Dice& dice, bool tiny = false) {
    const std::int64_t row_strides[] = {cols, 1, 2 * cols + 3, -cols};
    const std::int64_t col_strides[] = {1, rows, 2, 1};
    const std::int64_t row_stride = row_strides[layout], col_stride = col_strides[layout];
    const std::int64_t first = layout == 3 ? std::max<std::int64_t>(rows - 1, 0) * cols : 0;
    if (rows > 0 && cols > 0) {
      const std::int64_t last = first + (rows - 1) * row_stride + (cols - 1) * col_stride;
      storage.resize(static_cast<std::size_t>(std::max(first + cols, last + 1)));
    }
    for (auto& x : storage) x = static_cast<T>(tiny ? dice.tiny() : dice.value());
    view = {storage.data() + (storage.empty() ? 0 : first), rows, cols, row_stride, col_stride};
  }
};

inline bool is_zero_row(Matrix<const float> m, std::int64_t row) {
  for (std::int64_t j = 0; j < m.cols; ++j)
    if (m(row, j) != 0.0f) return false;
  return true;
}

/// Contract 5 and 6 word for word: the value each slot of one element ends with.
/// `slots` holds the buffers' values; a and b are functions of the row.
template <class A, class B>
void run_reference(const std::vector<LaneInstruction>& program,
                   const std::vector<bool>& live,
                   const A& a,
                   const B& b,
                   std::vector<float>& slots) {
  float acc = std::numeric_limits<float>::quiet_NaN();
  for (const auto& it : program) {
    float& slot = slots[static_cast<std::size_t>(it.slot)];
    if (it.op == LaneOp::zero) acc = 0.0f;
    if (it.op == LaneOp::load) acc = slot;
    if (it.op == LaneOp::close) acc = acc + 0.0f;
    if (it.op == LaneOp::merge) acc = slot + acc;
    if (it.op == LaneOp::store) slot = acc;
    if (it.op != LaneOp::chain) continue;
    for (std::int64_t row = it.begin; row < it.end; ++row)
      if (live[static_cast<std::size_t>(row)]) acc = std::fma(a(row), b(row), acc);
  }
}

/// A program with its slots; `loaded` tells which buffers it reads before it writes them.
struct Program {
  std::vector<LaneInstruction> instructions;
  std::int32_t num_buffers = 0, num_scratch = 0;
  std::vector<bool> loaded;

  kernels::LaneProgram view() const { return {instructions, num_buffers, num_scratch}; }
};

/// The lanes of `rows` rows cut at `lane_ends`, merged by the aligned tree into buffer 0. With
/// `open` the first lane continues from buffer 0.
inline Program lane_tree(const std::vector<std::int64_t>& lane_ends, bool open) {
  Program program{{}, 1, 0, {open}};
  auto& out = program.instructions;
  std::int64_t begin = 0;
  int depth = 0;
  for (std::size_t lane = 0; lane < lane_ends.size(); ++lane) {
    out.push_back(lane == 0 && open ? LaneInstruction::load(0) : LaneInstruction::zero());
    out.push_back(LaneInstruction::chain(begin, lane_ends[lane]));
    out.push_back(LaneInstruction::close());
    begin = lane_ends[lane];
    for (std::size_t done = lane + 1; done % 2 == 0; done /= 2)
      out.push_back(LaneInstruction::merge(depth--));
    if (lane + 1 < lane_ends.size()) out.push_back(LaneInstruction::store(++depth));
    program.num_scratch = std::max(program.num_scratch, depth);
  }
  while (depth > 0) out.push_back(LaneInstruction::merge(depth--));
  out.push_back(LaneInstruction::store(0));
  return program;
}

/// Any legal program: instructions in random order, chains anywhere, no undefined slot read.
inline Program random_program(std::int64_t rows, Dice& dice) {
  Program program;
  program.num_buffers = static_cast<std::int32_t>(1 + dice.below(4));
  program.num_scratch = static_cast<std::int32_t>(dice.below(kernels::kMaxLaneScratch + 1));
  program.loaded.assign(static_cast<std::size_t>(program.num_buffers), false);
  std::vector<bool> defined(static_cast<std::size_t>(program.num_buffers + program.num_scratch));
  auto& out = program.instructions;
  out.push_back(LaneInstruction::zero());
  std::int64_t row = 0;
  for (std::int64_t left = 3 + dice.below(60); left > 0; --left) {
    const auto slot = dice.below(std::ssize(defined));
    const auto at = static_cast<std::size_t>(slot);
    const bool after_close = out.back().op == LaneOp::close && dice.once_in(2);
    const auto op = after_close ? LaneOp::merge : static_cast<LaneOp>(dice.below(6));
    LaneInstruction it{op, static_cast<std::int32_t>(slot), 0, 0};
    if (op == LaneOp::chain) {
      if (dice.once_in(8)) row = 0;
      it = LaneInstruction::chain(row, row + dice.below(rows - row + 1));
      row = it.end;
    } else if (op == LaneOp::store) {
      defined[at] = true;
    } else if (!defined[at] && (op == LaneOp::load || op == LaneOp::merge)) {
      if (slot >= program.num_buffers) continue;
      defined[at] = true;
      program.loaded[at] = true;
    }
    out.push_back(it);
  }
  for (int slot = 0; slot < program.num_buffers; ++slot)
    out.push_back(LaneInstruction::store(slot));
  return program;
}

/// Restores threads and CPU path when a test ends.
struct KeepSettings {
  int threads = kernels::num_threads();
  kernels::Isa isa = kernels::current_isa();
  ~KeepSettings() {
    kernels::set_num_threads(threads);
    kernels::set_isa(isa);
  }
};

/// The CPU paths this machine can run.
inline std::vector<kernels::Isa> all_isas() {
  std::vector<kernels::Isa> isas;
  for (const auto isa : {kernels::Isa::portable, kernels::Isa::avx2, kernels::Isa::avx512})
    if (isa <= kernels::best_isa()) isas.push_back(isa);
  return isas;
}

}  // namespace accrue::test
