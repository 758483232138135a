// Copies of any layout, conversions and fills on CUDA.
#include "accrue/kernels/copy.h"
#include "accrue/kernels/cuda/each.cuh"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/elementwise_checks.h"

#include <limits>
#include <type_traits>

namespace accrue::kernels {
namespace {

using namespace cuda;

struct CopyWords {
  Layouts<2> layouts;
  std::int64_t size;  ///< bytes of an element
  const void* x;
  void* y;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Offsets<2> at = layouts.offsets(i);
    store_word(y, at[1], size, load_word(x, at[0], size));
  }
};

struct FillWords {
  Layouts<1> layouts;
  std::int64_t size;
  std::uint64_t word;
  void* y;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    store_word(y, layouts.offsets(i)[0], size, word);
  }
};

/// A number of any dtype, exactly: integers as `whole`, others as `real`.
struct Number {
  bool is_whole = true;
  std::int64_t whole = 0;
  double real = 0;
};

ACCRUE_DEVICE Number read_number(DType dtype, const void* data, std::int64_t i) {
  switch (dtype) {
    case DType::float32:
      return {false, 0, static_cast<double>(static_cast<const float*>(data)[i])};
    case DType::float64:
      return {false, 0, static_cast<const double*>(data)[i]};
    case DType::bfloat16:
      return {false, 0, static_cast<double>(static_cast<const BFloat16*>(data)[i])};
    case DType::float16:
      return {false, 0, static_cast<double>(static_cast<const Float16*>(data)[i])};
    case DType::int64:
      return {true, static_cast<const std::int64_t*>(data)[i]};
    case DType::int32:
      return {true, static_cast<const std::int32_t*>(data)[i]};
    case DType::uint8:
      return {true, static_cast<const std::uint8_t*>(data)[i]};
    case DType::boolean:
      break;
  }
  return {true, static_cast<const std::uint8_t*>(data)[i] != 0};
}

/// The number as a T, rounded once; the low bits of NaN are those of the machine.
template <class T>
ACCRUE_DEVICE T rounded(const Number& x) {
  return x.is_whole ? T(x.whole) : T(x.real);
}

/// The number, truncated toward zero, if T has it; else 0, and sets *is_unfit.
template <class T>
ACCRUE_DEVICE T truncated(const Number& x, int* is_unfit) {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  // kHigh + 1, a power of two, is exact in double. NaN fails both comparisons.
  constexpr double kAbove = static_cast<double>(kHigh / 2 + 1) * 2, kBelow = kLow;
  const bool fits = x.is_whole ? x.whole >= kLow && x.whole <= kHigh
                               : x.real < kAbove && (x.real >= kBelow || x.real > kBelow - 1);
  if (fits) return static_cast<T>(x.is_whole ? x.whole : static_cast<std::int64_t>(x.real));
  atomic_max(is_unfit, 1);
  return 0;
}

struct Convert {
  Layouts<2> layouts;
  DType from, to;
  const void* x;
  void* y;
  int* is_unfit;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Offsets<2> at = layouts.offsets(i);
    const Number number = read_number(from, x, at[0]);
    switch (to) {
      case DType::float32:
        static_cast<float*>(y)[at[1]] = rounded<float>(number);
        break;
      case DType::float64:
        static_cast<double*>(y)[at[1]] = rounded<double>(number);
        break;
      case DType::bfloat16:
        static_cast<BFloat16*>(y)[at[1]] = rounded<BFloat16>(number);
        break;
      case DType::float16:
        static_cast<Float16*>(y)[at[1]] = rounded<Float16>(number);
        break;
      case DType::int64:
        static_cast<std::int64_t*>(y)[at[1]] = truncated<std::int64_t>(number, is_unfit);
        break;
      case DType::int32:
        static_cast<std::int32_t*>(y)[at[1]] = truncated<std::int32_t>(number, is_unfit);
        break;
      case DType::uint8:
        static_cast<std::uint8_t*>(y)[at[1]] = truncated<std::uint8_t>(number, is_unfit);
        break;
      case DType::boolean:
        static_cast<bool*>(y)[at[1]] = number.is_whole ? number.whole != 0 : number.real != 0;
        break;
    }
  }
};

/// Whether `to` holds every value of `from`, as far as conversions check.
bool is_total(DType from, DType to) {
  if (to != DType::int64 && to != DType::int32 && to != DType::uint8) return true;
  const bool is_whole = from != DType::float32 && from != DType::float64 && size_of(from) != 2;
  return is_whole && size_of(from) <= size_of(to);
}

void convert(const Copy& args, Convert body, Stream stream) {
  if (is_total(body.from, body.to)) return launch_each("to", args.y.numel(), body, stream);
  int is_unfit = 0;
  Workspace flag(sizeof(int), stream);
  flag.upload(&is_unfit, sizeof(int));
  body.is_unfit = flag.as<int>();
  launch_each(args.kName, args.y.numel(), body, stream);
  flag.download(&is_unfit, sizeof(int));
  ACCRUE_CHECK(is_unfit == 0,
               ValueError,
               args.kName,
               "values must fit ",
               body.to,
               ", got some that do not; clamp or mask first");
}

}  // namespace

void launch_cuda(const Copy& args, Stream stream) {
  const DType from = args.x.dtype(), to = args.y.dtype();
  check_operand(args.kName, args.x, args.y.shape(), from);
  const Layouts<2> layouts(args.y.shape(), {args.x.strides(), args.y.strides()});
  const void* const x = bytes_of(args.x);
  void* const y = mutable_bytes_of(args.y);
  if (from != to) return convert(args, {layouts, from, to, x, y, nullptr}, stream);
  launch_each("copy", args.y.numel(), CopyWords{layouts, size_of(to), x, y}, stream);
}

void launch_cuda(const Fill& args, Stream stream) {
  const DType dtype = args.y.dtype();
  const Tensor element = Tensor::full({}, args.value, dtype);
  const std::int64_t size = size_of(dtype);
  std::uint64_t word = 0;
  __builtin_memcpy(&word, bytes_of(element), static_cast<std::size_t>(size));
  const Layouts<1> layouts(args.y.shape(), {args.y.strides()});
  launch_each(
      args.kName, args.y.numel(), FillWords{layouts, size, word, mutable_bytes_of(args.y)}, stream);
}

}  // namespace accrue::kernels
