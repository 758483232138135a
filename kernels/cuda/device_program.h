// DeviceProgram: a lane program where the product kernel reads it.
#pragma once

#include "accrue/kernels/cuda/product.h"
#include "accrue/kernels/lane_program.h"

#include <vector>

namespace accrue::kernels::cuda {

/// Instructions and slots in device memory. Scratch slots are made here; each slot holds `size`
/// elements in rows of `width`.
class DeviceProgram {
 public:
  DeviceProgram(const LaneProgram& program,
                std::span<float* const> buffers,
                std::int64_t size,
                std::int64_t width,
                Stream stream)
      : count_(static_cast<int>(program.instructions.size())),
        scratch_(bytes_of<float>(program.num_scratch * size), stream),
        slots_(bytes_of<Slot>(std::ssize(buffers) + program.num_scratch), stream),
        instructions_(program.instructions.size_bytes(), stream) {
    std::vector<Slot> slots;
    for (float* const buffer : buffers) slots.push_back({buffer, width});
    for (std::int32_t i = 0; i < program.num_scratch; ++i)
      slots.push_back({scratch_.as<float>() + i * size, width});
    slots_.upload(slots.data(), bytes_of<Slot>(std::ssize(slots)));
    instructions_.upload(program.instructions.data(), program.instructions.size_bytes());
  }

  void give_to(Product& product) const {
    product.instructions = instructions_.as<LaneInstruction>();
    product.slots = slots_.as<Slot>();
    product.num_instructions = count_;
  }

 private:
  template <class T>
  static std::size_t bytes_of(std::int64_t count) {
    return static_cast<std::size_t>(count) * sizeof(T);
  }

  int count_;
  Workspace scratch_, slots_, instructions_;
};

}  // namespace accrue::kernels::cuda
