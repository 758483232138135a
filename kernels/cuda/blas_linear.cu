// Linear layers and matrix products by cuBLAS; what it leaves to do runs on the product kernel.
#include "accrue/kernels/cuda/batch.h"
#include "accrue/kernels/cuda/blas.h"
#include "accrue/kernels/cuda/blas_linear.h"
#include "accrue/kernels/cuda/lane_sums.h"
#include "accrue/kernels/cuda/product.h"

#include <initializer_list>

namespace accrue::kernels::cuda {
namespace {

bool is_taken(MatmulPrecision precision, const BlasProduct& product) {
  return precision != MatmulPrecision::ieee && Blas::takes(product);
}

/// Runs a program without chains on the elements of [rows, cols] slots.
void run_elements(const char* name,
                  std::int64_t rows,
                  std::int64_t cols,
                  std::initializer_list<LaneInstruction> program,
                  Slot first,
                  Slot second,
                  Stream stream) {
  Product product;
  product.a.count = rows;
  product.b.count = cols;
  for (const LaneInstruction it : program) product.add(it);
  product.few_slots[0] = first;
  product.few_slots[1] = second;
  launch_product(name, product, stream);
}

/// Makes a buffer the sum of the buffers that `sum` reads; returns whether it holds anything then.
bool add_buffers(const LinearWeightGrad<float>& args, const LaneSum& sum, Stream stream) {
  const std::int64_t rows = args.dy.cols, cols = args.x.cols;
  const auto slot_of = [&](std::int32_t slot) {
    return Slot{args.buffers[static_cast<std::size_t>(slot)], cols};
  };
  const auto run = [&](std::initializer_list<LaneInstruction> program, std::int32_t other) {
    run_elements(args.kName, rows, cols, program, slot_of(sum.slot), slot_of(other), stream);
  };
  using It = LaneInstruction;
  bool has_value = sum.reads(sum.slot);
  if (sum.buffers.empty() && sum.rows.empty()) run({It::zero(), It::store(0)}, sum.slot);
  for (const std::int32_t buffer : sum.buffers) {
    if (buffer == sum.slot) continue;
    if (has_value) {
      run({It::load(0), It::merge(1), It::store(0)}, buffer);
    } else {
      run({It::load(1), It::store(0)}, buffer);
    }
    has_value = true;
  }
  return has_value;
}

template <class T>
Matrix<T> rows_from(Matrix<T> m, std::int64_t begin, std::int64_t end) {
  return {m.data + begin * m.row_stride, end - begin, m.cols, m.row_stride, m.col_stride};
}

}  // namespace

bool run_by_blas(const LinearForward<float>& args, Stream stream) {
  const bool has_bias = args.bias != nullptr;
  const BlasProduct product{args.x, args.w.transposed(), args.y, has_bias};
  if (!is_taken(args.precision, product)) return false;
  if (has_bias) {
    run_elements(args.kName,
                 args.y.rows,
                 args.y.cols,
                 {LaneInstruction::load(1), LaneInstruction::store(0)},
                 {args.y.data, args.y.row_stride},
                 {const_cast<float*>(args.bias), 0},  // only read
                 stream);
  }
  return multiply_by_blas(args.precision, product, stream);
}

bool run_by_blas(const LinearInputGrad<float>& args, Stream stream) {
  return multiply_by_blas(args.precision, {args.dy, args.w, args.dx}, stream);
}

bool run_by_blas(const Matmul<float>& args, Stream stream) {
  return multiply_by_blas(args.precision, {args.a, args.b, args.c}, stream);
}

bool run_by_blas(const LinearWeightGrad<float>& args, Stream stream) {
  const std::int64_t rows = args.dy.cols, cols = args.x.cols;
  BlasProduct product{args.dy.transposed(), args.x, {nullptr, rows, cols, cols, 1}};
  std::vector<LaneSum> sums;
  if (!is_taken(args.precision, product) || !find_lane_sums(args.program, sums)) return false;
  for (const LaneSum& sum : sums) {
    product.c.data = args.buffers[static_cast<std::size_t>(sum.slot)];
    product.adds = add_buffers(args, sum, stream);
    for (const auto& [begin, end] : sum.rows) {
      product.a = rows_from(args.dy, begin, end).transposed();
      product.b = rows_from(args.x, begin, end);
      multiply_by_blas(args.precision, product, stream);
      product.adds = true;
    }
  }
  return true;
}

bool run_by_blas(const BatchedMatmul& args, Stream stream) {
  Tensor output = args.c;
  const Matrices<const float> a(args.a), b(args.b);
  const Matrices<float> c(output);
  if (!is_taken(args.precision, {a[0], b[0], c[0]})) return false;
  const auto steps_at = [&](std::int64_t i) {
    return std::array{a[i + 1].data - a[i].data, b[i + 1].data - b[i].data};
  };
  for (std::int64_t first = 0, next = 0; first < c.count(); first = next) {
    BlasProduct product{a[first], b[first], c[first]};
    product.c_step = product.c.rows * product.c.cols;
    next = first + 1;
    if (next < c.count()) {  // as many as lie at equal distances
      const auto steps = steps_at(first);
      while (next < c.count() && steps_at(next - 1) == steps) ++next;
      product.a_step = steps[0];
      product.b_step = steps[1];
    }
    product.batch = next - first;
    multiply_by_blas(args.precision, product, stream);
  }
  return true;
}

}  // namespace accrue::kernels::cuda
