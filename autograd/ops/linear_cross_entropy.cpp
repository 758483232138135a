#include "accrue/autograd/ops/linear_cross_entropy.h"

#include "accrue/autograd/autocast.h"
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/affine.h"
#include "accrue/autograd/ops/row_matrix.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/cross_entropy.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/linear.h"
#include "accrue/kernels/program_segments.h"

#include <algorithm>
#include <optional>

namespace accrue {
namespace {

using kernels::Matrix;

constexpr std::int64_t kChunkBytes = 4 << 20;  // of logits
constexpr std::int64_t kChunkRows = 352;       // at least: w and its gradient stream once per chunk

/// Chunks of equal size, so that none costs a stream of w for few rows.
std::int64_t chunk_for(std::int64_t num_rows, std::int64_t num_classes, DType dtype) {
  const std::int64_t row_bytes = std::max<std::int64_t>(num_classes, 1) * size_of(dtype);
  const std::int64_t most = std::max(kChunkRows, kChunkBytes / row_bytes);
  const std::int64_t num_chunks = (num_rows + most - 1) / most;
  return num_chunks == 0 ? 1 : (num_rows + num_chunks - 1) / num_chunks;
}

/// The rows [begin, begin + count) of a matrix.
template <class T>
Matrix<T> rows_of(const Matrix<T>& matrix, std::int64_t begin, std::int64_t count) {
  const std::int64_t offset = count > 0 ? begin * matrix.row_stride : 0;
  return {matrix.data + offset, count, matrix.cols, matrix.row_stride, matrix.col_stride};
}

/// What both directions read.
struct Operands {
  Tensor x, w, bias, target;
  CrossEntropyOptions options;
  std::optional<DType> half;  ///< what logits and their gradients are rounded to
};

/// The rows cut into chunks, at least one, whose logits share one piece of memory.
template <class T>
class Chunks {
 public:
  /// `logits` is [chunk_rows, classes].
  Chunks(const Operands& operands, std::int64_t chunk_rows, Tensor& logits)
      : operands_(operands),
        chunk_rows_(chunk_rows),
        num_rows_(operands.x.shape()[0]),
        memory_(logits),
        logits_(mutable_row_matrix<T>(logits)) {}

  std::int64_t count() const {
    return std::max<std::int64_t>((num_rows_ + chunk_rows_ - 1) / chunk_rows_, 1);
  }
  std::int64_t begin(std::int64_t chunk) const { return chunk * chunk_rows_; }
  /// The rows of `matrix` [N, ...] that are the chunk's.
  template <class U>
  Matrix<U> rows(std::int64_t chunk, const Matrix<U>& matrix) const {
    return rows_of(matrix, begin(chunk), std::min(chunk_rows_, num_rows_ - begin(chunk)));
  }
  Matrix<T> logits(std::int64_t chunk) const {
    return rows_of(logits_, 0, std::min(chunk_rows_, num_rows_ - begin(chunk)));
  }

  Device device() const { return operands_.x.device(); }

  void make_logits(std::int64_t chunk) const {
    const Tensor& bias = operands_.bias;
    kernels::launch(device(),
                    kernels::LinearForward<T>{rows(chunk, matrix_of<T>(operands_.x)),
                                              matrix_of<T>(operands_.w),
                                              bias.defined() ? bias.data<T>() : nullptr,
                                              logits(chunk),
                                              matmul_precision()});
    round(chunk);
  }
  /// What lies in the place of the logits, as autocast hands it on.
  void round(std::int64_t chunk) const {
    if (!operands_.half) return;
    Tensor part = memory_.narrow(0, 0, logits(chunk).rows);
    kernels::launch(device(),
                    kernels::UnaryForward{*operands_.half == DType::bfloat16
                                              ? kernels::UnaryOp::round_to_bfloat16
                                              : kernels::UnaryOp::round_to_float16,
                                          part,
                                          part});
  }
  kernels::CrossEntropyInputs<T> inputs(std::int64_t chunk) const {
    const CrossEntropyOptions& options = operands_.options;
    return {logits(chunk),
            operands_.target.data<std::int64_t>() + begin(chunk),
            options.class_weights.defined() ? options.class_weights.data<T>() : nullptr,
            options.ignore_index,
            options.label_smoothing};
  }

 private:
  const Operands& operands_;
  std::int64_t chunk_rows_, num_rows_;
  Tensor memory_;
  Matrix<T> logits_;
};

/// A parameter's program, to be run on one chunk of rows after the other.
template <class T>
class ChunkedTarget {
 public:
  ChunkedTarget(LaneTarget& target, std::int64_t num_rows, std::int64_t chunk_rows)
      : segments_(target.program(), std::max(num_rows, chunk_rows), chunk_rows),
        buffers_(target.pointers<T>()) {
    const Tensor& like = target.buffers.front();
    for (std::int32_t i = 0; i < segments_.num_carried(); ++i) {
      carried_.push_back(Tensor::empty(like.shape(), like.dtype(), like.device()));
      buffers_.push_back(carried_.back().template mutable_data<T>());
    }
  }
  /// Calls launch(program, buffers) for the next chunk.
  template <class Launch>
  void run(const Launch& launch) {
    launch(segments_.program(segments_.segments()[next_++]), std::span<T* const>(buffers_));
  }

 private:
  kernels::ProgramSegments segments_;
  std::vector<T*> buffers_;
  std::vector<Tensor> carried_;
  std::size_t next_ = 0;
};

struct LinearCrossEntropyNode final : OpNode<3> {
  Operands operands;
  std::vector<SavedTensor> saved;  ///< those of the operands that are defined
  Tensor row_max, row_sum;
  Tensor logits;  ///< of the first chunk, until a backward pass needs the memory
  std::int64_t rows_per_sample = 1, chunk_rows = 0;

  const char* name() const override { return "linear_cross_entropy"; }
  void backward(Backward& context) override {
    for (const SavedTensor& tensor : saved) tensor.get(name());
    const Tensor& x = operands.x;
    Tensor dx = context.needs(0) ? Tensor::empty(x.shape(), x.dtype(), x.device()) : Tensor();
    run(context, dx);
    if (dx.defined()) context.give(0, std::move(dx));
  }
  void forget_saved() override {
    operands = {};
    saved.clear();
    row_max = row_sum = logits = Tensor();
  }

 private:
  /// Opens the targets of w and bias, which the chunks fill side by side with dx. A micro-batch
  /// without samples has nothing to fill.
  void run(Backward& context, Tensor& dx) {
    const std::int64_t num_rows = operands.x.shape()[0];
    bool filled = false;
    const auto fill = [&](LaneTarget* of_w, LaneTarget* of_bias) {
      visit_floating(operands.x.dtype(), name(), [&]<class T>(T) {
        fill_gradients<T>(context.dy(), of_w, of_bias, dx);
      });
      filled = true;
    };
    const auto with_bias = [&](LaneTarget* of_bias) {
      if (context.needs(1)) {
        context.give_rows(1, operands.w, num_rows, rows_per_sample, [&](LaneTarget& of_w) {
          fill(&of_w, of_bias);
        });
      } else if (of_bias || dx.defined()) {
        fill(nullptr, of_bias);
      }
    };
    Backward outer = context;  // each holds one open target
    if (context.needs(2)) {
      outer.give_rows(2, operands.bias, num_rows, rows_per_sample, [&](LaneTarget& of_bias) {
        with_bias(&of_bias);
      });
    }
    if (!filled) with_bias(nullptr);
  }

  template <class T>
  void fill_gradients(const Tensor& dloss, LaneTarget* of_w, LaneTarget* of_bias, Tensor& dx) {
    const Matrix<const T> x = matrix_of<T>(operands.x), w = matrix_of<T>(operands.w);
    const bool has_first = logits.defined();
    Tensor memory = has_first ? std::exchange(logits, Tensor())
                              : Tensor::empty({chunk_rows, w.rows}, dloss.dtype(), dloss.device());
    const Chunks<T> chunks(operands, chunk_rows, memory);
    std::optional<ChunkedTarget<T>> weight, bias;
    if (of_w) weight.emplace(*of_w, x.rows, chunk_rows);
    if (of_bias) bias.emplace(*of_bias, x.rows, chunk_rows);
    const std::int64_t stride = row_stride(dloss);
    for (std::int64_t i = 0; i < chunks.count(); ++i) {
      if (i > 0 || !has_first) chunks.make_logits(i);
      const std::int64_t begin = chunks.begin(i);
      kernels::launch(memory.device(),
                      kernels::CrossEntropyBackward<T>{chunks.inputs(i),
                                                       row_max.data<T>() + begin,
                                                       row_sum.data<T>() + begin,
                                                       dloss.data<T>() + begin * stride,
                                                       stride,
                                                       chunks.logits(i)});
      chunks.round(i);
      const Matrix<const T> dy = chunks.logits(i);
      if (bias) {
        bias->run([&](auto program, auto buffers) {
          kernels::launch(memory.device(), kernels::LinearBiasGrad<T>{dy, program, buffers});
        });
      }
      if (weight) {
        weight->run([&](auto program, auto buffers) {
          kernels::launch(memory.device(),
                          kernels::LinearWeightGrad<T>{
                              dy, chunks.rows(i, x), program, buffers, matmul_precision()});
        });
      }
      if (dx.defined()) {
        kernels::launch(memory.device(),
                        kernels::LinearInputGrad<T>{
                            dy, w, chunks.rows(i, mutable_row_matrix<T>(dx)), matmul_precision()});
      }
    }
  }
};

void check(const Variable& x,
           const Variable& w,
           const Variable& bias,
           const Tensor& target,
           const CrossEntropyOptions& options,
           std::int64_t chunk_rows) {
  constexpr const char* kName = "linear_cross_entropy";
  check_linear(kName, x, w, bias);
  ACCRUE_CHECK(x.rank() == 2 && target.rank() == 1 && x.shape()[0] == target.shape()[0],
               ShapeError,
               kName,
               "input must be [N, I] and target [N], got ",
               x.shape(),
               " and ",
               target.shape(),
               "; flatten tokens with reshape({-1, I}) and reshape({-1})");
  ACCRUE_CHECK(w.shape()[0] >= 1 || x.shape()[0] == 0,
               ShapeError,
               kName,
               "weight must have at least one class, got ",
               w.shape(),
               "; check the last layer");
  check_cross_entropy_options(kName, target, options, w.shape()[0], x.dtype());
  common_device(kName, x.value(), target, options.class_weights);
  ACCRUE_CHECK(chunk_rows >= 0,
               ValueError,
               kName,
               "chunk_rows must be >= 0, got ",
               chunk_rows,
               "; 0 takes a number that fits");
}

Operands dense_operands(const Variable& x,
                        const Variable& w,
                        const Variable& bias,
                        const Tensor& target,
                        const CrossEntropyOptions& options,
                        std::optional<DType> half) {
  Operands result{x.value(), w.value(), bias.value(), target.contiguous(), options, half};
  for (Tensor* vector : {&result.bias, &result.options.class_weights}) {
    if (vector->defined()) *vector = vector->contiguous();
  }
  return result;
}

/// Logits are rounded to `half` if it is given; x, w and bias are then rounded already.
Variable fused_rows(const Variable& x,
                    const Variable& w,
                    const Variable& bias,
                    const Tensor& target,
                    const CrossEntropyOptions& options,
                    std::int64_t chunk_rows,
                    std::optional<DType> half) {
  check(x, w, bias, target, options, chunk_rows);
  const std::int64_t rows_per_sample = affine_rows("linear_cross_entropy", x, 1, w, bias);
  const Device device = x.device();
  chunk_rows = chunk_rows == 0 ? chunk_for(x.shape()[0], w.shape()[0], x.dtype())
                               : std::clamp<std::int64_t>(x.shape()[0], 1, chunk_rows);
  const Operands operands = dense_operands(x, w, bias, target, options, half);
  const Tensor& labels = operands.target;
  if (device.is_cpu()) {
    kernels::check_targets(
        labels.data<std::int64_t>(), labels.numel(), w.shape()[0], options.ignore_index);
  }
  Tensor loss = Tensor::empty(labels.shape(), x.dtype(), device);
  Tensor row_max = Tensor::empty(labels.shape(), x.dtype(), device);
  Tensor row_sum = Tensor::empty(labels.shape(), x.dtype(), device);
  Tensor logits = Tensor::empty({chunk_rows, w.shape()[0]}, x.dtype(), device);
  visit_floating(x.dtype(), "linear_cross_entropy", [&]<class T>(T) {
    const Chunks<T> chunks(operands, chunk_rows, logits);
    for (std::int64_t i = chunks.count(); i-- > 0;) {  // so that chunk 0 is left for backward
      chunks.make_logits(i);
      const std::int64_t begin = chunks.begin(i);
      kernels::launch(device,
                      kernels::CrossEntropyForward<T>{chunks.inputs(i),
                                                      loss.mutable_data<T>() + begin,
                                                      row_max.mutable_data<T>() + begin,
                                                      row_sum.mutable_data<T>() + begin});
    }
  });
  const SampleAxis axis = affine_axis(operands.x.sample_axis(), w, bias);
  return record<LinearCrossEntropyNode>(
      loss.with_sample_axis(row_axis(axis, labels, options)),
      [&](LinearCrossEntropyNode& node) {
        node.operands = operands;
        for (const Tensor& tensor :
             {operands.x, operands.w, operands.bias, labels, operands.options.class_weights}) {
          if (tensor.defined()) node.saved.emplace_back(tensor);
        }
        node.row_max = row_max;
        node.row_sum = row_sum;
        node.logits = logits;
        node.rows_per_sample = rows_per_sample;
        node.chunk_rows = chunk_rows;
      },
      x,
      w,
      bias);
}

}  // namespace

Variable linear_cross_entropy_rows(const Variable& x,
                                   const Variable& w,
                                   const Variable& bias,
                                   const Tensor& target,
                                   const CrossEntropyOptions& options,
                                   std::int64_t chunk_rows) {
  const auto half = autocast_dtype();
  if (!half || x.dtype() != DType::float32)
    return fused_rows(x, w, bias, target, options, chunk_rows, {});
  return fused_rows(autocast_operand(x, *half),
                    autocast_weight(w, *half),
                    autocast_weight(bias, *half),
                    target,
                    options,
                    chunk_rows,
                    half);
}

}  // namespace accrue
