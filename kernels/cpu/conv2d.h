// The parts of convolutions that are compiled per instruction set.
#pragma once

#include "accrue/kernels/sliding.h"

#include <cstdint>

namespace accrue::kernels {

/// The patches of output lines [line_begin, line_end): a matrix of elements [begin, end) of a patch
/// by pixels, dense. Element e is tap e % taps of channel e / taps.
template <class T>
struct Patches {
  Sliding sliding;
  std::int64_t begin = 0, end = 0;
  std::int64_t line_begin = 0, line_end = 0;

  std::int64_t pixels() const { return (line_end - line_begin) * sliding.w.out; }
};

// copy_patches reads the channels of an image; add_patches adds to them, element after element, and
// uses the matrix as scratch. mark_live sets live[p] to 1 where one of the planes is not zero at
// pixel p, else to 0, and returns whether all are 1; where it returns true, bytes may be unset.
namespace portable {
void copy_patches(const Patches<float>& patches, const float* channels, float* matrix);
void add_patches(const Patches<float>& patches, float* matrix, float* channels);
bool mark_live(const float* planes, std::int64_t channels, std::int64_t pixels, std::uint8_t* live);
void copy_patches(const Patches<double>& patches, const double* channels, double* matrix);
void add_patches(const Patches<double>& patches, double* matrix, double* channels);
bool mark_live(const double* planes,
               std::int64_t channels,
               std::int64_t pixels,
               std::uint8_t* live);
}  // namespace portable
namespace avx2 {
void copy_patches(const Patches<float>& patches, const float* channels, float* matrix);
void add_patches(const Patches<float>& patches, float* matrix, float* channels);
bool mark_live(const float* planes, std::int64_t channels, std::int64_t pixels, std::uint8_t* live);
void copy_patches(const Patches<double>& patches, const double* channels, double* matrix);
void add_patches(const Patches<double>& patches, double* matrix, double* channels);
bool mark_live(const double* planes,
               std::int64_t channels,
               std::int64_t pixels,
               std::uint8_t* live);
}  // namespace avx2

}  // namespace accrue::kernels
