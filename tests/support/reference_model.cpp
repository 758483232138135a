#include "accrue/tests/support/reference_model.h"

#include "accrue/core/bits.h"
#include "accrue/core/half.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/kernels/scalar/log.h"
#include "accrue/tests/support/literal_sum.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace accrue::reference {
namespace {

using kernels::scalar::exp;
using kernels::scalar::log;
using test::literal_accumulate;
using test::literal_sum;

using Window = std::span<const Sample>;

template <class List>
std::int64_t size_of(const List& list) {
  return static_cast<std::int64_t>(list.size());
}
float& at(Row& row, std::int64_t i) { return row[static_cast<std::size_t>(i)]; }
float at(const Row& row, std::int64_t i) { return row[static_cast<std::size_t>(i)]; }

void add(Row& sum, const Row& row) {
  for (std::size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
}

float rounded(float x, Half half) {
  switch (half) {
    case Half::bfloat16:
      return static_cast<float>(BFloat16(x));
    case Half::float16:
      return static_cast<float>(Float16(x));
    case Half::none:
      break;
  }
  return x;
}
Row rounded(Row row, Half half) {
  for (float& value : row) value = rounded(value, half);
  return row;
}

/// Sums over some rows.
struct Sums {
  std::vector<Row> gradients{};  ///< of each layer's weight and bias; once merged, per parameter
  float loss = 0;
  std::int64_t weight = 0;
};

Sums operator+(Sums a, const Sums& b) {
  for (std::size_t i = 0; i < a.gradients.size(); ++i) add(a.gradients[i], b.gradients[i]);
  a.loss += b.loss;
  a.weight += b.weight;
  return a;
}

// ---- one row forward and backward (contract 5, 10, 11, 20) ----

Row linear(const Row& x, const Parameter& w, const Parameter* bias, Half half) {
  Row y;
  for (std::int64_t o = 0; o < w.rows; ++o) {
    float acc = 0;
    for (std::int64_t i = 0; i < w.cols; ++i) {
      acc = std::fma(rounded(at(x, i), half), rounded(at(w.values, o * w.cols + i), half), acc);
    }
    y.push_back(rounded(bias ? acc + rounded(at(bias->values, o), half) : acc, half));
  }
  return y;
}

struct RowLoss {
  float loss;
  Row dx;
};

RowLoss squared_error(const Row& x, const Row& y, float dloss) {
  const float loss = literal_accumulate<float>(size_of(x), [&](float acc, std::int64_t c) {
    const float d = at(x, c) - at(y, c);
    return std::fma(d, d, acc);
  });
  Row dx;
  for (std::int64_t c = 0; c < size_of(x); ++c) {
    const float d = at(x, c) - at(y, c);
    dx.push_back((d + d) * dloss);
  }
  return {loss, dx};
}

RowLoss cross_entropy(const Row& x, std::int64_t target, float dloss) {
  const float max = *std::max_element(x.begin(), x.end());
  const float sum =
      literal_sum<float>(size_of(x), [&](std::int64_t c) { return exp(at(x, c) - max); });
  Row dx;
  for (std::int64_t c = 0; c < size_of(x); ++c) {
    const float p = exp(at(x, c) - max) / sum;
    dx.push_back((c == target ? p - 1.0f : p) * dloss);
  }
  return {log(sum) - (at(x, target) - max), dx};
}

void chain_row(const Row& dy, const Row& x, Row& acc) {
  for (std::int64_t o = 0; o < size_of(dy); ++o) {
    for (std::int64_t i = 0; i < size_of(x); ++i) {
      float& element = at(acc, o * size_of(x) + i);
      element = std::fma(at(dy, o), at(x, i), element);
    }
  }
}

Row input_gradient(const Row& dy, const Parameter& w, Half half) {
  Row dx;
  for (std::int64_t i = 0; i < w.cols; ++i) {
    float acc = 0;
    for (std::int64_t o = 0; o < w.rows; ++o) {
      acc = std::fma(at(dy, o), rounded(at(w.values, o * w.cols + i), half), acc);
    }
    dx.push_back(rounded(acc, half));
  }
  return dx;
}

const Parameter* bias_of(const Model& model, const Layer& layer) {
  return layer.bias < 0 ? nullptr : &model.parameters[static_cast<std::size_t>(layer.bias)];
}

/// What a row's loss is multiplied with, and its gradient.
struct RowScale {
  float loss, gradient;
};

/// Continues the chains of `lane` by row `r` of a sample.
void add_row(const Model& model,
             const Sample& sample,
             std::size_t r,
             const RowScale& scale,
             Half half,
             Sums& lane) {
  const bool classify = model.loss == LossKind::cross_entropy;
  if (classify && sample.classes[r] == kIgnored) return;
  std::vector<Row> x = {sample.inputs[r]};  // the input of each layer, then the result
  for (const Layer& layer : model.layers) {
    x.push_back(linear(x.back(), model.parameters[layer.weight], bias_of(model, layer), half));
    if (layer.relu) {
      for (float& value : x.back()) value = value < 0 ? 0 : value;
    }
  }
  auto [loss, dy] = classify ? cross_entropy(x.back(), sample.classes[r], scale.gradient)
                             : squared_error(x.back(), sample.targets[r], scale.gradient);
  lane.loss += loss * scale.loss;
  for (std::size_t l = model.layers.size(); l-- > 0;) {
    if (model.layers[l].relu) {
      for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = x[l + 1][i] > 0 ? dy[i] : 0;
    }
    dy = rounded(dy, half);
    if (std::all_of(dy.begin(), dy.end(), [](float value) { return value == 0; })) return;
    chain_row(dy, rounded(x[l], half), lane.gradients[2 * l]);
    chain_row(dy, {1}, lane.gradients[2 * l + 1]);
    dy = input_gradient(dy, model.parameters[model.layers[l].weight], half);
  }
}

// ---- windows (contract 1, 2, 6, 7) ----

Sums empty_lane(const Model& model) {
  Sums sums;
  for (const Layer& layer : model.layers) {
    const Parameter& w = model.parameters[layer.weight];
    sums.gradients.emplace_back(w.values.size());
    sums.gradients.emplace_back(w.rows);
  }
  return sums;
}

/// Uses of a parameter add up after the tree, in forward order.
std::vector<Row> by_parameter(const Model& model, const std::vector<Row>& uses) {
  std::vector<Row> gradients;
  for (const Parameter& parameter : model.parameters) {
    gradients.emplace_back(parameter.values.size());
  }
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const auto& [weight, bias, relu] = model.layers[l];
    add(gradients[weight], uses[2 * l]);
    if (bias >= 0) add(gradients[static_cast<std::size_t>(bias)], uses[2 * l + 1]);
  }
  return gradients;
}

/// What the losses of samples [begin, end) are divided by.
std::int64_t weight_of(const Model& model, Window window, std::int64_t begin, std::int64_t end) {
  std::int64_t weight = 0;
  for (std::int64_t p = begin; p < end; ++p) {
    const auto& [inputs, targets, classes] = window[static_cast<std::size_t>(p)];
    for (const Row& target : targets) weight += size_of(target);
    if (model.loss == LossKind::mse) continue;
    for (const std::int64_t label : classes) weight += label != kIgnored;
  }
  return weight;
}

/// What the losses of position p are multiplied by before they are added: 1, or the fault's factor.
float scale_at(const Model& model, Window window, std::int64_t p, const Training& training) {
  if (training.fault != Fault::scale_by_reciprocals) return 1;
  const std::int64_t b = training.micro_batch_size, size = size_of(window);
  const std::int64_t weight = weight_of(model, window, p / b * b, std::min(p / b * b + b, size));
  return (1.0f / static_cast<float>(weight)) * (1.0f / static_cast<float>((size + b - 1) / b));
}

/// The sums over window positions [begin, end): chains per lane, closed, then the aligned tree.
Sums sum_rows(const Model& model,
              Window window,
              std::int64_t begin,
              std::int64_t end,
              const Training& training) {
  std::vector<Sums> nodes;
  for (std::int64_t l = 0; l < training.lanes; ++l) {
    const std::int64_t first = l * training.global_batch_size / training.lanes;
    const std::int64_t last = (l + 1) * training.global_batch_size / training.lanes;
    Sums lane = empty_lane(model);
    for (std::int64_t p = std::max(first, begin); p < std::min(last, end); ++p) {
      const Sample& sample = window[static_cast<std::size_t>(p)];
      const float factor = scale_at(model, window, p, training);
      const RowScale scale{factor, factor * training.loss_scale};
      for (std::size_t r = 0; r < sample.inputs.size(); ++r)
        add_row(model, sample, r, scale, training.half, lane);
    }
    nodes.push_back(lane + empty_lane(model));  // adding +0 closes the lane
  }
  if (training.fault == Fault::swap_lanes && training.lanes > 2) std::swap(nodes[1], nodes[2]);
  while (nodes.size() > 1) {
    for (std::size_t i = 0; i < nodes.size() / 2; ++i) nodes[i] = nodes[2 * i] + nodes[2 * i + 1];
    nodes.resize(nodes.size() / 2);
  }
  nodes[0].gradients = by_parameter(model, nodes[0].gradients);
  nodes[0].weight = weight_of(model, window, begin, end);
  return nodes[0];
}

void divide(Sums& sums, std::int64_t count) {
  const float divisor = static_cast<float>(count);
  for (Row& gradient : sums.gradients) {
    for (float& value : gradient) value /= divisor;
  }
  sums.loss /= divisor;
}

/// The mean over a window, right or with the fault.
Sums window_mean(const Model& model, Window window, const Training& training) {
  const Fault fault = training.fault;
  const std::int64_t b = training.micro_batch_size, size = size_of(window);
  const bool by_rounded = fault == Fault::round_gradient;
  if (fault == Fault::add_finished_product || fault == Fault::mean_of_means || by_rounded) {
    const bool by_part = fault == Fault::mean_of_means;
    Sums total;
    for (std::int64_t begin = 0; begin < size; begin += b) {
      Sums part = sum_rows(model, window, begin, std::min(begin + b, size), training);
      if (by_part) divide(part, part.weight);
      if (by_rounded) {
        for (Row& gradient : part.gradients) gradient = rounded(gradient, training.half);
      }
      total = begin == 0 ? part : total + part;
    }
    divide(total, by_part ? (size + b - 1) / b : total.weight);
    return total;
  }
  Sums sums = sum_rows(model, window, 0, size, training);
  if (fault != Fault::scale_by_reciprocals) divide(sums, sums.weight);
  return sums;
}

// ---- the step (contract 15, SGD with momentum) ----

void clip(std::vector<Row>& gradients, double max_norm) {
  double total = 0;
  for (const Row& g : gradients) {
    total += literal_accumulate<double>(size_of(g), [&](double acc, std::int64_t i) {
      return acc + static_cast<double>(at(g, i)) * static_cast<double>(at(g, i));
    });
  }
  const double coefficient = max_norm / (std::sqrt(total) + 1e-6);
  if (coefficient >= 1) return;
  for (Row& g : gradients) {
    for (float& value : g) value *= static_cast<float>(coefficient);
  }
}

void sgd(Parameter& parameter, const Row& gradient, const Training& training) {
  Row& buffer = parameter.momentum;
  const bool first = buffer.empty();
  buffer.resize(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float kept = buffer[i] * static_cast<float>(training.momentum);
    buffer[i] = first ? gradient[i] : kept + gradient[i];
    parameter.values[i] =
        std::fma(static_cast<float>(-training.lr), buffer[i], parameter.values[i]);
  }
}

}  // namespace

std::vector<Step> train(Model& model,
                        const std::vector<Sample>& samples,
                        const Training& training) {
  std::vector<Step> steps;
  const std::int64_t num_samples = size_of(samples);
  for (int epoch = 0; epoch < training.epochs; ++epoch) {
    for (std::int64_t begin = 0; begin < num_samples; begin += training.global_batch_size) {
      const std::int64_t size = std::min(training.global_batch_size, num_samples - begin);
      const Window window(samples.data() + begin, static_cast<std::size_t>(size));
      const Sums mean = window_mean(model, window, training);
      if (mean.weight == 0) continue;
      Step step{mean.loss, mean.gradients};
      for (Row& gradient : step.gradients) {
        for (float& value : gradient) value *= 1 / training.loss_scale;
      }
      std::vector<Row> gradients = step.gradients;
      if (training.max_norm > 0) clip(gradients, training.max_norm);
      for (std::size_t p = 0; p < model.parameters.size(); ++p) {
        sgd(model.parameters[p], gradients[p], training);
        step.weights.push_back(model.parameters[p].values);
      }
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

std::uint64_t hash_of(const std::vector<Step>& steps) {
  std::uint64_t hash = kHashSeed;
  for (const Step& step : steps) {
    for (const Row& row : step.gradients) hash = hash_bits(std::span(row), hash);
    hash = hash_bits(std::span(&step.loss, 1), hash);
    for (const Row& row : step.weights) hash = hash_bits(std::span(row), hash);
  }
  return hash;
}

}  // namespace accrue::reference
