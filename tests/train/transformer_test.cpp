// A GPT with dropout on sequences of unequal length: no bit depends on how a window is split.
#include "accrue/nn/transformer.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/core/generator.h"
#include "accrue/data/collate.h"
#include "accrue/dist/threads.h"
#include "accrue/nn/embedding.h"
#include "accrue/nn/loss.h"
#include "accrue/optim/sgd.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/train/accelerator.h"

#include <cmath>

using namespace accrue;

namespace {

constexpr std::int64_t kVocabulary = 11, kWidth = 12, kSamples = 14, kWindow = 8;

/// Sequences of 3 to 9 tokens, or none, with the next token as label.
class Sequences final : public data::Dataset {
 public:
  std::int64_t size() const override { return kSamples; }
  data::Sample get(std::int64_t index) const override {
    std::vector<std::int64_t> tokens;
    const std::int64_t size = index % 4 == 0 ? 1 : 4 + index * 5 % 7;
    for (std::int64_t t = 0; t < size; ++t) {
      tokens.push_back((index * index + 3 * t + t * t * (index % 3)) % kVocabulary);
    }
    const Tensor all = Tensor::from(tokens, {static_cast<std::int64_t>(tokens.size())});
    return {{all.narrow(0, 0, all.size(0) - 1), all.narrow(0, 1, all.size(0) - 1)}};
  }
};

struct Gpt : nn::Module {
  nn::Embedding tokens{kVocabulary, kWidth}, positions{16, kWidth};
  nn::Dropout dropout{0.2};
  nn::TransformerBlock block{{.embed_dim = kWidth, .num_heads = 3, .dropout = 0.2}};
  nn::LayerNorm norm{kWidth};
  nn::Linear head{kWidth, kVocabulary, false};

  Gpt() {
    register_module("tokens", tokens);
    register_module("positions", positions);
    register_module("dropout", dropout);
    register_module("block", block);
    register_module("norm", norm);
    register_module("head", head);
  }
  Variable operator()(const Tensor& x) {
    const Tensor row = Tensor::arange(x.size(1)).to(x.device());
    const Tensor places = row.expand(x.shape()).with_sample_axis({0, 1});
    return head(norm(block(dropout(tokens(Variable(x)) + positions(Variable(places))))));
  }
};

/// Weights and the last window's loss after two epochs, in micro-batches of `batch_size`, on the
/// ranks of `group`.
std::pair<nn::StateDict, double> trained(std::int64_t batch_size,
                                         bool dropout = true,
                                         dist::ProcessGroup* group = nullptr) {
  manual_seed(1);
  Gpt model;
  if (!dropout) model.eval();
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  data::DataLoader batches(Sequences(), {.batch_size = batch_size, .collate = data::PadCollate{}});
  train::Accelerator accelerator({.global_batch_size = kWindow, .process_group = group});
  auto [net, optimizer, loader] = accelerator.prepare(model, sgd, batches);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(net);
      accelerator.backward(nn::cross_entropy(net(batch.inputs), batch.labels));
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  return {model.state_dict(), accelerator.window_loss()};
}

bool same(const nn::StateDict& a, const nn::StateDict& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal_bits(a[i].second, b[i].second)) return false;
  }
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("train.transformer: a GPT with dropout and padding trains to the same bits") {
  const auto [weights, loss] = trained(kWindow);
  CHECK(std::isfinite(loss));
  int num_splits = 0;
  const int num_paths = test::for_each_cpu_path([&] {
    for (const std::int64_t batch_size : {1, 2, 3, 5, 8}) {
      CAPTURE(batch_size);
      const auto [other_weights, other_loss] = trained(batch_size);
      CHECK(same(other_weights, weights));
      CHECK(other_loss == loss);
      ++num_splits;
    }
  });
  CHECK(!same(trained(kWindow, false).first, weights));  // dropout did something
  for (const int size : {2, 3, 5, 8}) {
    for (const std::int64_t batch_size : {1, 3}) {
      CAPTURE(size);
      dist::run_ranks(size, [&](dist::ProcessGroup& group) {
        const auto [other_weights, other_loss] = trained(batch_size, true, &group);
        CHECK(same(other_weights, weights));
        CHECK(other_loss == loss);
      });
    }
  }
  MESSAGE("a GPT with equal bits: " << num_splits << " runs on " << num_paths << " CPU paths");
}
