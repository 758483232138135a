#include "accrue/nn/embedding.h"

#include "accrue/autograd/ops/embedding.h"
#include "accrue/core/error.h"
#include "accrue/nn/init.h"

namespace accrue::nn {

Embedding::Embedding(std::int64_t num_embeddings,
                     std::int64_t embedding_dim,
                     std::optional<std::int64_t> padding_idx,
                     Generator& generator) {
  ACCRUE_CHECK(num_embeddings >= 0 && embedding_dim >= 0,
               ValueError,
               "Embedding",
               "sizes must be >= 0, got num_embeddings ",
               num_embeddings,
               " and embedding_dim ",
               embedding_dim);
  ACCRUE_CHECK(!padding_idx || (*padding_idx >= -num_embeddings && *padding_idx < num_embeddings),
               IndexError,
               "Embedding",
               "padding_idx must lie in [-",
               num_embeddings,
               ", ",
               num_embeddings,
               "), got ",
               padding_idx.value_or(0));
  if (padding_idx && *padding_idx < 0) *padding_idx += num_embeddings;
  padding_idx_ = padding_idx;
  Tensor weight = Tensor::empty({num_embeddings, embedding_dim});
  init::normal(weight, 0, 1, generator);
  if (padding_idx) weight.select(0, *padding_idx).fill(0);
  weight_ = register_parameter("weight", weight);
}

Variable Embedding::forward(const Variable& indices) {
  return embedding(weight_, indices.value(), padding_idx_);
}

std::string Embedding::options_str() const {
  const std::string padding = padding_idx_ ? text(", padding_idx=", *padding_idx_) : "";
  return text(num_embeddings(), ", ", embedding_dim(), padding);
}

}  // namespace accrue::nn
