// Embedding: rows of a table by index, and the table's gradient.
#pragma once

#include "accrue/kernels/lane_program.h"
#include "accrue/kernels/matrix.h"

#include <span>

namespace accrue::kernels {

/// y[n] = table[indices[n]]. All indices are checked before any other memory is touched.
///
/// Shapes:  table [V, E], indices [N] contiguous, y [N, E]; col_stride 1.
/// Errors:  IndexError with the first bad index and its position; ShapeError.
template <class T>
struct EmbeddingForward {
  static constexpr const char* kName = "embedding";
  Matrix<const T> table;
  const std::int64_t* indices = nullptr;
  Matrix<T> y;
};

/// The table's gradient: rows of dy chained into rows of the table, as a lane program says.
///
/// Shapes:  dy [N, E] with col_stride 1, indices [N], each buffer [V, E] contiguous.
/// Order:   element (v, e) runs `program`; its chains take the rows n with indices[n] = v,
///          ascending, with fma(dy[n,e], 1, acc) = acc + dy[n,e]. Rows that are all zero or whose
///          index is padding_index are skipped.
/// Cost:    O(N E + V), plus a pass over what the program does to table rows without an index:
///          nothing where it only continues a lane, a fill where a lane starts, an addition where
///          lanes merge.
/// Errors:  ShapeError; IndexError as EmbeddingForward; those of check_lane_program.
template <class T>
struct EmbeddingGrad {
  static constexpr const char* kName = "embedding_grad";
  Matrix<const T> dy;
  const std::int64_t* indices = nullptr;
  std::int64_t num_embeddings = 0;
  std::int64_t padding_index = -1;  ///< -1: none
  LaneProgram program;
  std::span<T* const> buffers;
};

template <class T>
void launch_cpu(const EmbeddingForward<T>& args);
template <class T>
void launch_cpu(const EmbeddingGrad<T>& args);

}  // namespace accrue::kernels
