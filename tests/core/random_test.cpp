// Random tensors: torch's bits after manual_seed.
#include "accrue/core/random.h"

#include "accrue/core/generator.h"
#include "accrue/tests/support/doctest.h"

#include <vector>

using namespace accrue;

namespace {

/// What `call` gives after manual_seed(seed).
template <class Call>
Tensor seeded(std::uint64_t seed, Call call) {
  manual_seed(seed);
  return call();
}

}  // namespace

TEST_CASE("core.random: the numbers of torch's functions") {
  const Tensor uniform = seeded(42, [] { return rand({5}); });
  CHECK(uniform.str() == "tensor([0.8823, 0.9150, 0.3829, 0.9593, 0.3904])");
  const Tensor few = seeded(42, [] { return randn({5}); });
  CHECK(few.str() == "tensor([ 0.3367,  0.1288,  0.2345,  0.2303, -1.1229])");
  const Tensor many = seeded(42, [] { return randn({4, 4}); });
  CHECK(many[0].str() == "tensor([ 1.9269,  1.4873,  0.9007, -2.1055])");
  const Tensor doubles = seeded(0, [] { return rand({3}, DType::float64); });
  CHECK(doubles.to_vector<double>() ==
        std::vector{0.9700530018065531, 0.707819864399788, 0.45938294312745087});
  CHECK(seeded(42, [] { return randint(0, 100, {5}); }).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{42, 67, 76, 14, 26});
  CHECK(seeded(42, [] { return randperm(10); }).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
}

TEST_CASE("core.random: each draws as the generator fills") {
  Generator generator(7);
  manual_seed(7);
  std::vector<float> numbers(20), coins(6);
  const std::vector<float> p(6, 0.25F);
  generator.normal(numbers, 3, 0.5);
  generator.bernoulli(coins, p);
  CHECK(normal(3, 0.5, {4, 5}).to_vector<float>() == numbers);
  const Tensor strided = Tensor::full({3, 2}, 0.25).transpose(0, 1);
  const Tensor drawn = bernoulli(strided);
  CHECK(drawn.shape() == Shape{2, 3});
  CHECK(drawn.to_vector<float>() == coins);
  CHECK(bernoulli(Tensor::of<float>({0, 1})).to_vector<float>() == std::vector<float>{0, 1});
  const Tensor samples = strided.with_sample_axis({0, 1});
  CHECK(bernoulli(samples).sample_axis().is_mixed());
  CHECK(drawn.sample_axis() == SampleAxis{});
}

TEST_CASE("core.random: empty tensors draw nothing, wrong calls throw and draw nothing") {
  manual_seed(1);
  const auto before = default_generator().get_state();
  CHECK(rand({0, 3}).shape() == Shape{0, 3});
  CHECK(randn({2, 0}).numel() == 0);
  CHECK(randint(0, 1, {0}).numel() == 0);
  CHECK(randperm(0).numel() == 0);
  CHECK_THROWS_AS(rand({-1}), ShapeError);
  CHECK_THROWS_AS(rand({2}, DType::int64), DTypeError);
  CHECK_THROWS_AS(randn({2}, DType::bfloat16), DTypeError);
  CHECK_THROWS_AS(normal(0, -1, {2}), ValueError);
  CHECK_THROWS_AS(randint(3, 3, {2}), ValueError);
  CHECK_THROWS_AS(randperm(-1), ValueError);
  CHECK_THROWS_AS(rand({2}, DType::float32, Device::cuda(99)), Error);
  CHECK_THROWS_AS(randint(0, 3, {2}, Device::cuda(99)), Error);
  CHECK_THROWS_AS(randperm(3, Device::cuda(99)), Error);
  CHECK_THROWS_AS(bernoulli(Tensor::full({2}, 1.5)), ValueError);
  CHECK_THROWS_AS(bernoulli(Tensor::full({2}, 1, DType::int64)), DTypeError);
  CHECK(default_generator().get_state() == before);
}
