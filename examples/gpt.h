// Gpt: a small language model, as an example of a model of one's own.
#pragma once

#include "accrue/accrue.h"

namespace accrue::examples {

struct GptOptions {
  std::int64_t vocabulary = 0;
  std::int64_t context = 64;  ///< tokens it can see
  std::int64_t embed_dim = 128;
  std::int64_t num_layers = 4;
  std::int64_t num_heads = 4;
  double dropout = 0;
};

/// Embeddings of tokens and positions, transformer blocks, a last norm, logits of the next token.
///
/// Shapes:  tokens int64 [B, T] with T <= context, result [B, T, vocabulary].
class Gpt final : public nn::Layer {
 public:
  explicit Gpt(const GptOptions& options, Generator& generator = default_generator())
      : token_(options.vocabulary, options.embed_dim, std::nullopt, generator),
        position_(options.context, options.embed_dim, std::nullopt, generator),
        dropout_(options.dropout),
        norm_(options.embed_dim),
        head_(options.embed_dim, options.vocabulary, false, generator) {
    for (std::int64_t i = 0; i < options.num_layers; ++i) {
      blocks_.add<nn::TransformerBlock>(nn::TransformerBlockOptions{.embed_dim = options.embed_dim,
                                                                    .num_heads = options.num_heads,
                                                                    .dropout = options.dropout},
                                        generator);
    }
    register_module("token", token_);
    register_module("position", position_);
    register_module("dropout", dropout_);
    register_module("blocks", blocks_);
    register_module("norm", norm_);
    register_module("head", head_);
    // GPT-2's scale: torch's embeddings start fifty times as wide.
    Tensor tables[] = {token_.weight().value(), position_.weight().value()};
    for (Tensor& table : tables) nn::init::normal(table, 0, 0.02, generator);
  }

  Variable forward(const Variable& tokens) override { return head_(hidden(tokens)); }
  /// The loss against `labels` [B, T], the tokens that follow; many logits never exist at once.
  Loss loss(const Variable& tokens, const Tensor& labels) {
    return nn::linear_cross_entropy(hidden(tokens), head_.weight(), {}, labels);
  }

 private:
  /// What the head reads, [B, T, embed_dim].
  Variable hidden(const Variable& tokens) {
    // Position t of every sample: the sample axis is the tokens' own.
    const Tensor positions = Tensor::arange(tokens.shape()[1])
                                 .to(tokens.device())
                                 .expand(tokens.shape())
                                 .with_sample_axis(tokens.value().sample_axis());
    const Variable x = dropout_(token_(tokens) + position_(positions));
    return norm_(blocks_(x));
  }

  nn::Embedding token_, position_;
  nn::Dropout dropout_;
  nn::Sequential blocks_;
  nn::LayerNorm norm_;
  nn::Linear head_;
};

}  // namespace accrue::examples
