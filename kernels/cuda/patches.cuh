// Patches on CUDA: some rows of a convolution at a time, as a matrix.
//
// Matrices hold a column for each row of the linear layer: (sample, output pixel).
#pragma once

#include "accrue/kernels/conv2d.h"
#include "accrue/kernels/cuda/images.cuh"

#include <algorithm>

namespace accrue::kernels::cuda {

inline constexpr std::int64_t kWorkspace = 8 << 20;   // elements of patches
inline constexpr std::int64_t kMostPixels = 2 << 20;  // of a product, for CUDA's limit of grid_y

inline std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

/// Consecutive rows: all pixels of some samples, or some lines of one.
struct RowBlock {
  std::int64_t first_sample = 0, samples = 0;
  std::int64_t first_line = 0, lines = 0;

  std::int64_t pixels(const Sliding& sliding) const { return lines * sliding.w.out; }
  std::int64_t rows(const Sliding& sliding) const { return samples * pixels(sliding); }
};

/// How the rows of a convolution are cut so that patches fit the workspace.
class RowBlocks {
 public:
  explicit RowBlocks(const ConvShape& shape)
      : shape_(shape), plane_(shape.sliding.outputs()), width_(shape.sliding.w.out) {
    const std::int64_t patch = std::max<std::int64_t>(shape.in_channels * shape.sliding.taps(), 1);
    const std::int64_t pixels = std::max(std::min(kWorkspace / patch, kMostPixels), width_);
    rows_ = pixels < plane_ ? pixels / width_ * width_ : pixels / plane_ * plane_;
    rows_ = std::min(rows_, std::max(shape.rows(), plane_));
  }

  std::int64_t rows() const { return rows_; }  ///< of a block, at most
  /// A block ends where a period does.
  std::int64_t period() const { return std::max(rows_, plane_); }
  RowBlock block(std::int64_t begin) const {
    const std::int64_t samples = std::min(rows_ / plane_, shape_.samples - begin / plane_);
    if (rows_ >= plane_) return {begin / plane_, samples, 0, shape_.sliding.h.out};
    const std::int64_t line = begin % plane_ / width_;
    return {begin / plane_, 1, line, std::min(rows_ / width_, shape_.sliding.h.out - line)};
  }
  /// Calls body(block) for all rows.
  template <class Body>
  void for_each(const Body& body) const {
    for (std::int64_t begin = 0; begin < shape_.rows();) {
      const RowBlock it = block(begin);
      body(it);
      begin += it.rows(shape_.sliding);
    }
  }

 private:
  const ConvShape& shape_;
  std::int64_t plane_, width_, rows_;
};

/// matrix[(channel, tap), row] = what the row's pixel sees, +0 in the padding.
struct CopyPatches {
  Sliding sliding;
  std::int64_t channels;
  RowBlock block;
  std::int64_t pixels, rows;
  const float* x;
  float* matrix;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const SlidingAxis &h = sliding.h, &w = sliding.w;
    std::int64_t row, tap, tap_w, pixel, column;
    const std::int64_t channel = divide(divide(i, rows, row), sliding.taps(), tap);
    const std::int64_t tap_h = divide(tap, w.size, tap_w), sample = divide(row, pixels, pixel);
    const std::int64_t line = block.first_line + divide(pixel, w.out, column);
    const std::int64_t from_h = line * h.stride + h.offset(tap_h);
    const std::int64_t from_w = column * w.stride + w.offset(tap_w);
    const bool inside = from_h >= 0 && from_h < h.in && from_w >= 0 && from_w < w.in;
    const std::int64_t plane = (block.first_sample + sample) * channels + channel;
    matrix[i] = inside ? x[(plane * h.in + from_h) * w.in + from_w] : 0.0f;
  }
};

inline void copy_patches(const Sliding& sliding,
                         std::int64_t channels,
                         const RowBlock& block,
                         const float* x,
                         float* matrix,
                         Stream stream) {
  const std::int64_t rows = block.rows(sliding);
  launch_each("conv2d",
              channels * sliding.taps() * rows,
              CopyPatches{sliding, channels, block, block.pixels(sliding), rows, x, matrix},
              stream);
}

}  // namespace accrue::kernels::cuda
