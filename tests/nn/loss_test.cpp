// Losses of batches: sums, weights, shapes.
#include "accrue/nn/loss.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/core/bits.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>
#include <vector>

namespace accrue::nn {
namespace {

using test::There;

const float kNan = std::nanf("");
constexpr float kInf = HUGE_VALF;

/// `loss`, when its device is done: it says only then that a label is wrong.
Loss done(const Loss& loss) {
  loss.rows().value().to(Device::cpu());
  return loss;
}

TEST_CASE("nn.loss: cross_entropy holds a row per label and counts those that are not ignored") {
  const Variable logits = There::zeros({3, 4});
  const Loss loss = nn::cross_entropy(logits, There::of<std::int64_t>({1, -100, 3}));
  CHECK(loss.rows().shape() == Shape{3});
  CHECK(loss.weight().value() == 2);
  CHECK(loss.mean() == doctest::Approx(std::log(4.0)));
  CHECK(loss.rows().value().to_vector<float>()[1] == 0);
}

TEST_CASE("nn.loss: labels [N, T] with logits [N, T, C] are N * T rows") {
  const Tensor logits = There::arange(12, DType::float32).view({2, 3, 2});
  const Tensor labels = There::of<std::int64_t>({{0, 1, 0}, {1, 1, -100}});
  const Loss loss = nn::cross_entropy(Variable(logits), labels);
  const Loss flat = nn::cross_entropy(Variable(logits.view({6, 2})), labels.view({6}));
  CHECK(equal_bits(loss.rows().value(), flat.rows().value()));
  CHECK(loss.weight() == flat.weight());
  CHECK(nn::cross_entropy(Variable(There::zeros({2, 0, 3})), There::zeros({2, 0}, DType::int64))
            .rows()
            .shape() == Shape{0});
}

TEST_CASE("nn.loss: shapes of logits and labels that do not match are refused") {
  const auto loss = [](const Shape& logits, const Shape& labels) {
    return nn::cross_entropy(Variable(There::zeros(logits)), There::zeros(labels, DType::int64));
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
      nn::cross_entropy(Variable(There::zeros({2, 3})), There::zeros({2}, DType::int32)),
      DTypeError);
  CHECK_THROWS_AS(
      done(nn::cross_entropy(Variable(There::zeros({1, 3})), There::of<std::int64_t>({3}))),
      IndexError);
}

TEST_CASE("nn.loss: class weights weigh rows and their sum") {
  const CrossEntropyLoss criterion{{.class_weights = There::of<float>({1, 3, 0.5f})}};
  const Loss loss =
      criterion(Variable(There::zeros({4, 3})), There::of<std::int64_t>({0, 1, 1, -100}));
  CHECK(loss.weight().value() == 7);
  CHECK(loss.mean() == doctest::Approx(std::log(3.0)));
}

TEST_CASE("nn.loss: an all-ignored or empty batch has weight 0, sum 0 and a NaN mean") {
  const Loss ignored =
      nn::cross_entropy(Variable(There::zeros({2, 3})), There::of<std::int64_t>({-100, -100}));
  const Loss empty =
      nn::cross_entropy(Variable(There::zeros({0, 3})), There::zeros({0}, DType::int64));
  const Loss no_elements = nn::mse(Variable(There::zeros({0, 3})), Variable(There::zeros({0, 3})));
  for (const Loss& loss : {ignored, empty, no_elements}) {
    CHECK(loss.weight().value() == 0);
    CHECK(loss.sum().item<float>() == 0);
    CHECK(std::isnan(loss.mean()));
  }
}

TEST_CASE("nn.loss: an ignored row of NaN leaves the loss and its gradient alone") {
  const Variable logits = Variable::leaf(There::of<float>({{kNan, 1}, {0, 0}}));
  const Loss loss = nn::cross_entropy(logits, There::of<std::int64_t>({-100, 0}));
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
    const Variable logits = Variable::leaf(There::from(edge.logits, {1, C}));
    const Loss loss = nn::cross_entropy(logits, There::of<std::int64_t>({0}));
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
    return done(nn::cross_entropy(
        Variable(There::zeros({2, 3})), There::of<std::int64_t>({0, label}), options));
  };
  CHECK_THROWS_AS(loss(3), IndexError);
  CHECK_THROWS_AS(loss(-1), IndexError);
  CHECK_THROWS_AS(loss(std::numeric_limits<std::int64_t>::min()), IndexError);
  CHECK_THROWS_AS(nn::cross_entropy(Variable(There::zeros({1, 0})), There::of<std::int64_t>({0})),
                  ShapeError);
  CHECK(loss(1, {.ignore_index = 0}).weight().value() == 1);
  CHECK_THROWS_AS(loss(1, {.label_smoothing = -0.1}), ValueError);
  CHECK_THROWS_AS(loss(1, {.label_smoothing = 1.1}), ValueError);
  CHECK_THROWS_AS(loss(1, {.class_weights = There::ones({2})}), ShapeError);
  CHECK(std::isnan(loss(1, {.class_weights = There::of<float>({0, 0, 1})}).mean()));
}

TEST_CASE("nn.loss: linear_cross_entropy is cross_entropy of linear, of any number of rows") {
  const auto numbers = [](const Shape& shape) {
    const std::int64_t count = product(shape, 0, shape.rank());
    Tensor x = There::arange(count, DType::float32).view(shape);
    return Variable::leaf((Variable(x) * 0.37 - 1).value());
  };
  const Variable hidden = numbers({2, 3, 2}), weight = numbers({4, 2}), bias = numbers({4});
  const Tensor labels = There::of<std::int64_t>({{0, 3, 2}, {1, 1, -100}});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const Loss fused = nn::linear_cross_entropy(hidden, weight, bias, labels, options);
  const Loss apart = nn::cross_entropy(linear(hidden, weight, bias), labels, options);
  CHECK(fused.rows().shape() == Shape{6});
  CHECK(equal_bits(fused.rows().value(), apart.rows().value()));
  CHECK(fused.weight() == apart.weight());
  const std::vector<Variable> leaves = {hidden, weight, bias};
  const std::vector<Tensor> got = grad(fused.sum(), leaves), wanted = grad(apart.sum(), leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(equal_bits(got[i], wanted[i]));
  CHECK_THROWS_WITH_AS(nn::linear_cross_entropy(hidden, weight, bias, labels.flatten()),
                       "[linear_cross_entropy] hidden must be [..., H] and labels [...], got "
                       "[2, 3, 2] and [6]; give each hidden row one label",
                       ShapeError);
}

TEST_CASE("nn.loss: causal_lm_loss holds each position against the label of the next") {
  const Variable weight = Variable::leaf(There::of<float>({{1, 0}, {0, 1}, {2, -1}}));
  const Tensor hidden = There::arange(12, DType::float32).view({2, 3, 2});
  // A B C: targets B and C. An ignored label is no target, wherever it stands.
  const Tensor labels = There::of<std::int64_t>({{0, 1, 2}, {2, -100, 0}});
  const Tensor targets = There::of<std::int64_t>({{1, 2, -100}, {-100, 0, -100}});
  const Loss loss = nn::causal_lm_loss(Variable(hidden), weight, labels);
  const Loss wanted = nn::linear_cross_entropy(Variable(hidden), weight, {}, targets);
  CHECK(loss.weight().value() == 3);
  CHECK(equal_bits(loss.rows().value(), wanted.rows().value()));
  CHECK(loss.rows().value().to_vector<float>()[2] == 0);

  const Loss class_0 = nn::causal_lm_loss(
      Variable(hidden.narrow(0, 0, 1)), weight, labels.narrow(0, 0, 1), {.ignore_index = 0});
  CHECK(class_0.weight().value() == 2);
  const auto of_length = [&](std::int64_t length) {
    return nn::causal_lm_loss(
        Variable(hidden.narrow(1, 0, length)), weight, labels.narrow(1, 0, length));
  };
  CHECK(of_length(1).weight().value() == 0);
  CHECK(of_length(1).sum().item<float>() == 0);
  CHECK(of_length(0).rows().shape() == Shape{0});
}

TEST_CASE("nn.loss: causal_lm_loss keeps samples apart and refuses labels that do not fit") {
  const Variable weight = Variable::leaf(There::ones({3, 2}));
  const auto loss = [&](const Shape& hidden, const Tensor& labels) {
    return done(nn::causal_lm_loss(
        Variable(There::ones(hidden).with_sample_axis({.dim = 0})), weight, labels));
  };
  const Tensor labels = There::zeros({4, 5}, DType::int64);
  CHECK(loss({4, 5, 2}, labels).rows().value().sample_axis() == SampleAxis{0, 5});
  CHECK_THROWS_WITH_AS(loss({4, 5, 2}, There::zeros({4, 4}, DType::int64)),
                       "[causal_lm_loss] hidden must be [N, T, H] and labels [N, T], got [4, 5, 2] "
                       "and [4, 4]; pass a label for each position, not shifted",
                       ShapeError);
  CHECK_THROWS_AS(loss({20, 2}, labels.flatten()), ShapeError);
  CHECK_THROWS_AS(loss({4, 5, 2}, There::zeros({4, 5, 2}, DType::int64)), ShapeError);
  CHECK_THROWS_AS(loss({4, 5, 2}, There::zeros({4, 5}, DType::int32)), DTypeError);
  CHECK_THROWS_AS(loss({4, 5, 3}, labels), ShapeError);
  CHECK_THROWS_AS(loss({4, 5, 2}, There::full({4, 5}, 3, DType::int64)), IndexError);
}

TEST_CASE("nn.loss: mse weighs elements and does not broadcast") {
  const Loss loss = MSELoss()(Variable(There::of<float>({{1, 2}, {3, 4}})),
                              Variable(There::of<float>({{1, 1}, {1, 1}})));
  CHECK(loss.rows().value().to_vector<float>() == std::vector<float>{1, 13});
  CHECK(loss.weight().value() == 4);
  CHECK(loss.mean() == 3.5);
  const auto shapes = [](const Shape& x, const Shape& y) {
    return nn::mse(Variable(There::zeros(x)), Variable(There::zeros(y)));
  };
  CHECK_THROWS_WITH_AS(shapes({3, 1}, {3}),
                       "[mse] input and target must have one shape, got [3, 1] and [3]; reshape "
                       "or expand one of them",
                       ShapeError);
  CHECK_THROWS_AS(shapes({3, 2}, {3, 4}), ShapeError);
  const auto mean = [](float x, float y) {
    return nn::mse(Variable(There::of<float>({x})), Variable(There::of<float>({y}))).mean();
  };
  CHECK(std::isnan(mean(kInf, kInf)));
  CHECK(mean(1e20f, -1e20f) == kInf);
  const auto ones = [](const Shape& shape) { return Variable(There::ones(shape)); };
  CHECK(nn::mse(ones({3}), ones({3})).rows().shape() == Shape{1});
  CHECK(nn::mse(ones({}), ones({})).weight().value() == 1);
  const Variable batch(There::ones({3}).with_sample_axis({.dim = 0}));
  CHECK(nn::mse(batch, ones({3})).rows().shape() == Shape{3});
}

TEST_CASE("nn.loss: one padded batch of eight sequences has the documented gradient") {
  Tensor inputs = There::full({8, 8, 1}, -100), labels = There::full({8, 8}, -100, DType::int64);
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t t = 0; t <= i; ++t) {
      inputs[i][t].fill(static_cast<double>(t + 1));
      labels[i][t].fill(static_cast<double>((t + 1) % 2));
    }
  }
  const Variable weight =
      Variable::leaf(There::of<float>({{float_of(0xbbf55400)}, {float_of(0x3f09545e)}}));
  const Loss loss = nn::cross_entropy(linear(Variable(inputs), weight), labels);
  CHECK(loss.weight().value() == 36);
  CHECK(hex8(static_cast<float>(loss.mean())) == "3f8f8477");
  (loss.sum() / loss.weight().value()).backward();
  CHECK(hex8(weight.grad().to_vector<float>()[0]) == "bfa46cb4");
  CHECK(hex8(weight.grad().to_vector<float>()[1]) == "3fa46cb4");
}

}  // namespace
}  // namespace accrue::nn
