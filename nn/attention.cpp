#include "accrue/nn/attention.h"

#include "accrue/autograd/ops/attention.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/core/error.h"
#include "accrue/nn/init.h"

namespace accrue::nn {
namespace {

std::int64_t checked_dim(std::int64_t embed_dim, std::int64_t num_heads) {
  ACCRUE_CHECK(embed_dim > 0 && num_heads > 0 && embed_dim % num_heads == 0,
               ValueError,
               "MultiheadAttention",
               "embed_dim must be a positive multiple of num_heads, got ",
               embed_dim,
               " and ",
               num_heads);
  return embed_dim;
}

}  // namespace

MultiheadAttention::MultiheadAttention(
    std::int64_t embed_dim, std::int64_t num_heads, bool bias, bool causal, Generator& generator)
    : num_heads_(num_heads),
      causal_(causal),
      out_proj_(checked_dim(embed_dim, num_heads), embed_dim, bias, generator) {
  Tensor weight = Tensor::empty({3 * embed_dim, embed_dim});
  init::xavier_uniform(weight, 1, generator);
  in_proj_weight_ = register_parameter("in_proj_weight", weight);
  if (bias) {
    in_proj_bias_ = register_parameter("in_proj_bias", Tensor::zeros({3 * embed_dim}));
    out_proj_.bias().mutable_value().fill(0);
  }
  register_module("out_proj", out_proj_);
}

Variable MultiheadAttention::forward(const Variable& x) {
  const std::int64_t width = out_proj_.in_features();
  ACCRUE_CHECK(x.rank() == 3 && x.size(2) == width,
               ShapeError,
               "MultiheadAttention",
               "the input must be [B, T, ",
               width,
               "], got ",
               x.shape());
  const Variable all = linear(x, in_proj_weight_, in_proj_bias_);
  const Variable split =
      permute(reshape(all, {x.size(0), x.size(1), 3, num_heads_, width / num_heads_}),
              {2, 0, 3, 1, 4});  // [3, B, H, T, D]
  const Variable y = scaled_dot_product_attention(
      select(split, 0, 0), select(split, 0, 1), select(split, 0, 2), causal_);
  return out_proj_(reshape(transpose(y, 1, 2), x.shape()));
}

}  // namespace accrue::nn
