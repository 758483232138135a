// What a launch needs of a lane program in device memory: its instructions and slots.
#pragma once

#include "accrue/kernels/cuda/workspace.h"
#include "accrue/kernels/lane_program.h"

#include <span>
#include <vector>

namespace accrue::kernels::cuda {

/// A copy of elements of the host in device memory, for one launch.
template <class T>
class Upload {
 public:
  Upload(std::span<const T> elements, Stream stream) : memory_(elements.size_bytes(), stream) {
    memory_.upload(elements.data(), elements.size_bytes());
  }
  T* data() const { return memory_.as<T>(); }

 private:
  Workspace memory_;
};

/// A lane program whose slots all have `count` elements: the buffers, then scratch. slot_of(data)
/// is what the kernel takes for one of them.
template <class T, class Slot>
class ProgramMemory {
 public:
  template <class SlotOf>
  ProgramMemory(const LaneProgram& program,
                std::span<T* const> buffers,
                std::int64_t count,
                Stream stream,
                const SlotOf& slot_of)
      : scratch_(static_cast<std::size_t>(program.num_scratch * count) * sizeof(T), stream),
        slots_(all_slots(program, buffers, count, slot_of), stream),
        instructions_(program.instructions, stream) {}
  Slot* slots() const { return slots_.data(); }
  LaneInstruction* instructions() const { return instructions_.data(); }

 private:
  template <class SlotOf>
  std::vector<Slot> all_slots(const LaneProgram& program,
                              std::span<T* const> buffers,
                              std::int64_t count,
                              const SlotOf& slot_of) const {
    std::vector<Slot> slots;
    for (T* const buffer : buffers) slots.push_back(slot_of(buffer));
    for (std::int64_t i = 0; i < program.num_scratch; ++i) {
      slots.push_back(slot_of(scratch_.as<T>() + i * count));
    }
    return slots;
  }

  Workspace scratch_;
  Upload<Slot> slots_;
  Upload<LaneInstruction> instructions_;
};

}  // namespace accrue::kernels::cuda
