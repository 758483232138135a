// Dropout in windows: masks depend on where an element lies, not on the split or on padding.
#include "accrue/autograd/ops/dropout.h"

#include "accrue/autograd/ops/views.h"
#include "accrue/autograd/window.h"
#include "accrue/core/counter_generator.h"
#include "accrue/core/generator.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/window_reference.h"

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::uint64_t kSeed = 11;

WindowSpan span_of(std::int64_t size) {
  return {.lanes = {.nominal_size = size, .count = 1}, .size = size};
}

/// dropout of `x`, whose dimension 0 counts the window's samples, in micro-batches.
Tensor masked(const Tensor& x, const std::vector<Range>& split, std::int64_t number = 3) {
  manual_seed(kSeed);
  Window window;
  window.begin(span_of(x.size(0)), number);
  std::vector<Tensor> parts;
  for (const auto& [begin, end] : split) {
    const MicroBatch batch(window, begin, end);
    const Tensor part = x.narrow(0, begin, end - begin).with_sample_axis({0, 1});
    parts.push_back(dropout(Variable(part), 0.4, true, "layers.0.dropout").value());
  }
  return cat(parts, 0);
}

Tensor masked(const Tensor& x, std::int64_t number = 3) {
  return masked(x, {{0, x.size(0)}}, number);
}

std::int64_t num_different(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += x[i] != y[i];
  return count;
}

}  // namespace

TEST_CASE("autograd.dropout: every split of a window gives the same masks on all CPU paths") {
  std::mt19937_64 random(1);
  int num_splits = 0;
  for (const Shape& shape : {Shape{13, 5, 3}, Shape{8, 70}, Shape{6}}) {
    const Tensor x = There::ones(shape);
    const Tensor whole = masked(x);
    for_each_cpu_path([&] {
      for (const std::vector<Range>& split : splits_of(shape[0], random)) {
        CHECK(equal_bits(masked(x, split), whole));
        ++num_splits;
      }
    });
  }
  MESSAGE("splits with equal masks: " << num_splits);
}

TEST_CASE("autograd.dropout: an element's number is the one at its coordinates") {
  const Tensor y = masked(There::ones({4, 3, 5}));
  const float scale = 1.0f / static_cast<float>(1 - 0.4);
  for (std::uint64_t s = 0; s < 4; ++s) {
    const CounterGenerator sample(kSeed, 3, s, stream_of("layers.0.dropout", 0));
    for (std::uint64_t t = 0; t < 3; ++t) {
      for (std::uint64_t h = 0; h < 5; ++h) {
        const bool keeps = static_cast<double>(sample.at(0).at(t).uniform(h)) < 1 - 0.4;
        const float got = y[static_cast<std::int64_t>(s)][static_cast<std::int64_t>(t)]
                              .select(0, static_cast<std::int64_t>(h))
                              .item<float>();
        CHECK(got == (keeps ? scale : 0.0f));
      }
    }
  }
}

TEST_CASE("autograd.dropout: padding changes no mask") {
  const Tensor small = masked(There::ones({4, 3, 5})), large = masked(There::ones({4, 9, 8}));
  CHECK(equal_bits(large.narrow(1, 0, 3).narrow(2, 0, 5), small));
}

TEST_CASE("autograd.dropout: the layout and the place of the sample dimension do not matter") {
  const Tensor x = There::ones({4, 6, 5}).with_sample_axis({0, 1});
  manual_seed(kSeed);
  Window window;
  window.begin(span_of(4), 3);
  const MicroBatch batch(window, 0, 4);
  const Tensor first = dropout(Variable(x), 0.4, true, "a").value();
  CHECK(num_different(dropout(Variable(x), 0.4, true, "a").value(), first) > 30);
  CHECK(num_different(dropout(Variable(x), 0.4, true, "b").value(), first) > 30);
  const Tensor turned = dropout(transpose(Variable(x), 0, 1), 0.4, true, "c").value();
  CHECK(turned.sample_axis() == SampleAxis{1, 1});
  CHECK(turned.shape() == Shape{6, 4, 5});
  const CounterGenerator sample(kSeed, 3, 2, stream_of("c", 0));
  for (std::int64_t t = 0; t < 6; ++t) {
    const bool keeps =
        static_cast<double>(sample.at(0).at(static_cast<std::uint64_t>(t)).uniform(4)) < 1 - 0.4;
    CHECK((turned[t][2].select(0, 4).item<float>() != 0) == keeps);
  }
  const Tensor rows = dropout(reshape(Variable(x), {24, 5}), 0.4, true, "d").value();
  CHECK(rows.sample_axis() == SampleAxis{0, 6});
  const CounterGenerator flat(kSeed, 3, 3, stream_of("d", 0));
  const bool keeps = static_cast<double>(flat.at(5).uniform(1)) < 1 - 0.4;
  CHECK((rows[23].select(0, 1).item<float>() != 0) == keeps);
}

TEST_CASE("autograd.dropout: other windows and other seeds draw other numbers") {
  const Tensor x = There::ones({8, 64});
  const Tensor y = masked(x);
  CHECK(num_different(masked(x, 4), y) > 150);
  std::int64_t dropped = 0;
  for (const float value : y.to_vector<float>()) dropped += value == 0;
  CHECK(dropped > 512 * 0.32);
  CHECK(dropped < 512 * 0.48);
}

TEST_CASE("autograd.dropout: nothing is drawn in evaluation or for p = 0") {
  const Variable x(There::ones({3}));
  manual_seed(5);
  const std::vector<std::uint8_t> before = default_generator().get_state();
  CHECK(dropout(x, 0.5, false).value().shares_storage(x.value()));
  CHECK(dropout(x, 0).value().shares_storage(x.value()));
  CHECK(default_generator().get_state() == before);
}
