#include "accrue/tests/train/data_parallel_checks.h"

#include "accrue/accrue.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>

namespace accrue::test {
namespace {

using train::DistributedDataParallel;

/// Passes everything on and counts collectives, also those of its duplicates.
class CountingGroup final : public dist::ProcessGroup {
 public:
  CountingGroup(dist::ProcessGroup& inner, std::atomic<int>& count)
      : ProcessGroup(inner.rank(), inner.size(), inner.timeout()), inner_(inner), count_(count) {}
  CountingGroup(std::shared_ptr<dist::ProcessGroup> inner, std::atomic<int>& count)
      : CountingGroup(*inner, count) {
    owned_ = std::move(inner);
  }

  const char* backend() const override { return inner_.backend(); }
  std::shared_ptr<ProcessGroup> duplicate() override {
    return std::make_shared<CountingGroup>(inner_.duplicate(), count_);
  }
  void leave_calls(const std::string& reason) noexcept override { inner_.leave(reason); }
  void move(const dist::Movement& movement) override { inner_.move(movement); }
  std::vector<std::span<const std::byte>> look(std::span<const std::span<const std::byte>> outgoing,
                                               std::span<const std::size_t> sizes) override {
    return inner_.look(outgoing, sizes);
  }
  std::int64_t step_bytes() const override { return inner_.step_bytes(); }
  bool shares_memory() const override { return inner_.shares_memory(); }

 private:
  bool may_share_devices() const override {
    return true;
  }  // where tests use any, ranks are threads
  void compare_and_move(const dist::Call& call, const dist::Movement& movement) override {
    ++count_;
    inner_.begin(call, movement);
  }

  std::shared_ptr<dist::ProcessGroup> owned_;
  dist::ProcessGroup& inner_;
  std::atomic<int>& count_;
};

/// A layer, a scale for each branch that some passes take, and a count of forward passes.
struct Branches : nn::Module {
  nn::Linear layer{3, 2};
  Variable even, odd, never;
  Tensor factor, count;
  Branches() {
    register_module("layer", layer);
    even = register_parameter("even", Tensor::ones({2}));
    odd = register_parameter("odd", Tensor::ones({2}));
    never = register_parameter("never", Tensor::ones({2}));
    factor = register_buffer("factor", Tensor::full({2}, 0.7));
    count = register_buffer("count", Tensor::zeros({}));
  }
  Variable operator()(const Tensor& x, int branch) {
    count.fill(count.item<float>() + 1);
    return layer(Variable(x)) * (branch % 2 == 0 ? even : odd) * Variable(factor);
  }
};

Tensor random(int seed) {
  Tensor x = Tensor::empty({4, 3});
  Generator(static_cast<std::uint64_t>(seed)).normal({x.mutable_data<float>(), 12});
  return there(x);
}

/// The mean over ranks of this rank's `grad`, by the aligned tree over rank numbers.
Tensor tree_mean(dist::ProcessGroup& group, const Tensor& grad) {
  const Tensor all = group.all_gather(grad.defined() ? grad : There::zeros({2}));
  std::vector<std::vector<float>> nodes;
  for (int rank = 0; rank < group.size(); ++rank) nodes.push_back(all[rank].to_vector<float>());
  for (; nodes.size() > 1; nodes.resize((nodes.size() + 1) / 2)) {
    for (std::size_t i = 0; i < nodes.size(); i += 2) {
      std::vector<float> sum = nodes[i];
      for (std::size_t k = 0; k < sum.size() && i + 1 < nodes.size(); ++k)
        sum[k] += nodes[i + 1][k];
      nodes[i / 2] = sum;
    }
  }
  for (float& x : nodes[0]) x /= static_cast<float>(group.size());
  return There::from(nodes[0], grad.defined() ? grad.shape() : Shape({2}));
}

/// A model with rank 0's weights in plain autograd, and the same one under the wrapper.
struct Twins {
  Branches plain, wrapped;
  DistributedDataParallel<Branches> model;
  explicit Twins(dist::ProcessGroup& group) : model(there(wrapped), {.process_group = &group}) {
    there(plain).load_state_dict(wrapped.state_dict());
  }
};

void check_equal_to_mean(dist::ProcessGroup& group, Twins& twins) {
  const auto plain = twins.plain.named_parameters(), averaged = twins.wrapped.named_parameters();
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CAPTURE(plain[i].first);
    const Tensor grad = averaged[i].second.grad();
    Tensor users = There::full({1}, plain[i].second.grad().defined());
    group.all_reduce(users);
    CHECK(grad.defined() == (users.item<float>() > 0));
    if (!grad.defined()) continue;
    const Tensor mean = tree_mean(group, plain[i].second.grad());
    CHECK(equal_bits(grad, mean));
  }
}

}  // namespace

void check_averages(dist::ProcessGroup& group) {
  manual_seed(static_cast<std::uint64_t>(group.rank()));
  Twins twins(group);
  optim::SGD plain_sgd(twins.plain.parameters(), {.lr = 0.1});
  optim::SGD sgd(twins.wrapped.parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = random(100 * step + group.rank());
    sum(twins.plain(x, group.rank())).backward();
    twins.model.backward(sum(twins.model(x, group.rank())));
    check_equal_to_mean(group, twins);
    sgd.step();
    sgd.zero_grad();
    plain_sgd.zero_grad();
    twins.plain.load_state_dict(twins.wrapped.state_dict());
    const Tensor all = group.all_gather(twins.wrapped.layer.weight().value());
    for (int rank = 0; rank < group.size(); ++rank) CHECK(equal_bits(all[rank], all[0]));
  }
}

void check_no_sync(dist::ProcessGroup& group) {
  std::atomic<int> count = 0;
  CountingGroup counting(group, count);
  Twins twins(counting);
  struct Losses {
    Variable plain, wrapped;
  };
  const auto forward = [&](int number) {
    const Tensor x = random(100 * number + group.rank());
    return Losses{sum(twins.plain(x, number)), sum(twins.model(x, number))};
  };
  const auto backward = [&](const Losses& losses) {
    losses.plain.backward();
    twins.model.backward(losses.wrapped);
  };
  // The pass decides, not where its forward ran.
  const Losses outside = forward(0);
  const int before = count;
  Losses inside;
  {
    const auto local = twins.model.no_sync();
    backward(outside);
    inside = forward(1);
    {
      const auto nested = twins.model.no_sync();
      backward(forward(3));
    }
    backward(forward(5));
    CHECK(count == before);
    CHECK(equal_bits(twins.wrapped.even.grad(), twins.plain.even.grad()));
  }
  backward(inside);  // does not use `even`: the first pass did
  CHECK((count > before) == (group.size() > 1));
  check_equal_to_mean(group, twins);
}

void check_buffers(dist::ProcessGroup& group) {
  Twins twins(group);
  CHECK(&train::Accelerator::unwrap_model(twins.model) == &twins.wrapped);
  CHECK(&train::Accelerator::unwrap_model(twins.wrapped) == &twins.wrapped);
  const Tensor x = random(group.rank());
  for (int i = 0; i < group.rank(); ++i) twins.model(x, 0);  // ranks count differently
  Variable loss = sum(twins.model(x, 0));
  twins.wrapped.count.fill(twins.wrapped.count.item<float>() + 10);
  loss = loss + sum(twins.model(x, 1));
  CHECK(twins.wrapped.count.item<float>() == static_cast<float>(group.rank()) + 12);
  twins.model.backward(loss);
  CHECK(twins.wrapped.count.item<float>() == 12);  // rank 0's
  sum(twins.plain(x, 0)).backward();
  sum(twins.plain(x, 1)).backward();
  const Tensor mean = tree_mean(group, twins.plain.even.grad());
  CHECK(equal_bits(twins.wrapped.even.grad(), mean));
}

void check_failures(dist::ProcessGroup& group) {
  const int last = group.size() - 1;
  const auto message = [](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Twins twins(group);
  const auto pass = [&](bool breaks) {
    const Variable loss = sum(twins.model(random(group.rank()), 0));
    if (breaks) loss.backward();  // releases the graph
    twins.model.backward(loss);
  };
  const std::string broken = message([&] { pass(group.rank() == last); });
  CHECK(broken.find(group.rank() == last ? "backward" : text("rank ", last)) != std::string::npos);
  twins.wrapped.zero_grad();
  const std::string without_text = message([&] {
    const Variable loss = sum(twins.model(random(group.rank()), 0));
    if (group.rank() == last) loss.register_hook([](const Tensor&) -> Tensor { throw 7; });
    try {
      twins.model.backward(loss);
    } catch (int) {
    }
  });
  CHECK((without_text.find("an exception without a text") == std::string::npos) ==
        (group.rank() == last));
  twins.wrapped.zero_grad();
  pass(false);
  sum(twins.plain(random(group.rank()), 0)).backward();
  check_equal_to_mean(group, twins);

  const std::string differs = message([&] {
    nn::Linear layer(2, group.rank() == last ? 4 : 3);
    DistributedDataParallel<nn::Linear> model(layer, {.process_group = &group});
  });
  if (group.size() == 1) return;
  CHECK(differs ==
        text("[prepare] all ranks must have the same model, got weight [3, 2] float32 on "
             "rank 0 and weight [4, 2] float32 on rank ",
             last,
             "; build the model alike everywhere"));
}

}  // namespace accrue::test
