// Embedding: a table of vectors that is looked up by index.
#pragma once

#include "accrue/core/generator.h"
#include "accrue/nn/layer.h"

#include <optional>

namespace accrue::nn {

/// Row indices[...] of `weight` for each index.
///
/// Shapes:  indices int64 of any shape, weight [num_embeddings, embedding_dim], result
///          [indices..., embedding_dim].
/// Init:    torch's bits: normal(0, 1); the row padding_idx is 0 and gets no gradient.
/// Order, window: as accrue::embedding.
class Embedding final : public Layer {
 public:
  /// Errors: ValueError for negative sizes; IndexError unless padding_idx is in
  ///         [-num_embeddings, num_embeddings).
  Embedding(std::int64_t num_embeddings,
            std::int64_t embedding_dim,
            std::optional<std::int64_t> padding_idx = std::nullopt,
            Generator& generator = default_generator());

  /// Errors: IndexError for an index outside the table, DTypeError.
  Variable forward(const Variable& indices) override;

  std::int64_t num_embeddings() const { return weight_.shape()[0]; }
  std::int64_t embedding_dim() const { return weight_.shape()[1]; }
  Variable weight() const { return weight_; }

 private:
  std::string options_str() const override;

  Variable weight_;
  std::optional<std::int64_t> padding_idx_;
};

}  // namespace accrue::nn
