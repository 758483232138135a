// ProgramSegments: a lane program cut so that its rows may be made a block at a time.
#pragma once

#include "accrue/kernels/lane_program.h"

#include <vector>

namespace accrue::kernels {

/// A program as one piece per block of rows; run in order, the pieces do what the program does.
///
/// What was private to an element must survive between pieces. So where there are several, a piece
/// has no scratch slots but num_buffers + num_carried buffers: the program's, then its scratch,
/// then one for acc unless a buffer of the program is free at every border.
class ProgramSegments {
 public:
  struct Segment {
    std::int64_t begin = 0, end = 0;  ///< the block: chains count rows from `begin`
    std::size_t first = 0, last = 0;  ///< instructions
  };

  /// Blocks are `block` rows long and begin anew at each multiple of `period`.
  ProgramSegments(const LaneProgram& program, std::int64_t period, std::int64_t block);

  std::int32_t num_carried() const {
    return segments_.size() > 1 ? num_scratch_ + (carries_acc_ ? 1 : 0) : 0;
  }
  const std::vector<Segment>& segments() const { return segments_; }
  LaneProgram program(const Segment& segment) const {
    return {std::span(instructions_).subspan(segment.first, segment.last - segment.first),
            num_buffers_ + num_carried(),
            segments_.size() > 1 ? 0 : num_scratch_};
  }

 private:
  void enter(const LaneProgram& program, std::size_t next, std::int64_t begin, std::int64_t end);

  std::int32_t num_buffers_, num_scratch_;
  bool carries_acc_ = false;
  std::vector<LaneInstruction> instructions_;
  std::vector<Segment> segments_{Segment{}};
};

}  // namespace accrue::kernels
