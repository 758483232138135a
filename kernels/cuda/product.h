// Product: what the product kernel computes, and its launch.
#pragma once

#include "accrue/kernels/cuda/platform.h"
#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/matrix.h"

namespace accrue::kernels::cuda {

/// An operand: element (i, k), where i is an output's row or column. Null data stands for ones.
struct Side {
  const float* data = nullptr;
  std::int64_t count = 0;  ///< of i
  std::int64_t stride = 0, depth_stride = 0;
};

inline Side rows_of(Matrix<const float> m) { return {m.data, m.rows, m.row_stride, m.col_stride}; }

/// A slot of the program: an [a.count, b.count] matrix; a bias has row_stride 0.
struct Slot {
  float* data = nullptr;
  std::int64_t row_stride = 0;
};

/// What a product leaves out, with r a row of outputs, c a column, k the summed index.
enum class Triangle : unsigned char {
  none,
  upper_outputs,  ///< c > r + diagonal: may be left unwritten
  upper,          ///< k > r + diagonal: not read into a chain
  lower,          ///< k + diagonal < r
};

struct Product {
  static constexpr int kFewInstructions = 4, kFewSlots = 2;

  Side a, b;
  const std::uint8_t* live = nullptr;             ///< unless null a byte for each k: chains skip 0
  const LaneInstruction* instructions = nullptr;  ///< in device memory, or null: `few`
  const Slot* slots = nullptr;                    ///< in device memory, or null: `few_slots`
  int num_instructions = 0;
  LaneInstruction few[kFewInstructions] = {};
  Slot few_slots[kFewSlots] = {};

  /// A batch of products of one size: in device memory, for each of them, how many elements its a,
  /// b and slots lie behind these. Null for one product.
  const std::int64_t (*offsets)[3] = nullptr;
  std::int64_t batch = 1;
  Triangle triangle = Triangle::none;
  std::int64_t diagonal = 0;

  void add(LaneInstruction it) { few[num_instructions++] = it; }
};

void launch_product(const char* name, const Product& product, Stream stream);

}  // namespace accrue::kernels::cuda
