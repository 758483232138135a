// LaneProgram: the order in which a parameter gradient's rows are chained, closed and merged.
#pragma once

#include "accrue/core/host_device.h"

#include <cstdint>
#include <span>
#include <vector>

namespace accrue::kernels {

/// What one instruction does to `acc`, the accumulator of one gradient element (contract 5, 6).
enum class LaneOp : std::uint8_t {
  zero,   ///< acc = +0
  load,   ///< acc = slot
  chain,  ///< acc = fma(a[row], b[row], acc) for the rows [begin, end), ascending
  close,  ///< acc = acc + 0.0f, which turns -0 into +0
  merge,  ///< acc = slot + acc: the slot holds the left sibling
  store,  ///< slot = acc
};

struct LaneInstruction {
  LaneOp op = LaneOp::zero;
  std::int32_t slot = 0;            ///< load, merge, store
  std::int64_t begin = 0, end = 0;  ///< chain

  bool operator==(const LaneInstruction&) const = default;
  static constexpr LaneInstruction zero() { return {LaneOp::zero, 0, 0, 0}; }
  static constexpr LaneInstruction load(int slot) { return {LaneOp::load, slot, 0, 0}; }
  static constexpr LaneInstruction chain(std::int64_t begin, std::int64_t end) {
    return {LaneOp::chain, 0, begin, end};
  }
  static constexpr LaneInstruction close() { return {LaneOp::close, 0, 0, 0}; }
  static constexpr LaneInstruction merge(int slot) { return {LaneOp::merge, slot, 0, 0}; }
  static constexpr LaneInstruction store(int slot) { return {LaneOp::store, slot, 0, 0}; }
};

/// Scratch slots a program may use: enough for the tree over 2^15 lanes.
inline constexpr int kMaxLaneScratch = 16;

/// A straight-line program that every element of a parameter gradient runs on its own.
///
/// Slots [0, num_buffers) are buffers of the parameter's size, given beside the program. Slots
/// [num_buffers, num_buffers + num_scratch) are private to an element and start undefined.
/// Buffers are written only by `store`; a buffer that no instruction loads or merges is not read.
struct LaneProgram {
  std::span<const LaneInstruction> instructions;
  std::int32_t num_buffers = 0, num_scratch = 0;
};

/// A buffer that the instructions from `next` on overwrite before they read it, so that a cut there
/// may keep acc in it; -1 if there is none.
std::int32_t free_buffer(const LaneProgram& program, std::size_t next);

/// What the program does to an element that no chain changes; a value that is loaded and stored
/// again is left out.
std::vector<LaneInstruction> without_chains(const LaneProgram& program);

/// Runs [it, end) on `tile`, which offers zero(), load(slot), chain(begin, end), close(),
/// merge(slot) and store(slot): a scalar, a vector, a CUDA thread.
template <class Tile>
ACCRUE_HD void interpret(const LaneInstruction* it, const LaneInstruction* end, Tile& tile) {
  for (; it != end; ++it) {
    switch (it->op) {
      case LaneOp::zero:
        tile.zero();
        break;
      case LaneOp::load:
        tile.load(it->slot);
        break;
      case LaneOp::chain:
        tile.chain(it->begin, it->end);
        break;
      case LaneOp::close:
        tile.close();
        break;
      case LaneOp::merge:
        tile.merge(it->slot);
        break;
      case LaneOp::store:
        tile.store(it->slot);
        break;
    }
  }
}

/// Refuses a program that names rows outside [0, rows) or slots it does not have.
///
/// Errors: IndexError for a slot or row, ValueError for more than kMaxLaneScratch scratch slots or
/// a number of buffers that differs from `num_buffers`.
void check_lane_program(const LaneProgram& program,
                        const char* operation,
                        std::int64_t rows,
                        std::int64_t num_buffers);

}  // namespace accrue::kernels
