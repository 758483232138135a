// A network with a layer used twice: every split of a window has the loss and the gradients of the
// reference model.
#include "accrue/autograd/engine.h"
#include "accrue/autograd/loss.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/losses.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/autograd/window_sum.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/reference_model.h"
#include "accrue/tests/support/window_reference.h"

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t kWidth = 5, kClasses = 3, kTokens = 2;

/// hidden (used twice), its bias, output
reference::Model draw_model(std::mt19937_64& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  reference::Model model{.parameters = {{kWidth, kWidth}, {1, kWidth}, {kClasses, kWidth}},
                         .layers = {{0, 1, true}, {0, 1, true}, {2}},
                         .loss = reference::LossKind::cross_entropy};
  for (reference::Parameter& parameter : model.parameters) {
    parameter.values.resize(static_cast<std::size_t>(parameter.rows * parameter.cols));
    for (float& value : parameter.values) value = uniform(random);
  }
  return model;
}

std::vector<reference::Sample> draw_samples(std::int64_t count, std::mt19937_64& random) {
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<reference::Sample> samples(static_cast<std::size_t>(count));
  for (reference::Sample& sample : samples) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      sample.inputs.emplace_back(kWidth);
      for (float& value : sample.inputs.back()) value = uniform(random);
      const auto label = static_cast<std::int64_t>(random() % (kClasses + 1));
      sample.classes.push_back(label < kClasses ? label : reference::kIgnored);
    }
  }
  samples[0].classes[0] = 0;  // so that the weight is not 0
  return samples;
}

struct Problem {
  WindowSpan span;
  Tensor inputs, classes;  ///< [size, kTokens, kWidth], [size, kTokens]
  std::vector<Variable> parameters;
};

Problem window_of(const reference::Model& model,
                  const std::vector<reference::Sample>& samples,
                  int lanes) {
  const auto size = static_cast<std::int64_t>(samples.size());
  std::vector<float> inputs;
  std::vector<std::int64_t> classes;
  for (const reference::Sample& sample : samples) {
    for (const reference::Row& row : sample.inputs) {
      inputs.insert(inputs.end(), row.begin(), row.end());
    }
    classes.insert(classes.end(), sample.classes.begin(), sample.classes.end());
  }
  Problem window{{{.nominal_size = size, .count = lanes}, size, 0, lanes},
                 there(Tensor::from(inputs, {size, kTokens, kWidth})),
                 there(Tensor::from(classes, {size, kTokens})),
                 {}};
  for (const reference::Parameter& p : model.parameters) {
    const Shape shape = p.rows == 1 ? Shape{p.cols} : Shape{p.rows, p.cols};
    window.parameters.push_back(Variable::leaf(there(Tensor::from(p.values, shape))));
  }
  return window;
}

/// Runs the window in micro-batches; returns its mean loss.
float run(const Problem& problem, const std::vector<Range>& micro_batches) {
  const std::vector<Variable>& w = problem.parameters;
  Window window;
  window.begin(problem.span);
  WindowSum loss;
  LossWeight weight;
  for (const Range& range : micro_batches) {
    const MicroBatch scope(window, range.begin, range.end);
    const Variable x(problem.inputs.narrow(0, range.begin, range.size()).with_sample_axis({0, 1}));
    const Tensor target = problem.classes.narrow(0, range.begin, range.size()).reshape({-1});
    const Variable hidden = relu(linear(relu(linear(x, w[0], w[1])), w[0], w[1]));
    const Variable rows = cross_entropy_rows(reshape(linear(hidden, w[2]), {-1, kClasses}), target);
    if (range.size() > 0) Engine({}).run(rows, there(Tensor::ones(rows.shape())));
    loss.add(scope, rows.value(), kTokens);
    weight.add(cross_entropy_weight(target, {}));
  }
  window.finish(static_cast<float>(weight.value()));
  return static_cast<float>(loss.finish()) / static_cast<float>(weight.value());
}

int sweep_window(const Problem& problem, const reference::Step& wanted, std::mt19937_64& random) {
  int num_runs = 0;
  const std::vector<std::vector<Range>> splits = splits_of(problem.span.size, random);
  for_each_cpu_path([&] {
    for (std::size_t split = 0; split < splits.size(); ++split) {
      CAPTURE(split);
      CHECK(run(problem, splits[split]) == wanted.loss);
      for (std::size_t p = 0; p < problem.parameters.size(); ++p) {
        Variable parameter = problem.parameters[p];
        CHECK(parameter.grad().to_vector<float>() == wanted.gradients[p]);
        parameter.zero_grad();
      }
      ++num_runs;
    }
  });
  return num_runs;
}

}  // namespace

TEST_CASE("sweeps.network: every split of a window equals the reference model") {
  std::mt19937_64 random(6);
  int num_runs = 0;
  for (const std::int64_t size : {1, 5, 16, 24, 30}) {
    for (const int lanes : {1, 4, 8, 16}) {
      CAPTURE(size);
      CAPTURE(lanes);
      reference::Model model = draw_model(random);
      const std::vector<reference::Sample> samples = draw_samples(size, random);
      const Problem problem = window_of(model, samples, lanes);
      const std::vector<reference::Step> steps =
          train(model, samples, {.global_batch_size = size, .lanes = lanes});
      REQUIRE(steps.size() == 1);
      num_runs += sweep_window(problem, steps[0], random);
    }
  }
  MESSAGE("windows of a network equal the reference model: " << num_runs << " splits");
}
