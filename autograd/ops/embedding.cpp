#include "accrue/autograd/ops/embedding.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/affine.h"
#include "accrue/autograd/ops/row_matrix.h"
#include "accrue/core/same_device.h"
#include "accrue/kernels/embedding.h"
#include "accrue/kernels/launch.h"

namespace accrue {
namespace {

/// A dense tensor whose last dimension has `width` elements, as `rows` rows.
template <class T>
kernels::Matrix<const T> rows_of(const Tensor& dense, std::int64_t rows, std::int64_t width) {
  return {dense.data<T>(), rows, width, width, 1};
}

struct EmbeddingNode final : OpNode<1> {
  SavedTensor indices;  ///< dense
  Shape table_shape;
  std::int64_t padding_index = -1;
  std::int64_t rows_per_sample = 1;

  const char* name() const override { return "embedding"; }
  void backward(Backward& context) override {
    const Tensor dy = context.dy().contiguous();
    const Tensor& chosen = indices.get(name());
    const Tensor like = Tensor::empty({1, 1}, dy.dtype(), dy.device()).expand(table_shape);
    visit_floating(dy.dtype(), name(), [&]<class T>(T) {
      context.give_rows(0, like, chosen.numel(), rows_per_sample, [&](LaneTarget& target) {
        const std::vector<T*> buffers = target.pointers<T>();
        kernels::launch(dy.device(),
                        kernels::EmbeddingGrad<T>{rows_of<T>(dy, chosen.numel(), table_shape[1]),
                                                  chosen.data<std::int64_t>(),
                                                  table_shape[0],
                                                  padding_index,
                                                  target.program(),
                                                  buffers});
      });
    });
  }
  void forget_saved() override { indices.reset(); }
};

void check_embedding(const Variable& table, const Tensor& indices) {
  ACCRUE_CHECK(
      table.rank() == 2, ShapeError, "embedding", "the table must be [V, E], got ", table.shape());
  ACCRUE_CHECK(indices.dtype() == DType::int64,
               DTypeError,
               "embedding",
               "indices must be int64, got ",
               indices.dtype(),
               "; convert with to()");
}

/// padding_idx in [0, V), or -1 for none.
std::int64_t checked_padding(std::optional<std::int64_t> padding_idx, std::int64_t size) {
  if (!padding_idx) return -1;
  ACCRUE_CHECK(*padding_idx >= -size && *padding_idx < size,
               IndexError,
               "embedding",
               "padding_idx must lie in [-",
               size,
               ", ",
               size,
               "), got ",
               *padding_idx);
  return *padding_idx < 0 ? *padding_idx + size : *padding_idx;
}

/// In a window, rows per sample of the indices; the table must be a leaf there.
std::int64_t checked_rows(const Variable& table, const Tensor& indices) {
  if (!grad_enabled() || !table.requires_grad() || !MicroBatch::current()) return 1;
  ACCRUE_CHECK(table.is_leaf(),
               StateError,
               "embedding",
               "the table must be a parameter in a window, got the result of an operation; use "
               "invariant = false");
  return rows_per_sample(indices, 0, "embedding", "the indices into a parameter");
}

}  // namespace

Variable embedding(const Variable& table,
                   const Tensor& indices,
                   std::optional<std::int64_t> padding_idx) {
  check_embedding(table, indices);
  const std::int64_t padding_index = checked_padding(padding_idx, table.shape()[0]);
  const std::int64_t per_sample = checked_rows(table, indices);
  const Device device = common_device("embedding", table.value(), indices);
  const Tensor rows = table.value().contiguous();
  const Tensor chosen = indices.contiguous();
  Shape shape = indices.shape();
  shape.push_back(table.shape()[1]);
  Tensor y = Tensor::empty(shape, table.dtype(), device);
  visit_floating(table.dtype(), "embedding", [&]<class T>(T) {
    kernels::launch(device,
                    kernels::EmbeddingForward<T>{
                        row_matrix<T>(rows),
                        chosen.data<std::int64_t>(),
                        kernels::row_major(y.mutable_data<T>(), chosen.numel(), shape.back())});
  });
  y = y.with_sample_axis(affine_axis(indices.sample_axis(), table, {}));
  return record<EmbeddingNode>(
      y,
      [&](EmbeddingNode& node) {
        node.indices = SavedTensor(chosen);
        node.table_shape = table.shape();
        node.padding_index = padding_index;
        node.rows_per_sample = per_sample;
      },
      table);
}

}  // namespace accrue
