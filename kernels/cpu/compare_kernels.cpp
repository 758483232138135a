// The loops of comparisons and choices; dense runs have loops of their own, which vectorise.
#include "accrue/core/dtype.h"
#include "accrue/kernels/cpu/compare.h"
#include "accrue/kernels/scalar/compare.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

template <class F, class T>
void compare_run(const CompareRun& run) {
  const T* const a = static_cast<const T*>(run.a);
  const T* const b = static_cast<const T*>(run.b);
  bool* const y = run.y;
  if (run.a_stride == 1 && run.b_stride == 1 && run.y_stride == 1) {
    for (std::int64_t i = 0; i < run.count; ++i) y[i] = F::apply(a[i], b[i]);
  } else if (run.a_stride == 1 && run.b_stride == 0 && run.y_stride == 1) {
    const T number = *b;
    for (std::int64_t i = 0; i < run.count; ++i) y[i] = F::apply(a[i], number);
  } else {
    for (std::int64_t i = 0; i < run.count; ++i) {
      y[i * run.y_stride] = F::apply(a[i * run.a_stride], b[i * run.b_stride]);
    }
  }
}

template <class F>
void compare_typed(const CompareRun& run) {
  switch (run.dtype) {
    case DType::float32:
      return compare_run<F, float>(run);
    case DType::float64:
      return compare_run<F, double>(run);
    case DType::int64:
      return compare_run<F, std::int64_t>(run);
    case DType::int32:
      return compare_run<F, std::int32_t>(run);
    default:
      return compare_run<F, std::uint8_t>(run);
  }
}

template <class Word>
void where_run(const WhereRun& run) {
  const bool* const c = run.condition;
  const Word* const a = static_cast<const Word*>(run.a);
  const Word* const b = static_cast<const Word*>(run.b);
  Word* const y = static_cast<Word*>(run.y);
  const bool is_dense = run.condition_stride == 1 && run.y_stride == 1;
  if (is_dense && run.a_stride == 1 && run.b_stride == 1) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const Word yes = a[i], no = b[i];
      y[i] = c[i] ? yes : no;
    }
  } else if (is_dense && run.a_stride == 1 && run.b_stride == 0) {
    const Word no = *b;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const Word yes = a[i];
      y[i] = c[i] ? yes : no;
    }
  } else {
    for (std::int64_t i = 0; i < run.count; ++i) {
      y[i * run.y_stride] = c[i * run.condition_stride] ? a[i * run.a_stride] : b[i * run.b_stride];
    }
  }
}

}  // namespace

void compare(CompareOp op, const CompareRun& run) {
  CompareRun swapped = run;
  swapped.a = run.b;
  swapped.b = run.a;
  swapped.a_stride = run.b_stride;
  swapped.b_stride = run.a_stride;
  switch (op) {
    case CompareOp::eq:
      return compare_typed<scalar::Equal>(run);
    case CompareOp::ne:
      return compare_typed<scalar::NotEqual>(run);
    case CompareOp::lt:
      return compare_typed<scalar::Less>(run);
    case CompareOp::le:
      return compare_typed<scalar::LessEqual>(run);
    case CompareOp::gt:
      return compare_typed<scalar::Less>(swapped);
    case CompareOp::ge:
      return compare_typed<scalar::LessEqual>(swapped);
  }
}

void where(const WhereRun& run) {
  if (run.size == 4) return where_run<std::uint32_t>(run);
  if (run.size == 8) return where_run<std::uint64_t>(run);
  if (run.size == 2) return where_run<std::uint16_t>(run);
  return where_run<std::uint8_t>(run);
}

}  // namespace accrue::kernels::ACCRUE_ISA
