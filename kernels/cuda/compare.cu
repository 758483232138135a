// Comparisons and choices on CUDA.
#include "accrue/kernels/compare_checks.h"
#include "accrue/kernels/cuda/each.cuh"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/scalar/compare.h"

#include <type_traits>

namespace accrue::kernels {
namespace {

using namespace cuda;

template <class T>
struct Comparison {
  CompareOp op;
  Layouts<3> layouts;
  const T *a, *b;
  bool* y;

  ACCRUE_DEVICE bool compare(T left, T right) const {
    switch (op) {
      case CompareOp::eq:
        return scalar::Equal::apply(left, right);
      case CompareOp::ne:
        return scalar::NotEqual::apply(left, right);
      case CompareOp::lt:
        return scalar::Less::apply(left, right);
      case CompareOp::le:
        return scalar::LessEqual::apply(left, right);
      case CompareOp::gt:
        return scalar::Less::apply(right, left);
      case CompareOp::ge:
        return scalar::LessEqual::apply(right, left);
    }
    return false;
  }
  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Offsets<3> at = layouts.offsets(i);
    y[at[2]] = compare(a[at[0]], b[at[1]]);
  }
};

struct Choice {
  Layouts<4> layouts;
  std::int64_t size;  ///< bytes of an element
  const bool* condition;
  const void *a, *b;
  void* y;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Offsets<4> at = layouts.offsets(i);
    const std::uint64_t word =
        condition[at[0]] ? load_word(a, at[1], size) : load_word(b, at[2], size);
    store_word(y, at[3], size, word);
  }
};

}  // namespace

void launch_cuda(const Compare& args, Stream stream) {
  check_arguments(args);
  const Layouts<3> layouts(args.y.shape(), {args.a.strides(), args.b.strides(), args.y.strides()});
  visit_dtype(args.a.dtype(), [&]<class Element>(Element) {
    if constexpr (!is_half<Element>) {  // they are refused
      using T = std::conditional_t<std::is_same_v<Element, bool>, std::uint8_t, Element>;
      const Comparison<T> body{args.op,
                               layouts,
                               reinterpret_cast<const T*>(args.a.data<Element>()),
                               reinterpret_cast<const T*>(args.b.data<Element>()),
                               args.y.mutable_data<bool>()};
      launch_each(name_of(args.op), args.y.numel(), body, stream);
    }
  });
}

void launch_cuda(const Where& args, Stream stream) {
  check_arguments(args);
  const Choice body{
      {args.y.shape(),
       {args.condition.strides(), args.a.strides(), args.b.strides(), args.y.strides()}},
      size_of(args.y.dtype()),
      args.condition.data<bool>(),
      bytes_of(args.a),
      bytes_of(args.b),
      mutable_bytes_of(args.y)};
  launch_each(args.kName, args.y.numel(), body, stream);
}

}  // namespace accrue::kernels
