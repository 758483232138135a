#include "accrue/bench/support/invariance_networks.h"

#include "accrue/bench/support/train_windows.h"
#include "accrue/examples/gpt.h"

namespace accrue::bench {
namespace {

constexpr std::int64_t kVocabulary = 11, kContext = 6;
constexpr std::int64_t kClasses = 5, kImageSize = 8;

std::unique_ptr<nn::Layer> gpt() {
  Generator generator(1);
  return std::make_unique<examples::Gpt>(examples::GptOptions{.vocabulary = kVocabulary,
                                                              .context = kContext,
                                                              .embed_dim = 16,
                                                              .num_layers = 2,
                                                              .num_heads = 2,
                                                              .dropout = 0.1},
                                         generator);
}

std::unique_ptr<nn::Layer> conv_net() {
  Generator generator(2);
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>(1, 4, 3, Conv2dOptions{.padding = 1}, true, generator);
  net->add<nn::ReLU>();
  net->add<nn::MaxPool2d>(2);
  net->add<nn::Conv2d>(4, 6, 3, Conv2dOptions{.padding = 1}, true, generator);
  net->add<nn::GELU>();
  net->add<nn::AvgPool2d>(2);
  net->add<nn::Flatten>();
  net->add<nn::Linear>(6 * kImageSize / 4 * kImageSize / 4, kClasses, true, generator);
  return net;
}

std::unique_ptr<optim::Optimizer> adam(const nn::Layer& net) {
  return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.01});
}

std::unique_ptr<optim::Optimizer> adamw(const nn::Layer& net) {
  return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions{.lr = 0.01});
}

Tensor random_classes(const Shape& shape, std::int64_t count, std::uint64_t seed) {
  Tensor classes = Tensor::empty(shape, DType::int64);
  Generator(seed).randint(
      {classes.mutable_data<std::int64_t>(), static_cast<std::size_t>(classes.numel())}, 0, count);
  return classes;
}

std::vector<Tensor> token_data(std::int64_t count) {
  Tensor labels = random_classes({count, kContext}, kVocabulary, 4);
  for (std::int64_t i = 0; i < count; i += 3) labels[i][i % kContext].fill(reference::kIgnored);
  return {random_classes({count, kContext}, kVocabulary, 3), labels};
}

std::vector<Tensor> image_data(std::int64_t count) {
  Tensor images = Tensor::empty({count, 1, kImageSize, kImageSize});
  Generator(5).normal({images.mutable_data<float>(), static_cast<std::size_t>(images.numel())});
  return {images, random_classes({count}, kClasses, 6)};
}

}  // namespace

std::vector<Network> networks(std::int64_t num_samples) {
  return {{"GPT, AdamW", gpt, adamw, token_data(num_samples)},
          {"conv net, Adam", conv_net, adam, image_data(num_samples)}};
}

std::vector<reference::Step> train_by_library(const Network& network,
                                              std::int64_t num_samples,
                                              const reference::Training& training,
                                              const train::AcceleratorOptions& options) {
  manual_seed(7);  // dropout's masks
  const std::unique_ptr<nn::Layer> net = network.make();
  const std::unique_ptr<optim::Optimizer> optimizer = network.optimizer_of(*net);
  std::vector<Tensor> data;
  for (const Tensor& field : network.data) data.push_back(field.narrow(0, 0, num_samples));
  data::DataLoader batches(data::TensorDataset(data), {.batch_size = training.micro_batch_size});
  return train_windows(*net, *optimizer, batches, cross_entropy, training, options);
}

}  // namespace accrue::bench
