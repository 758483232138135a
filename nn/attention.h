// MultiheadAttention: self-attention with several heads.
#pragma once

#include "accrue/nn/linear.h"

namespace accrue::nn {

/// Projects each token to queries, keys and values, attends in each head, projects the result.
///
/// Shapes:  x [B, T, E], result as x; samples come first (torch's batch_first). Head h has columns
///          [h E / H, (h + 1) E / H) of each projection.
/// Init:    torch's bits: out_proj as Linear, then in_proj_weight by xavier_uniform; biases 0.
///          Parameters as torch: in_proj_weight [3 E, E], in_proj_bias [3 E], out_proj.weight,
///          out_proj.bias.
/// Order, window, memory: as linear and scaled_dot_product_attention. Weights are not dropped.
class MultiheadAttention final : public Layer {
 public:
  /// With `causal` a token sees itself and what comes before it.
  /// Errors: ValueError unless embed_dim is a positive multiple of num_heads.
  MultiheadAttention(std::int64_t embed_dim,
                     std::int64_t num_heads,
                     bool bias = true,
                     bool causal = false,
                     Generator& generator = default_generator());

  /// Errors: ShapeError unless x is [B, T, embed_dim], DTypeError.
  Variable forward(const Variable& x) override;

  Variable in_proj_weight() const { return in_proj_weight_; }
  Variable in_proj_bias() const { return in_proj_bias_; }  ///< undefined without bias
  Linear& out_proj() { return out_proj_; }

 private:
  std::int64_t num_heads_;
  bool causal_;
  Linear out_proj_;
  Variable in_proj_weight_;
  Variable in_proj_bias_;
};

}  // namespace accrue::nn
