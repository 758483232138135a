// Embedding: torch's initial bits, name and printout; the padding row.
#include "accrue/nn/embedding.h"

#include "accrue/autograd/ops/reduce.h"
#include "accrue/core/bits.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using accrue::test::There;

TEST_CASE("nn.embedding: weights have torch's bits for the seed") {
  Generator generator(0);
  nn::Embedding sixteen(4, 4, std::nullopt, generator);  // torch 1.13.1, randn(16) on AVX2
  const std::vector<float> w = sixteen.weight().value().to_vector<float>();
  CHECK(bits_of(w[0]) == 0xbf901b85U);
  CHECK(bits_of(w[3]) == 0xbede255dU);
  CHECK(bits_of(w[15]) == 0xbe7d367cU);
  generator.manual_seed(0);
  nn::Embedding five(5, 1, std::nullopt, generator);  // randn(5) follows another rule
  const std::vector<float> v = five.weight().value().to_vector<float>();
  CHECK(bits_of(v[0]) == 0x3fc53f5cU);
  CHECK(bits_of(v[4]) == 0xbf8ad1a1U);
}

TEST_CASE("nn.embedding: it prints and names its parameter as torch does") {
  nn::Embedding plain(10, 3), padded(10, 3, -10);
  CHECK(plain.str() == "Embedding(10, 3)");
  CHECK(padded.str() == "Embedding(10, 3, padding_idx=0)");
  CHECK(plain.state_dict()[0].first == "weight");
  CHECK(plain.num_parameters() == 30);
}

TEST_CASE("nn.embedding: the padding row starts at zero and gets no gradient") {
  nn::Embedding layer(4, 2, 2);
  test::there(layer);
  const Variable y = layer(Variable(There::of<std::int64_t>({2, 1, 1})));
  CHECK(y.shape() == Shape{3, 2});
  sum(y).backward();
  CHECK(y.value()[0].to_vector<float>() == std::vector<float>{0, 0});
  CHECK(layer.weight().grad().to_vector<float>() == std::vector<float>{0, 0, 2, 2, 0, 0, 0, 0});
}

TEST_CASE("nn.embedding: wrong sizes and padding are refused") {
  CHECK_THROWS_WITH_AS(nn::Embedding(-1, 3),
                       "[Embedding] sizes must be >= 0, got num_embeddings -1 and embedding_dim 3",
                       ValueError);
  CHECK_THROWS_WITH_AS(
      nn::Embedding(4, 2, 4), "[Embedding] padding_idx must lie in [-4, 4), got 4", IndexError);
}
