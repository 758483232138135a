// DeviceProgram: a lane program where the product kernel reads it.
#pragma once

#include "accrue/kernels/cuda/product.h"
#include "accrue/kernels/cuda/program_memory.h"

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
        memory_(program, buffers, size, stream, [&](float* data) {
          return Slot{data, width};
        }) {}

  void give_to(Product& product) const {
    product.instructions = memory_.instructions();
    product.slots = memory_.slots();
    product.num_instructions = count_;
  }

 private:
  int count_;
  ProgramMemory<float, Slot> memory_;
};

}  // namespace accrue::kernels::cuda
