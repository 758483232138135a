// Patches of images: copied and added in runs, a whole plane at once where output lines are as long
// as input lines.
#include "accrue/kernels/cpu/conv2d.h"

#include <cstring>

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// One element of the patches, for all pixels of the lines.
template <class T>
struct PatchRow {
  SlidingAxis h, w;
  std::int64_t line_begin, line_end;
  std::int64_t channel = 0;           ///< offset of the element's plane
  std::int64_t first = 0;             ///< the input that the first pixel of line 0 sees
  SlidingAxis::Range lines, columns;  ///< pixels that see the image, not padding

  PatchRow(const Patches<T>& patches, std::int64_t element)
      : h(patches.sliding.h),
        w(patches.sliding.w),
        line_begin(patches.line_begin),
        line_end(patches.line_end) {
    const std::int64_t taps = h.size * w.size;
    const std::int64_t tap_h = element % taps / w.size, tap_w = element % w.size;
    channel = element / taps * (h.in * w.in);
    first = h.offset(tap_h) * w.in + w.offset(tap_w);
    lines = h.outputs_of(tap_h, line_begin, line_end);
    columns = w.outputs_of(tap_w, 0, w.out);
  }

  /// Lines follow each other without a gap in the image too.
  bool is_plane() const { return h.stride == 1 && w.stride == 1 && w.in == w.out; }
  std::int64_t pixel(std::int64_t line) const { return (line - line_begin) * w.out; }

  /// Calls body(pixel, input, count) for runs of pixels that see inputs w.stride apart. In a plane
  /// the run goes on from line to line, through the pixels that see padding.
  template <class Body>
  ACCRUE_HD void for_runs(const Body& body) const {
    const std::int64_t height = lines.end - lines.begin, width = columns.end - columns.begin;
    if (height <= 0 || width <= 0) return;
    std::int64_t at = pixel(lines.begin) + columns.begin;
    std::int64_t input = first + lines.begin * h.stride * w.in + columns.begin * w.stride;
    if (is_plane()) {
      body(at, input, (height - 1) * w.out + width);
      return;
    }
    for (std::int64_t i = 0; i < height; ++i) {
      body(at, input, width);
      at += w.out;
      input += h.stride * w.in;
    }
  }

  /// +0 for the pixels that see padding.
  ACCRUE_HD void clear_padding(T* row) const {
    const auto clear = [row](std::int64_t begin, std::int64_t end) {
      if (begin < end)
        std::memset(row + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(T));
    };
    clear(0, pixel(lines.begin));
    clear(pixel(lines.end), pixel(line_end));
    for (std::int64_t column = 0; column < w.out; ++column) {
      if (column == columns.begin) column = columns.end;
      if (column >= w.out) break;
      for (std::int64_t line = lines.begin; line < lines.end; ++line) row[pixel(line) + column] = 0;
    }
  }
};

template <class T>
void copy(const Patches<T>& patches, const T* channels, T* matrix) {
  const std::int64_t pixels = patches.pixels(), stride = patches.sliding.w.stride;
  for (std::int64_t e = patches.begin; e < patches.end; ++e) {
    const PatchRow<T> row(patches, e);
    T* const to = matrix + (e - patches.begin) * pixels;
    row.for_runs([&](std::int64_t pixel, std::int64_t input, std::int64_t count) {
      const T* const from = channels + row.channel + input;
      if (stride == 1) {
        std::memcpy(to + pixel, from, static_cast<std::size_t>(count) * sizeof(T));
      } else {
        for (std::int64_t i = 0; i < count; ++i) to[pixel + i] = from[i * stride];
      }
    });
    row.clear_padding(to);
  }
}

template <class T>
void add(const Patches<T>& patches, T* matrix, T* channels) {
  const std::int64_t pixels = patches.pixels(), stride = patches.sliding.w.stride;
  for (std::int64_t e = patches.begin; e < patches.end; ++e) {
    const PatchRow<T> row(patches, e);
    T* const from = matrix + (e - patches.begin) * pixels;
    // A plane's run passes padding. To add +0 there changes nothing: no sum that starts at +0 is
    // -0.
    if (row.is_plane()) row.clear_padding(from);
    row.for_runs([&](std::int64_t pixel, std::int64_t input, std::int64_t count) {
      T* __restrict to = channels + row.channel + input;
      const T* __restrict values = from + pixel;
      if (stride == 1) {
        for (std::int64_t i = 0; i < count; ++i) to[i] += values[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) to[i * stride] += values[i];
      }
    });
  }
}

template <class T>
bool mark(const T* planes, std::int64_t channels, std::int64_t pixels, std::uint8_t* live) {
  std::memset(live, 0, static_cast<std::size_t>(pixels));
  for (std::int64_t c = 0; c < channels; ++c) {
    const T* const plane = planes + c * pixels;
    std::uint8_t all = 1;
    for (std::int64_t p = 0; p < pixels; ++p) {
      live[p] = static_cast<std::uint8_t>(live[p] | std::uint8_t{plane[p] != T(0)});
      all = static_cast<std::uint8_t>(all & live[p]);
    }
    if (all) return true;
  }
  return false;
}

}  // namespace

void copy_patches(const Patches<float>& patches, const float* channels, float* matrix) {
  copy(patches, channels, matrix);
}
void copy_patches(const Patches<double>& patches, const double* channels, double* matrix) {
  copy(patches, channels, matrix);
}
void add_patches(const Patches<float>& patches, float* matrix, float* channels) {
  add(patches, matrix, channels);
}
void add_patches(const Patches<double>& patches, double* matrix, double* channels) {
  add(patches, matrix, channels);
}
bool mark_live(const float* planes,
               std::int64_t channels,
               std::int64_t pixels,
               std::uint8_t* live) {
  return mark(planes, channels, pixels, live);
}
bool mark_live(const double* planes,
               std::int64_t channels,
               std::int64_t pixels,
               std::uint8_t* live) {
  return mark(planes, channels, pixels, live);
}

}  // namespace accrue::kernels::ACCRUE_ISA
