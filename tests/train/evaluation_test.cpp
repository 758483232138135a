// Evaluation: equal bits for any ranks and batch size, exact counts, what is refused.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>
#include <limits>

using namespace accrue;
using accrue::test::There;
using train::Accelerator;
using train::Evaluation;

namespace {

constexpr std::int64_t kClasses = 3;

struct Means {
  double loss = 0, accuracy = 0, weight = 0;
  bool operator==(const Means&) const = default;
};

data::DataLoader points(std::int64_t count, std::int64_t batch_size) {
  Tensor x = Tensor::empty({count, kClasses});
  Generator(3).normal({x.mutable_data<float>(), static_cast<std::size_t>(x.numel())});
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(i % 7 == 3 ? -100 : i % kClasses);
  return data::DataLoader(data::TensorDataset({x, Tensor::from(labels, {count})}),
                          {.batch_size = batch_size, .shuffle = true, .seed = 1});
}

Means evaluate(train::AcceleratorOptions options, data::DataLoader batches, bool weighted) {
  Accelerator accelerator(options);
  auto loader = accelerator.prepare(batches);
  CrossEntropyOptions loss_options;
  if (weighted)
    loss_options.class_weights = Tensor::of<float>({0.5, 1, 3}).to(accelerator.device());
  Evaluation loss(accelerator), accuracy(accelerator);
  const NoGrad no_grad;
  for (const auto& batch : loader) {
    const Variable logits(batch.inputs);
    loss.add(nn::cross_entropy(logits, batch.labels, loss_options));
    const Tensor hits = eq(Variable(argmax(logits, 1)), Variable(batch.labels)).to(DType::float32);
    accuracy.add(Loss::from_rows(Variable(hits), batch.size()));
  }
  return {loss.mean(), accuracy.mean(), loss.weight()};
}

}  // namespace

TEST_CASE("train.evaluation: means have the bits of one rank, and every sample counts once") {
  int count = 0;
  for (const bool weighted : {false, true}) {
    for (const std::int64_t n : {1, 2, 5, 12, 13, 31}) {
      const Means alone = evaluate({.global_batch_size = 12}, points(n, 12), weighted);
      double hits = 0;
      data::DataLoader all = points(n, n);
      for (const auto& batch : all) {
        const auto labels = batch.labels.to_vector<std::int64_t>();
        const auto best = argmax(Variable(batch.inputs), 1).to_vector<std::int64_t>();
        for (std::size_t i = 0; i < labels.size(); ++i) hits += labels[i] == best[i];
      }
      CHECK(alone.accuracy == static_cast<float>(hits) / static_cast<float>(n));
      for (int size = 1; size <= 5; ++size) {
        for (const std::int64_t b : {1, 2, 5}) {
          dist::run_ranks(size, [&](dist::ProcessGroup& group) {
            CAPTURE(n);
            CAPTURE(size);
            CAPTURE(b);
            const Means means = evaluate(
                {.global_batch_size = 12, .process_group = &group}, points(n, b), weighted);
            CHECK(means == alone);
          });
          ++count;
        }
      }
    }
  }
  MESSAGE("evaluated to the bits of one rank: " << count << " topologies");
}

TEST_CASE("train.evaluation: a float64 loss has the same mean on any number of ranks") {
  std::vector<double> means;
  for (const int size : {1, 2, 3}) {
    dist::run_ranks(size, [&](dist::ProcessGroup& group) {
      Accelerator accelerator({.global_batch_size = 12, .process_group = &group});
      data::DataLoader batches = points(13, 2);
      auto loader = accelerator.prepare(batches);
      Evaluation loss(accelerator);
      for (const auto& batch : loader) {
        const Tensor x = batch.inputs.to(DType::float64);
        loss.add(nn::mse(Variable(x), Tensor::full(x.shape(), 0.1, DType::float64)));
      }
      if (group.rank() == 0) means.push_back(loss.mean());
    });
  }
  CHECK(means[0] > 0);
  CHECK(means[1] == means[0]);
  CHECK(means[2] == means[0]);
}

TEST_CASE("train.evaluation: the mean over batch means is another number") {
  data::DataLoader batches = points(13, 5);
  double of_means = 0;
  for (const auto& batch : batches)
    of_means += nn::cross_entropy(Variable(batch.inputs), batch.labels).mean() / 3;
  CHECK(std::abs(of_means - evaluate({}, points(13, 5), false).loss) > 1e-3);
}

TEST_CASE("train.evaluation: a batch that is left out or added twice is refused") {
  data::DataLoader batches = points(6, 2);
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  auto loader = accelerator.prepare(batches);
  const auto loss = [](const data::Batch& batch) {
    return nn::cross_entropy(Variable(batch.inputs), batch.labels);
  };
  Evaluation whole(accelerator), part(accelerator), ended(accelerator), none(accelerator);
  CHECK(std::isnan(none.mean()));
  CHECK_THROWS_AS(none.add(Loss::from_rows(Variable(There::ones({2})), 2)), StateError);
  int index = 0;
  for (const auto& batch : loader) {
    whole.add(loss(batch));
    if (index == 0) {
      part.add(loss(batch));
      CHECK_THROWS_WITH_AS(part.add(loss(batch)),
                           "[evaluation] every batch must be added once, got micro-batch 0 after 1 "
                           "of the pass",
                           StateError);
      CHECK_THROWS_AS((void)part.mean(), StateError);
    }
    if (index < 2) ended.add(loss(batch));
    if (index == 1) CHECK(ended.weight() > 0);
    if (index == 2) CHECK_THROWS_AS(part.add(loss(batch)), StateError);
    ++index;
  }
  CHECK_THROWS_WITH_AS((void)ended.mean(),
                       "[evaluation] a pass that has ended must be added whole, got its first 2 "
                       "micro-batches; for a part of the data prepare a loader of that part",
                       StateError);
  CHECK(whole.weight() == 5);  // one of six labels is ignored
  for (const auto& batch : loader) whole.add(loss(batch));
  CHECK(whole.weight() == 10);
  auto upstream = accelerator.prepare_data_loader(batches);
  for (const auto& batch : upstream) CHECK_THROWS_AS(none.add(loss(batch)), StateError);
}
