// Every layer and every loss on a device: the CPU's values, gradients and random draws.
#include "accrue/accrue.h"
#include "accrue/tests/support/doctest.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace accrue;

namespace {

const Device kGpu = Device::cuda(0);

Tensor normal(const Shape& shape, std::uint64_t seed) {
  Tensor result = Tensor::empty(shape);
  Generator generator(seed);
  generator.normal(
      std::span(result.mutable_data<float>(), static_cast<std::size_t>(result.numel())));
  return result;
}

/// What `pass` returns must have equal bits on both devices.
void compare(const std::string& name, const std::function<std::vector<Tensor>(Device)>& pass) {
  CAPTURE(name);
  const std::vector<Tensor> near = pass(Device::cpu()), far = pass(kGpu);
  REQUIRE(far.size() == near.size());
  for (std::size_t i = 0; i < far.size(); ++i) {
    CAPTURE(i);
    CHECK(far[i].device() == kGpu);
    CHECK(equal_bits(far[i], near[i]));
  }
}

// ---- layers ----

struct Row {
  std::string name;
  std::function<std::unique_ptr<nn::Layer>()> make;
  Tensor x;
};

template <class Layer, class... Args>
Row row(const char* name, const Tensor& x, const Args&... args) {
  return {name, [=] { return std::make_unique<Layer>(args...); }, x};
}

std::vector<Row> rows() {
  const Tensor x = normal({3, 4, 6}, 1), images = normal({2, 4, 5, 7}, 2);
  const Tensor words = Tensor::of<std::int64_t>({{0, 8, 3}, {3, 3, 1}});
  const nn::TransformerBlockOptions block = {.embed_dim = 6, .num_heads = 2, .mlp_dim = 5};
  return {row<nn::Linear>("Linear", x, 6, 5),
          row<nn::Linear>("Linear without bias", x.transpose(0, 1), 6, 5, false),
          row<nn::ReLU>("ReLU", x),
          row<nn::LeakyReLU>("LeakyReLU", x, 0.1),
          row<nn::GELU>("GELU", x),
          row<nn::GELU>("GELU by tanh", x, nn::GeluForm::tanh),
          row<nn::Tanh>("Tanh", x),
          row<nn::Sigmoid>("Sigmoid", x),
          row<nn::SiLU>("SiLU", x),
          row<nn::Softmax>("Softmax", x),
          row<nn::LogSoftmax>("LogSoftmax", x, 1),
          row<nn::Flatten>("Flatten", x),
          row<nn::Dropout>("Dropout", x, 0.3),
          row<nn::Embedding>("Embedding", words, 9, 4),
          row<nn::Embedding>("Embedding with padding", words, 9, 4, 3),
          row<nn::LayerNorm>("LayerNorm", x, Shape{4, 6}),
          row<nn::RMSNorm>("RMSNorm", x, Shape{6}),
          row<nn::Conv2d>("Conv2d", images, 4, 6, Size2(3)),
          row<nn::MaxPool2d>("MaxPool2d", images, Size2(2)),
          row<nn::AvgPool2d>("AvgPool2d", images, Size2(2)),
          row<nn::MultiheadAttention>("MultiheadAttention", x, 6, 2),
          row<nn::MultiheadAttention>("MultiheadAttention, causal", x, 6, 3, true, true),
          row<nn::TransformerBlock>("TransformerBlock", x, block)};
}

/// The result, then the gradients of the input and of all parameters.
std::vector<Tensor> pass(const Row& row, bool is_training, Device device) {
  manual_seed(3);
  const std::unique_ptr<nn::Layer> layer = row.make();
  layer->to(device);
  layer->train(is_training);
  const Tensor value = row.x.to(device);
  const Variable x = is_floating(value.dtype()) ? Variable::leaf(value) : Variable(value);
  const Variable y = (*layer)(x);
  y.backward(normal(y.shape(), 4).to(device));
  std::vector<Tensor> results = {y.value()};
  if (x.requires_grad()) results.push_back(x.grad());
  for (const Variable& parameter : layer->parameters()) results.push_back(parameter.grad());
  return results;
}

// ---- losses ----

/// A loss of x [2, 3, 5], w [7, 5] and labels [2, 3].
using MakeLoss = std::function<Loss(const Variable& x, const Variable& w, const Tensor& labels)>;

/// The rows, then the gradients of x and w.
std::vector<Tensor> pass(const MakeLoss& make, Device device) {
  const Variable x = Variable::leaf(normal({2, 3, 5}, 5).to(device));
  const Variable w = Variable::leaf(normal({7, 5}, 6).to(device));
  const Tensor labels = Tensor::of<std::int64_t>({{0, -100, 4}, {2, 2, 1}});
  const Loss loss = make(x, w, labels.to(device));
  loss.sum().backward();
  std::vector<Tensor> results = {loss.rows().value(), x.grad()};
  if (w.grad().defined()) results.push_back(w.grad());
  return results;
}

}  // namespace

TEST_CASE("device.modules: every layer gives the CPU's bits, in training and in evaluation") {
  for (const Row& row : rows()) {
    for (const bool is_training : {true, false}) {
      CAPTURE(is_training);
      compare(row.name, [&](Device device) { return pass(row, is_training, device); });
    }
  }
}

TEST_CASE("device.modules: every loss gives the CPU's bits") {
  const auto check = [](const char* name, const MakeLoss& make) {
    compare(name, [&](Device device) { return pass(make, device); });
  };
  check("mse", [](auto& x, auto&, auto&) {
    return nn::mse(x, Variable(normal(x.shape(), 7).to(x.device())));
  });
  check("cross_entropy", [](auto& x, auto&, auto& labels) { return nn::cross_entropy(x, labels); });
  check("cross_entropy with options", [](auto& x, auto&, auto& labels) {
    const Tensor weights = Tensor::of<float>({1, 2, 0, 0.5F, 3}).to(labels.device());
    return nn::cross_entropy(x, labels, {.class_weights = weights, .label_smoothing = 0.1});
  });
  check("linear_cross_entropy",
        [](auto& x, auto& w, auto& labels) { return nn::linear_cross_entropy(x, w, {}, labels); });
  check("causal_lm_loss",
        [](auto& x, auto& w, auto& labels) { return nn::causal_lm_loss(x, w, labels); });
}
