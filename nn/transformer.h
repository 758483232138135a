// TransformerBlock: the block that GPT models repeat.
#pragma once

#include "accrue/nn/attention.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/norm.h"

namespace accrue::nn {

struct TransformerBlockOptions {
  std::int64_t embed_dim = 0;  ///< E
  std::int64_t num_heads = 1;
  std::int64_t mlp_dim = 0;  ///< 0: 4 E
  double dropout = 0.1;      ///< behind attention, and in and behind the MLP
  bool causal = true;
  bool bias = true;  ///< of the linear layers and of attention
};

/// x + dropout1(self_attn(norm1(x))), then that + dropout2(linear2(dropout(gelu(linear1(norm2))))).
///
/// Shapes:  x [B, T, E], result as x.
/// Init:    torch's bits. Names of parameters and modules as in torch's TransformerEncoderLayer
///          with norm_first, batch_first and gelu, which computes the same.
/// Order, window, memory: as the layers it is made of.
class TransformerBlock final : public Layer {
 public:
  /// Errors: ValueError of the layers.
  explicit TransformerBlock(const TransformerBlockOptions& options,
                            Generator& generator = default_generator());

  /// Errors: ShapeError unless x is [B, T, E], DTypeError.
  Variable forward(const Variable& x) override;

 private:
  MultiheadAttention self_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_;
  Dropout dropout1_, dropout2_;
};

}  // namespace accrue::nn
