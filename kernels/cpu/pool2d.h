// The loops of pooling, compiled per instruction set.
#pragma once

#include "accrue/kernels/pool2d.h"

namespace accrue::kernels {

/// An AvgPool2d with the divisor of each window of a plane.
template <class T>
struct AveragePool {
  AvgPool2d<T> args;
  const T* divisors;
};
template <class T>
struct AveragePoolGrad {
  AvgPool2dGrad<T> args;
  const T* divisors;
};

// Planes [begin, end).
namespace portable {
void pool_planes(const MaxPool2d<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const MaxPool2dGrad<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePool<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePoolGrad<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const MaxPool2d<double>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const MaxPool2dGrad<double>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePool<double>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePoolGrad<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace portable
namespace avx2 {
void pool_planes(const MaxPool2d<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const MaxPool2dGrad<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePool<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePoolGrad<float>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const MaxPool2d<double>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const MaxPool2dGrad<double>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePool<double>& args, std::int64_t begin, std::int64_t end);
void pool_planes(const AveragePoolGrad<double>& args, std::int64_t begin, std::int64_t end);
}  // namespace avx2

}  // namespace accrue::kernels
