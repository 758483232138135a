// GemmProgram: a lane program cut into blocks of k and fused into the steps that tiles run.
#pragma once

#include "accrue/kernels/cpu/gemm.h"

#include <vector>

namespace accrue::kernels {

/// Owns the blocks of one program.
class GemmProgram {
 public:
  /// Cuts chains at multiples of `depth` and at the k whose byte in `live` is 0. Where the program
  /// moves on to another block, acc is stored before the border and loaded behind it.
  ///
  /// The result lies in this thread's memory until its next call. The last few programs are kept:
  /// the products of a training step repeat, and every core has their steps in its cache.
  static GemmBlocks cut(const LaneProgram& program, const std::uint8_t* live, std::int64_t depth);

 private:
  bool is_cut_of(const LaneProgram& program, std::int64_t depth) const;
  GemmBlocks cut_anew(const LaneProgram& program, const std::uint8_t* live, std::int64_t depth);
  void cut_chain(const LaneProgram& program,
                 std::size_t at,
                 const std::uint8_t* live,
                 std::int64_t depth);
  void enter(std::int64_t block, const LaneProgram& program, std::size_t next);
  int carrier(const LaneProgram& program, std::size_t next);
  bool is_idle_close(const LaneProgram& program, std::size_t at) const;
  void emit(const LaneInstruction& instruction);
  void follow_signs(const LaneInstruction& instruction);
  void hold_sums(std::size_t begin, std::size_t end, std::int32_t num_buffers);
  bool is_read(std::int32_t slot, const GemmStep& step, std::size_t next) const;

  // What was cut; depth 0 where it was nothing that may come again.
  std::vector<LaneInstruction> instructions_;
  std::int32_t num_buffers_ = 0, own_scratch_ = 0;
  std::int64_t depth_ = 0;
  std::vector<GemmStep> steps_;
  std::vector<std::size_t> first_steps_;  // of each block
  std::vector<GemmBlock> blocks_;
  std::vector<bool> slot_closed_;  // the slot cannot hold -0
  bool acc_closed_ = false;
  int phase_ = 0;  // of the last operation in the last step
  std::int32_t num_scratch_ = 0;
};

}  // namespace accrue::kernels
