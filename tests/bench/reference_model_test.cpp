// The reference model against torch's published bits, and its faults against itself.
#include "accrue/tests/support/reference_model.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/doctest.h"

#include <string>

using namespace accrue;
using namespace accrue::reference;

namespace {

/// y = 2x, one weight that starts at 0.
Model line_model() {
  return {.parameters = {{.rows = 1, .cols = 1, .values = {0}}}, .layers = {{.weight = 0}}};
}

std::vector<Sample> line_samples(int count) {
  std::vector<Sample> samples;
  for (int i = 1; i <= count; ++i) {
    const auto x = static_cast<float>(i);
    samples.push_back({.inputs = {{x}}, .targets = {{2 * x}}});
  }
  return samples;
}

/// Linear(1, 2) without bias, with torch's initial weights for seed 0.
Model parity_model() {
  return {.parameters = {{.rows = 2,
                          .cols = 1,
                          .values = {float_of(0xbbf55400U), float_of(0x3f09545eU)}}},
          .layers = {{.weight = 0}},
          .loss = LossKind::cross_entropy};
}

/// Sample i holds the tokens 1 .. i + 1, labelled by their parity.
std::vector<Sample> parity_samples(int count) {
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    for (int token = 1; token <= i + 1; ++token) {
      samples[static_cast<std::size_t>(i)].inputs.push_back({static_cast<float>(token)});
      samples[static_cast<std::size_t>(i)].classes.push_back(token % 2);
    }
  }
  return samples;
}

std::string hex_of(const Row& row) {
  std::string text;
  for (const float value : row) text += (text.empty() ? "" : " ") + hex8(value);
  return text;
}

}  // namespace

TEST_CASE("bench.reference_model: the documented line ends at torch's bits with any lanes") {
  for (const int lanes : {1, 2, 4, 8, 16}) {
    CAPTURE(lanes);
    Model model = line_model();
    const std::vector<Step> steps =
        train(model, line_samples(8), {.global_batch_size = 8, .lanes = lanes, .lr = 0.02});
    REQUIRE(steps.size() == 1);
    CHECK(hex_of(steps[0].gradients[0]) == "c2cc0000");
    CHECK(hex_of(steps[0].weights[0]) == "40028f5c");
    CHECK(steps[0].loss == 102.0f);
  }
}

TEST_CASE("bench.reference_model: the documented tokens end at torch's bits with 8 lanes") {
  Model model = parity_model();
  std::vector<Step> steps = train(model, parity_samples(8), {.global_batch_size = 8, .lr = 0.08});
  REQUIRE(steps.size() == 1);
  CHECK(hex_of(steps[0].weights[0]) == "3dc32169 3ede0b12");

  model = parity_model();
  steps = train(model, parity_samples(16), {.global_batch_size = 16, .lr = 0.08});
  REQUIRE(steps.size() == 1);
  CHECK(hex_of(steps[0].weights[0]) == "3e58cc50 3ea26d44");
}

TEST_CASE("bench.reference_model: a short last window steps too, and momentum carries over") {
  Model model = line_model();
  const std::vector<Step> steps =
      train(model,
            line_samples(3),
            {.global_batch_size = 2, .lanes = 1, .epochs = 1, .lr = 0.125, .momentum = 0.5});
  REQUIRE(steps.size() == 2);
  // Window 0: gradient (2 * -2 * 1 + 2 * -4 * 2) / 2 = -10, weight 1.25.
  // Window 1: gradient 2 * (1.25 - 2) * 9 = -13.5, buffer -5 - 13.5, weight 1.25 + 2.3125.
  CHECK(steps[0].gradients[0] == Row{-10});
  CHECK(steps[0].weights[0] == Row{1.25f});
  CHECK(steps[1].gradients[0] == Row{-13.5f});
  CHECK(steps[1].weights[0] == Row{3.5625f});
}

TEST_CASE("bench.reference_model: every fault changes the documented tokens' hash") {
  Training training{.global_batch_size = 12, .lanes = 4, .epochs = 2, .lr = 0.01};
  training.micro_batch_size = 4;
  Model right = parity_model();
  const std::uint64_t hash = hash_of(train(right, parity_samples(12), training));
  for (const Fault fault : {Fault::add_finished_product,
                            Fault::scale_by_reciprocals,
                            Fault::mean_of_means,
                            Fault::swap_lanes}) {
    CAPTURE(static_cast<int>(fault));
    Model model = parity_model();
    training.fault = fault;
    CHECK(hash_of(train(model, parity_samples(12), training)) != hash);
  }
}
