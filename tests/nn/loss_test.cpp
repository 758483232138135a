// Losses of batches: sums, weights, shapes.
#include "accrue/nn/loss.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/core/bits.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>
#include <vector>

namespace accrue::nn {
namespace {

const float kNan = std::nanf("");
constexpr float kInf = HUGE_VALF;

TEST_CASE("nn.loss: cross_entropy holds a row per label and counts those that are not ignored") {
  const Variable logits = Tensor::zeros({3, 4});
  const Loss loss = nn::cross_entropy(logits, Tensor::of<std::int64_t>({1, -100, 3}));
  CHECK(loss.rows().shape() == Shape{3});
  CHECK(loss.weight().value() == 2);
  CHECK(loss.mean() == doctest::Approx(std::log(4.0)));
  CHECK(loss.rows().value().to_vector<float>()[1] == 0);
}

TEST_CASE("nn.loss: labels [N, T] with logits [N, T, C] are N * T rows") {
  const Tensor logits = Tensor::arange(12, DType::float32).view({2, 3, 2});
  const Tensor labels = Tensor::of<std::int64_t>({{0, 1, 0}, {1, 1, -100}});
  const Loss loss = nn::cross_entropy(Variable(logits), labels);
  const Loss flat = nn::cross_entropy(Variable(logits.view({6, 2})), labels.view({6}));
  CHECK(equal_bits(loss.rows().value(), flat.rows().value()));
  CHECK(loss.weight() == flat.weight());
  CHECK(nn::cross_entropy(Variable(Tensor::zeros({2, 0, 3})), Tensor::zeros({2, 0}, DType::int64))
            .rows()
            .shape() == Shape{0});
}

TEST_CASE("nn.loss: shapes of logits and labels that do not match are refused") {
  const auto loss = [](const Shape& logits, const Shape& labels) {
    return nn::cross_entropy(Variable(Tensor::zeros(logits)), Tensor::zeros(labels, DType::int64));
  };
  CHECK_THROWS_WITH_AS(loss({2, 5, 3}, {2, 3}),
                       "[cross_entropy] logits must be [..., C] and labels [...], got [2, 5, 3] "
                       "and [2, 3]; move the classes to the last dimension",
                       ShapeError);
  CHECK_THROWS_AS(loss({2, 3}, {3}), ShapeError);
  CHECK_THROWS_AS(loss({2, 3}, {2, 3}), ShapeError);
  CHECK_THROWS_AS(loss({3}, {}), ShapeError);
  CHECK_THROWS_AS(loss({}, {}), ShapeError);
  CHECK_THROWS_AS(
      nn::cross_entropy(Variable(Tensor::zeros({2, 3})), Tensor::zeros({2}, DType::int32)),
      DTypeError);
  CHECK_THROWS_AS(nn::cross_entropy(Variable(Tensor::zeros({1, 3})), Tensor::of<std::int64_t>({3})),
                  IndexError);
}

TEST_CASE("nn.loss: class weights weigh rows and their sum") {
  const CrossEntropyLoss criterion{{.class_weights = Tensor::of<float>({1, 3, 0.5f})}};
  const Loss loss =
      criterion(Variable(Tensor::zeros({4, 3})), Tensor::of<std::int64_t>({0, 1, 1, -100}));
  CHECK(loss.weight().value() == 7);
  CHECK(loss.mean() == doctest::Approx(std::log(3.0)));
}

TEST_CASE("nn.loss: an all-ignored or empty batch has weight 0, sum 0 and a NaN mean") {
  const Loss ignored =
      nn::cross_entropy(Variable(Tensor::zeros({2, 3})), Tensor::of<std::int64_t>({-100, -100}));
  const Loss empty =
      nn::cross_entropy(Variable(Tensor::zeros({0, 3})), Tensor::zeros({0}, DType::int64));
  const Loss no_elements =
      nn::mse(Variable(Tensor::zeros({0, 3})), Variable(Tensor::zeros({0, 3})));
  for (const Loss& loss : {ignored, empty, no_elements}) {
    CHECK(loss.weight().value() == 0);
    CHECK(loss.sum().item<float>() == 0);
    CHECK(std::isnan(loss.mean()));
  }
}

TEST_CASE("nn.loss: an ignored row of NaN leaves the loss and its gradient alone") {
  const Variable logits = Variable::leaf(Tensor::of<float>({{kNan, 1}, {0, 0}}));
  const Loss loss = nn::cross_entropy(logits, Tensor::of<std::int64_t>({-100, 0}));
  loss.sum().backward();
  CHECK(loss.mean() == doctest::Approx(std::log(2.0)));
  CHECK(logits.grad().to_vector<float>() == std::vector<float>{0, 0, -0.5f, 0.5f});
}

TEST_CASE("nn.loss: logits at the edge of the number range") {
  struct Edge {
    const char* name;
    std::vector<float> logits;
    double mean;
    std::vector<float> gradient;
  };
  const std::vector<Edge> edges = {
      {"one class", {5}, 0, {0}},
      {"far apart", {-1e38f, 1e38f}, 2e38, {-1, 1}},
      {"equal and huge", {3e38f, 3e38f}, std::log(2.0), {-0.5f, 0.5f}},
      {"the target impossible", {-kInf, 0}, kInf, {-1, 1}},
      {"the others impossible", {0, -kInf}, 0, {0, 0}},
      {"the target infinite", {kInf, 0}, kNan, {kNan, kNan}},
      {"all impossible", {-kInf, -kInf}, kNan, {kNan, kNan}},
      {"another not a number", {0, kNan}, kNan, {kNan, kNan}},
  };
  for (const Edge& edge : edges) {
    CAPTURE(edge.name);
    const auto C = static_cast<std::int64_t>(edge.logits.size());
    const Variable logits = Variable::leaf(Tensor::from(edge.logits, {1, C}));
    const Loss loss = nn::cross_entropy(logits, Tensor::of<std::int64_t>({0}));
    loss.sum().backward();
    if (std::isfinite(edge.mean)) {
      CHECK(loss.mean() == doctest::Approx(edge.mean).epsilon(1e-6));
    } else {
      CHECK(canonical_bits(loss.mean()) == canonical_bits(edge.mean));
    }
    const std::vector<float> gradient = logits.grad().to_vector<float>();
    for (std::size_t c = 0; c < gradient.size(); ++c) {
      CHECK(canonical_bits(gradient[c] + 0) == canonical_bits(edge.gradient[c]));
    }
  }
  MESSAGE(edges.size(), " edges");
}

TEST_CASE("nn.loss: labels outside the classes and options outside their domain are refused") {
  const auto loss = [](std::int64_t label, const CrossEntropyOptions& options = {}) {
    return nn::cross_entropy(
        Variable(Tensor::zeros({2, 3})), Tensor::of<std::int64_t>({0, label}), options);
  };
  CHECK_THROWS_AS(loss(3), IndexError);
  CHECK_THROWS_AS(loss(-1), IndexError);
  CHECK_THROWS_AS(loss(std::numeric_limits<std::int64_t>::min()), IndexError);
  CHECK_THROWS_AS(nn::cross_entropy(Variable(Tensor::zeros({1, 0})), Tensor::of<std::int64_t>({0})),
                  ShapeError);
  CHECK(loss(1, {.ignore_index = 0}).weight().value() == 1);
  CHECK_THROWS_AS(loss(1, {.label_smoothing = -0.1}), ValueError);
  CHECK_THROWS_AS(loss(1, {.label_smoothing = 1.1}), ValueError);
  CHECK_THROWS_AS(loss(1, {.class_weights = Tensor::ones({2})}), ShapeError);
  CHECK(std::isnan(loss(1, {.class_weights = Tensor::of<float>({0, 0, 1})}).mean()));
}

TEST_CASE("nn.loss: mse weighs elements and does not broadcast") {
  const Loss loss = MSELoss()(Variable(Tensor::of<float>({{1, 2}, {3, 4}})),
                              Variable(Tensor::of<float>({{1, 1}, {1, 1}})));
  CHECK(loss.rows().value().to_vector<float>() == std::vector<float>{1, 13});
  CHECK(loss.weight().value() == 4);
  CHECK(loss.mean() == 3.5);
  const auto shapes = [](const Shape& x, const Shape& y) {
    return nn::mse(Variable(Tensor::zeros(x)), Variable(Tensor::zeros(y)));
  };
  CHECK_THROWS_WITH_AS(shapes({3, 1}, {3}),
                       "[mse] input and target must have one shape, got [3, 1] and [3]; reshape "
                       "or expand one of them",
                       ShapeError);
  CHECK_THROWS_AS(shapes({3, 2}, {3, 4}), ShapeError);
  const auto mean = [](float x, float y) {
    return nn::mse(Variable(Tensor::of<float>({x})), Variable(Tensor::of<float>({y}))).mean();
  };
  CHECK(std::isnan(mean(kInf, kInf)));
  CHECK(mean(1e20f, -1e20f) == kInf);
  const auto ones = [](const Shape& shape) { return Variable(Tensor::ones(shape)); };
  CHECK(nn::mse(ones({3}), ones({3})).rows().shape() == Shape{1});
  CHECK(nn::mse(ones({}), ones({})).weight().value() == 1);
  const Variable batch(Tensor::ones({3}).with_sample_axis({.dim = 0}));
  CHECK(nn::mse(batch, ones({3})).rows().shape() == Shape{3});
}

TEST_CASE("nn.loss: one padded batch of eight sequences has the documented gradient") {
  Tensor inputs = Tensor::full({8, 8, 1}, -100), labels = Tensor::full({8, 8}, -100, DType::int64);
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t t = 0; t <= i; ++t) {
      inputs[i][t].fill(static_cast<double>(t + 1));
      labels[i][t].fill(static_cast<double>((t + 1) % 2));
    }
  }
  const Variable weight =
      Variable::leaf(Tensor::of<float>({{float_of(0xbbf55400)}, {float_of(0x3f09545e)}}));
  const Loss loss = nn::cross_entropy(linear(Variable(inputs), weight), labels);
  CHECK(loss.weight().value() == 36);
  CHECK(hex8(static_cast<float>(loss.mean())) == "3f8f8477");
  (loss.sum() / loss.weight().value()).backward();
  CHECK(hex8(weight.grad().to_vector<float>()[0]) == "bfa46cb4");
  CHECK(hex8(weight.grad().to_vector<float>()[1]) == "3fa46cb4");
}

}  // namespace
}  // namespace accrue::nn
