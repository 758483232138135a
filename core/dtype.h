// DType: the element types of tensors, their sizes and names.
#pragma once

#include "accrue/core/error.h"
#include "accrue/core/half.h"

#include <cstdint>
#include <ostream>

namespace accrue {

/// bfloat16 and float16 are for storage: they copy, convert and print, arithmetic refuses them.
enum class DType : std::uint8_t {
  float32,
  float64,
  int64,
  int32,
  uint8,
  boolean,
  bfloat16,
  float16
};

/// Bytes per element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::bfloat16:
    case DType::float16:
      return 2;
    case DType::uint8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

/// What arithmetic and gradients take: float32 and float64.
constexpr bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64;
}

/// The name torch prints after `torch.`: float32, ..., bool.
constexpr const char* name_of(DType dtype) {
  constexpr const char* kNames[] = {
      "float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16", "float16"};
  return kNames[static_cast<int>(dtype)];
}

inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

/// The DType of a C++ element type: dtype_of<float> == DType::float32.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "not an element type");
  return DType::float32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::uint8;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bfloat16;
template <>
inline constexpr DType dtype_of<Float16> = DType::float16;

/// Calls `visitor(T{})` with the C++ element type of `dtype` and returns its result.
template <class Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::float32:
      return visitor(float{});
    case DType::float64:
      return visitor(double{});
    case DType::int64:
      return visitor(std::int64_t{});
    case DType::int32:
      return visitor(std::int32_t{});
    case DType::uint8:
      return visitor(std::uint8_t{});
    case DType::bfloat16:
      return visitor(BFloat16{});
    case DType::float16:
      return visitor(Float16{});
    case DType::boolean:
      break;
  }
  return visitor(bool{});
}

/// visit_dtype for float32 and float64; other types are a DTypeError naming `operation`.
template <class Visitor>
decltype(auto) visit_floating(DType dtype, const char* operation, Visitor&& visitor) {
  ACCRUE_CHECK(is_floating(dtype),
               DTypeError,
               operation,
               "needs float32 or float64, got ",
               dtype,
               "; convert with to()");
  if (dtype == DType::float32) return visitor(float{});
  return visitor(double{});
}

}  // namespace accrue
