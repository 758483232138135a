// TransformerBlock against torch 1.13.1's TransformerEncoderLayer with norm_first and gelu.
#include "accrue/nn/transformer.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using accrue::test::There;

namespace {

Tensor tokens() {
  return There::of<float>({{1, 2, 3, 4}, {0, -1, 1, 0.5f}, {2, 0, 0, -2}}).unsqueeze(0);
}

}  // namespace

TEST_CASE("nn.transformer: the block has torch's bits, names and printout") {
  Generator generator(0);
  nn::TransformerBlock block({.embed_dim = 4, .num_heads = 2, .mlp_dim = 16}, generator);
  const nn::StateDict state = block.state_dict();
  std::vector<std::string> names;
  for (const auto& [name, value] : state) names.push_back(name);
  CHECK(names == std::vector<std::string>{"self_attn.in_proj_weight",
                                          "self_attn.in_proj_bias",
                                          "self_attn.out_proj.weight",
                                          "self_attn.out_proj.bias",
                                          "linear1.weight",
                                          "linear1.bias",
                                          "linear2.weight",
                                          "linear2.bias",
                                          "norm1.weight",
                                          "norm1.bias",
                                          "norm2.weight",
                                          "norm2.bias"});
  CHECK(bits_of(state[4].second.to_vector<float>()[0]) == 0x3e9ed100U);
  CHECK(bits_of(state[6].second.to_vector<float>()[0]) == 0xbdfe7cdcU);
  CHECK(block.str() ==
        "TransformerBlock(\n"
        "  (self_attn): MultiheadAttention(\n"
        "    (out_proj): Linear(in_features=4, out_features=4, bias=True)\n"
        "  )\n"
        "  (linear1): Linear(in_features=4, out_features=16, bias=True)\n"
        "  (dropout): Dropout(p=0.1, inplace=False)\n"
        "  (linear2): Linear(in_features=16, out_features=4, bias=True)\n"
        "  (norm1): LayerNorm((4,), eps=1e-05, elementwise_affine=True)\n"
        "  (norm2): LayerNorm((4,), eps=1e-05, elementwise_affine=True)\n"
        "  (dropout1): Dropout(p=0.1, inplace=False)\n"
        "  (dropout2): Dropout(p=0.1, inplace=False)\n"
        ")");
}

TEST_CASE("nn.transformer: in evaluation the block computes what torch's does") {
  Generator generator(0);
  nn::TransformerBlock block({.embed_dim = 4, .num_heads = 2, .mlp_dim = 16}, generator);
  test::there(block).eval();
  const std::vector<float> y = block(Variable(tokens())).value().to_vector<float>();
  const std::vector<double> wanted = {0.9173304,
                                      1.7537769,
                                      3.0566523,
                                      4.6544538,
                                      0.0365740,
                                      -1.2784514,
                                      1.1688010,
                                      0.7282763,
                                      1.9090242,
                                      0.2727564,
                                      -0.0803811,
                                      -2.8377731};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(y[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
}

TEST_CASE("nn.transformer: every parameter gets a gradient, also in float32 with dropout") {
  nn::TransformerBlock block({.embed_dim = 4, .num_heads = 2});
  test::there(block);
  const Variable y = block(Variable(tokens()));
  y.backward(There::ones(y.shape()));
  for (const auto& [name, parameter] : block.named_parameters()) {
    CAPTURE(name);
    CHECK(parameter.grad().defined());
  }
  CHECK(block.num_parameters() == 48 + 12 + 16 + 4 + 64 + 16 + 64 + 4 + 16);
}
