#include "accrue/nn/transformer.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/unary.h"

namespace accrue::nn {
namespace {

std::int64_t mlp_dim(const TransformerBlockOptions& options) {
  return options.mlp_dim == 0 ? 4 * options.embed_dim : options.mlp_dim;
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerBlockOptions& options, Generator& generator)
    : self_attn_(options.embed_dim, options.num_heads, options.bias, options.causal, generator),
      linear1_(options.embed_dim, mlp_dim(options), options.bias, generator),
      dropout_(options.dropout),
      linear2_(mlp_dim(options), options.embed_dim, options.bias, generator),
      norm1_(options.embed_dim),
      norm2_(options.embed_dim),
      dropout1_(options.dropout),
      dropout2_(options.dropout) {
  register_module("self_attn", self_attn_);
  register_module("linear1", linear1_);
  register_module("dropout", dropout_);
  register_module("linear2", linear2_);
  register_module("norm1", norm1_);
  register_module("norm2", norm2_);
  register_module("dropout1", dropout1_);
  register_module("dropout2", dropout2_);
}

Variable TransformerBlock::forward(const Variable& x) {
  const Variable attended = x + dropout1_(self_attn_(norm1_(x)));
  const Variable hidden = dropout_(gelu(linear1_(norm2_(attended))));
  return attended + dropout2_(linear2_(hidden));
}

}  // namespace accrue::nn
