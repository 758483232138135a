#include "accrue/bench/support/invariance_cases.h"

#include "accrue/bench/support/train_windows.h"

namespace accrue::bench {
namespace {

using reference::Row;

Row normal_row(std::int64_t size, Generator& generator, double std = 1) {
  Row row(static_cast<std::size_t>(size));
  generator.normal(std::span(row), 0, std);
  return row;
}

/// Samples of one row, with target values.
std::vector<reference::Sample> rows(std::int64_t count,
                                    std::int64_t in,
                                    std::int64_t out,
                                    Generator& generator) {
  std::vector<reference::Sample> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    samples.push_back(
        {.inputs = {normal_row(in, generator)}, .targets = {normal_row(out, generator)}});
  }
  return samples;
}

/// Samples of 1 to 9 rows with a class each. Every fourth label and every seventh sample is
/// ignored.
std::vector<reference::Sample> sequences(std::int64_t count,
                                         std::int64_t in,
                                         std::int64_t num_classes,
                                         Generator& generator) {
  std::vector<reference::Sample> samples(static_cast<std::size_t>(count));
  std::int64_t index = 0;
  for (reference::Sample& sample : samples) {
    const bool ignored = index++ % 7 == 3;
    const std::int64_t length = 1 + generator.random() % 9;
    for (std::int64_t t = 0; t < length; ++t) {
      sample.inputs.push_back(normal_row(in, generator));
      sample.classes.push_back(ignored || generator.random() % 4 == 0
                                   ? reference::kIgnored
                                   : generator.random() % num_classes);
    }
  }
  return samples;
}

Tensor matrix(const std::vector<Row>& rows) {
  const auto cols = static_cast<std::int64_t>(rows[0].size());
  Tensor result = Tensor::empty({static_cast<std::int64_t>(rows.size()), cols});
  float* out = result.mutable_data<float>();
  for (const Row& row : rows) out = std::copy(row.begin(), row.end(), out);
  return result;
}

class SampleList : public data::Dataset {
 public:
  explicit SampleList(const std::vector<reference::Sample>& samples) : samples_(samples) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  data::Sample get(std::int64_t index) const override {
    const reference::Sample& sample = samples_[static_cast<std::size_t>(index)];
    const auto length = static_cast<std::int64_t>(sample.inputs.size());
    return {.fields = {matrix(sample.inputs),
                       sample.classes.empty() ? matrix(sample.targets)
                                              : Tensor::from(sample.classes, {length})}};
  }

 private:
  const std::vector<reference::Sample>& samples_;
};

/// Adds a layer of `in` inputs and `out` outputs with parameters of its own.
void add_layer(
    reference::Model& model, std::int64_t in, std::int64_t out, bool relu, Generator& generator) {
  const std::size_t weight = model.parameters.size();
  model.parameters.push_back(
      {.rows = out, .cols = in, .values = normal_row(out * in, generator, 0.2)});
  model.parameters.push_back({.rows = out, .cols = 1, .values = normal_row(out, generator, 0.2)});
  model.layers.push_back({.weight = weight, .bias = static_cast<int>(weight) + 1, .relu = relu});
}

/// The same layers in the library. Parameters come in the order of their first use, as in `model`.
void add_layers(nn::Sequential& net, const reference::Model& model) {
  std::vector<Variable> leaves(model.parameters.size());
  const auto leaf = [&](std::size_t i, auto... sizes) {
    const Row& values = model.parameters[i].values;
    if (!leaves[i].defined()) leaves[i] = Variable::leaf(Tensor::from(values, {sizes...}));
    return leaves[i];
  };
  for (const auto& [weight, bias, relu] : model.layers) {
    const auto& [rows, cols, values, momentum] = model.parameters[weight];
    net.add<nn::Linear>(leaf(weight, rows, cols), leaf(static_cast<std::size_t>(bias), rows));
    if (relu) net.add<nn::ReLU>();
  }
}

/// A network with parameters that no forward pass uses, which therefore stay as they are.
class UnusedBranch final : public nn::Layer {
 public:
  UnusedBranch() {
    register_module("branch", branch_);
    register_module("used", used_);
  }
  nn::Sequential& used() { return used_; }
  Variable forward(const Variable& x) override { return used_(x); }

 private:
  nn::Linear branch_{3, 2};
  nn::Sequential used_;
};

}  // namespace

std::vector<InvarianceCase> invariance_cases(std::int64_t num_samples) {
  Generator generator(2024);
  InvarianceCase linear{.name = "linear layer", .samples = rows(num_samples, 12, 4, generator)};
  add_layer(linear.model, 12, 4, false, generator);

  InvarianceCase tied{.name = "tied MLP", .samples = rows(num_samples, 16, 4, generator)};
  add_layer(tied.model, 16, 96, true, generator);
  add_layer(tied.model, 96, 96, true, generator);
  tied.model.layers.push_back(tied.model.layers.back());
  add_layer(tied.model, 96, 4, false, generator);

  InvarianceCase tokens{.name = "padded tokens",
                        .samples = sequences(num_samples, 8, 5, generator)};
  tokens.model.loss = reference::LossKind::cross_entropy;
  add_layer(tokens.model, 8, 24, true, generator);
  add_layer(tokens.model, 24, 5, false, generator);
  return {linear, tied, tokens};
}

std::vector<reference::Step> train_by_library(const InvarianceCase& start,
                                              const reference::Training& training,
                                              const train::AcceleratorOptions& options) {
  UnusedBranch net;
  add_layers(net.used(), start.model);
  optim::SGD sgd(net.parameters(), {.lr = training.lr, .momentum = training.momentum});
  data::DataLoader batches(
      SampleList(start.samples),
      {.batch_size = training.micro_batch_size,
       .collate = data::PadCollate{.padding_values = {7, reference::kIgnored}}});
  return train_windows(net,
                       sgd,
                       batches,
                       start.model.loss == reference::LossKind::mse ? mse : cross_entropy,
                       training,
                       options);
}

}  // namespace accrue::bench
