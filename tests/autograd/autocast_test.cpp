// Autocast: torch's values, rounded operands and float32 chains, what is left alone, scopes.
#include "accrue/autograd/autocast.h"

#include "accrue/autograd/ops/attention.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/conv2d.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/losses.h"
#include "accrue/autograd/ops/matmul.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/autograd/ops/softmax.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

using namespace accrue;
using accrue::test::There;

namespace {

constexpr DType kHalves[] = {DType::bfloat16, DType::float16};

Variable normal(const Shape& shape, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw;
  Tensor x = Tensor::empty(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] = draw(random);
  return Variable::leaf(accrue::test::there(x));
}

Tensor rounded(const Tensor& x, DType dtype) { return x.to(dtype).to(DType::float32); }
Variable rounded_leaf(const Variable& x, DType dtype) {
  return Variable::leaf(rounded(x.value(), dtype));
}

using Product = std::function<Variable(std::span<const Variable>)>;

/// The result, and the gradients of all operands.
std::vector<Tensor> run(const Product& product,
                        const std::vector<Variable>& operands,
                        const Tensor& dy,
                        const std::optional<DType>& half = {}) {
  std::optional<Autocast> scope;
  if (half) scope.emplace(*half);
  const Variable y = product(operands);
  scope.reset();  // backward does not need it
  std::vector<Tensor> results = grad(y, operands, dy);
  results.push_back(y.value());
  return results;
}

/// Under autocast: operands, result and the gradient of the result rounded, of the operands' only
/// the first `num_rounded`.
void check_rounds(const char* name,
                  const Product& product,
                  const std::vector<Variable>& operands,
                  std::size_t num_rounded) {
  CAPTURE(name);
  for (const DType half : kHalves) {
    CAPTURE(half);
    std::vector<Variable> narrow;
    for (const Variable& operand : operands) narrow.push_back(rounded_leaf(operand, half));
    const Tensor dy = normal(product(operands).shape(), 9).value();
    const std::vector<Tensor> got = run(product, operands, dy, half);
    std::vector<Tensor> wanted = run(product, narrow, rounded(dy, half));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const bool rounds = i < num_rounded || i == operands.size();
      CHECK(equal_bits(got[i], rounds ? rounded(wanted[i], half) : wanted[i]));
    }
    CHECK_FALSE(equal_bits(got.back(), run(product, operands, dy).back()));
  }
}

Tensor read(std::ifstream& file, const Shape& shape) {
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::vector<float> values;
  for (float value = 0; words >> value;) values.push_back(value);
  return There::from(values, shape);
}

}  // namespace

TEST_CASE("autograd.autocast: products and gradients are those of torch.autocast") {
  std::ifstream file(tests::golden_path("torch_autocast.txt"));
  REQUIRE(file);
  int count = 0;
  for (std::string line; std::getline(file, line) && !line.starts_with("scaler");) {
    std::istringstream words(line);
    std::string name;
    std::int64_t m = 0, k = 0, n = 0;
    words >> name >> m >> k >> n;
    CAPTURE(line);
    const bool is_linear = name == "linear";
    std::vector<Shape> shapes = {{m, k}, {k, n}};
    if (is_linear) shapes = {{m, k}, {n, k}, {n}};
    std::vector<Variable> operands;
    for (const Shape& shape : shapes) operands.push_back(Variable::leaf(read(file, shape)));
    const Tensor dy = read(file, {m, n}), y = read(file, {m, n});
    const std::vector<Tensor> results =
        run([&](auto v) { return is_linear ? linear(v[0], v[1], v[2]) : matmul(v[0], v[1]); },
            operands,
            dy,
            DType::bfloat16);
    CHECK(equal_bits(results.back(), y));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Tensor wanted = read(file, shapes[i]);
      // torch rounds those of parameters too.
      const bool is_parameter = is_linear && i > 0;
      CHECK(equal_bits(is_parameter ? rounded(results[i], DType::bfloat16) : results[i], wanted));
    }
    ++count;
  }
  CHECK(count == 6);
}

TEST_CASE("autograd.autocast: products round operands, results and gradients of both") {
  check_rounds(
      "linear",
      [](auto v) { return linear(v[0], v[1], v[2]); },
      {normal({5, 33}, 1), normal({7, 33}, 2), normal({7}, 3)},
      1);
  check_rounds(
      "conv2d",
      [](auto v) { return conv2d(v[0], v[1], v[2]); },
      {normal({2, 3, 6, 5}, 1), normal({4, 3, 3, 2}, 2), normal({4}, 3)},
      1);
  check_rounds(
      "matmul",
      [](auto v) { return matmul(v[0], v[1]); },
      {normal({2, 5, 9}, 1), normal({9, 4}, 2)},
      2);
  check_rounds(
      "attention",
      [](auto v) { return scaled_dot_product_attention(v[0], v[1], v[2], true); },
      {normal({2, 6, 4}, 1), normal({2, 6, 4}, 2), normal({2, 6, 3}, 3)},
      3);
}

TEST_CASE("autograd.autocast: a row chains in float32, past the largest float16 only at its end") {
  // 40000 * 2 - 40000 * 1.5 is 20000, though 80000 is no float16.
  const Variable x = Variable::leaf(There::of<float>({{2, 1.5}}));
  const Variable w = Variable::leaf(There::of<float>({{40000, -40000}, {40000, 40000}}));
  const Autocast scope(DType::float16);
  const Variable y = linear(x, w);
  CHECK(y.value().to_vector<float>() == std::vector<float>{20000, HUGE_VALF});
}

TEST_CASE("autograd.autocast: a parameter's gradient is a float32 chain of rounded rows") {
  Variable w = normal({3, 8}, 2), x = normal({50, 8}, 1);
  const Tensor dy = normal({50, 3}, 4).value();
  for (const DType half : kHalves) {
    const Autocast scope(half);
    // In two passes, as micro-batches come.
    w.zero_grad();
    for (const std::int64_t begin : {0, 20}) {
      const std::int64_t count = begin == 0 ? 20 : 30;
      linear(x.value().narrow(0, begin, count), w).backward(dy.narrow(0, begin, count));
    }
    const std::vector<float> xs = rounded(x.value(), half).to_vector<float>();
    const std::vector<float> dys = rounded(dy, half).to_vector<float>();
    for (std::size_t o = 0; o < 3; ++o) {
      for (std::size_t i = 0; i < 8; ++i) {
        float wanted = 0;
        for (std::size_t n = 0; n < 50; ++n)
          wanted = std::fma(dys[n * 3 + o], xs[n * 8 + i], wanted);
        CHECK(w.grad().to_vector<float>()[o * 8 + i] == wanted);
      }
    }
  }
}

TEST_CASE("autograd.autocast: softmax, losses, sums and float64 stay as they are") {
  const Variable x = normal({4, 5}, 1);
  const Tensor labels = There::of<std::int64_t>({0, 1, 2, 3});
  const auto results = [&] {
    return std::vector{log_softmax(x, -1).value(),
                       cross_entropy(x, labels).value(),
                       mse_loss(x, x * 2).value(),
                       sum(x).value(),
                       exp(x).value()};
  };
  const std::vector<Tensor> outside = results();
  const Autocast scope(DType::bfloat16);
  const std::vector<Tensor> inside = results();
  for (std::size_t i = 0; i < inside.size(); ++i) CHECK(equal_bits(inside[i], outside[i]));
  const Variable wide = Variable::leaf(Tensor::full({1, 1}, 1.0001, DType::float64));
  CHECK(linear(wide, wide).item<double>() == std::fma(1.0001, 1.0001, 0.0));
  CHECK_THROWS_AS(linear(wide, x), ShapeError);
  CHECK_THROWS_AS(matmul(Variable::leaf(Tensor::ones({4, 4}, DType::float64)), x), DTypeError);
}

TEST_CASE("autograd.autocast: scopes nest, end, belong to a thread, and can be switched off") {
  CHECK_FALSE(autocast_dtype());
  {
    const Autocast outer(DType::bfloat16);
    {
      const Autocast inner(DType::float16);
      CHECK(autocast_dtype() == DType::float16);
      const Autocast off(DType::float16, false);
      CHECK_FALSE(autocast_dtype());
    }
    CHECK(autocast_dtype() == DType::bfloat16);
    std::thread([] { CHECK_FALSE(autocast_dtype()); }).join();
  }
  CHECK_FALSE(autocast_dtype());
  CHECK_THROWS_WITH_AS(
      Autocast(DType::float32),
      "[autocast] dtype must be bfloat16 or float16, got float32; float32 needs no scope",
      ValueError);
}
