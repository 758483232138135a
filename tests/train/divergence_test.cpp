// What only some ranks do, so that their weights would part: refused on all of them, or no matter.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>

using namespace accrue;
using accrue::test::message;
using train::Accelerator;

namespace {

data::TensorDataset points(std::int64_t count, DType dtype = DType::float32) {
  Tensor x = Tensor::empty({count, 3}), y = Tensor::empty({count, 2});
  for (Tensor* tensor : {&x, &y}) {
    Generator(5).normal({tensor->mutable_data<float>(), static_cast<std::size_t>(tensor->numel())});
  }
  return data::TensorDataset({x.to(dtype), y.to(dtype)});
}

/// What a rank saw of a training whose windows may fail.
struct Report {
  std::vector<std::vector<float>> weights;  ///< after each window
  std::vector<std::string> errors;          ///< of each window
  std::string step;                         ///< what step() said after the first error
  std::vector<double> losses;
};

/// Windows of 8; `prepare` sees the layer first, `before` each batch of a rank.
template <class Prepare, class Before>
Report train_layer(dist::ProcessGroup* group,
                   std::int64_t batch_size,
                   const Prepare& prepare,
                   const Before& before,
                   bool invariant = true) {
  manual_seed(1);
  nn::Linear net(3, 2);
  optim::SGD sgd(net.named_parameters(), {.lr = 0.1});
  data::DataLoader batches(points(32), {.batch_size = batch_size});
  Accelerator accelerator({.global_batch_size = 8, .invariant = invariant, .process_group = group});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  prepare(net);
  Report report;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    before(net, batch);
    const std::string error =
        message([&] { accelerator.backward(nn::mse(net(batch.inputs), batch.labels)); });
    if (error != "") {
      report.step = message([&, step = &optimizer] { step->step(); });
      optimizer.zero_grad();
    }
    optimizer.step();
    optimizer.zero_grad();
    if (!accelerator.sync_gradients()) continue;
    report.weights.push_back(net.weight().value().to_vector<float>());
    report.errors.push_back(error);
    report.losses.push_back(accelerator.window_loss());
  }
  return report;
}

template <class Body>
std::vector<Report> on_ranks(int size, const Body& body) {
  std::vector<Report> reports(static_cast<std::size_t>(size));
  dist::run_ranks(size,
                  [&](dist::ProcessGroup& group) {
                    reports[static_cast<std::size_t>(group.rank())] = body(group);
                  },
                  {.timeout = 20});
  return reports;
}

constexpr auto kNothing = [](const auto&...) {};

}  // namespace

TEST_CASE("train.divergence: a parameter's hook that throws on one rank steps no rank") {
  for (const auto& [size, invariant] : {std::pair{2, true}, {3, true}, {2, false}}) {
    const auto reports = on_ranks(size, [invariant = invariant](dist::ProcessGroup& group) {
      int calls = 0;
      const auto add_hook = [&](nn::Linear& net) {
        if (group.rank() != 1) return;
        net.bias().register_hook([&](const Tensor& gradient) {
          if (++calls == 2) throw ValueError("[hook] no");
          return gradient;
        });
      };
      return train_layer(&group, 4, add_hook, kNothing, invariant);
    });
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      const auto& [weights, errors, step, losses] = reports[rank];
      REQUIRE(weights.size() == 4);
      CHECK(weights == reports[0].weights);
      CHECK(weights[1] == weights[0]);
      CHECK(weights[2] != weights[1]);
      CHECK(errors[1].starts_with(rank == 1 ? "[hook] no"
                                            : "[bucketer] all ranks must complete their gradients, "
                                              "got a failure on rank 1: [hook] no"));
      CHECK(errors[0] + errors[2] + errors[3] == "");
      CHECK(step.find("call optimizer.zero_grad() first") != std::string::npos);
    }
  }
}

TEST_CASE("train.divergence: a pass of one rank that throws in mid-window steps no rank") {
  for (const bool invariant : {true, false}) {
    for (const bool drops : {true, false}) {
      CAPTURE(invariant);
      CAPTURE(drops);
      std::vector<std::string> errors(2);
      std::vector<std::vector<float>> weights(2);
      dist::run_ranks(
          2,
          [&](dist::ProcessGroup& group) {
            const auto rank = static_cast<std::size_t>(group.rank());
            nn::Linear net{Variable::leaf(Tensor::zeros({2, 3}))};
            optim::SGD sgd(net.parameters(), {.lr = 0.1});
            data::DataLoader batches(points(16), {.batch_size = 2});
            Accelerator accelerator(
                {.global_batch_size = 8, .invariant = invariant, .process_group = &group});
            auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
            int index = 0;
            for (const auto& batch : loader) {
              auto scope = accelerator.accumulate(model);
              const Variable y = net(batch.inputs);
              if (rank == 1 && index == 0) {
                y.register_hook([](const Tensor&) -> Tensor { throw ValueError("stop"); });
                CHECK_THROWS_AS(accelerator.backward(nn::mse(y, batch.labels)), ValueError);
                if (drops) optimizer.zero_grad();
              } else {
                const std::string error =
                    message([&] { accelerator.backward(nn::mse(y, batch.labels)); });
                if (index == 1) errors[rank] = error;
                if (error != "") optimizer.zero_grad();
                optimizer.step();
                optimizer.zero_grad();
              }
              if (++index % 2 == 0)
                weights[rank].push_back(net.weight().value().to_vector<float>()[0]);
            }
          },
          {.timeout = 20});
      CHECK(
          errors[0].starts_with("[bucketer] all ranks must complete their gradients, got a "
                                "failure on rank 1: "));
      CHECK(errors[1].starts_with("[backward] a backward pass of this window threw"));
      CHECK(weights[0] == weights[1]);
      CHECK(weights[0][0] == 0);
      CHECK(weights[0][1] != 0);
    }
  }
}

TEST_CASE("train.divergence: ranks that clip or step in other ways are told so a window later") {
  const auto run = [](const auto& end_window) {
    std::vector<std::string> errors(2);
    dist::run_ranks(2,
                    [&](dist::ProcessGroup& group) {
                      nn::Linear net(3, 2);
                      optim::SGD sgd(net.parameters(), {.lr = 0.1});
                      data::DataLoader batches(points(16), {.batch_size = 4});
                      Accelerator accelerator({.global_batch_size = 8, .process_group = &group});
                      auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
                      for (const auto& batch : loader) {
                        auto scope = accelerator.accumulate(model);
                        const std::string error = message([&] {
                          accelerator.backward(nn::mse(net(batch.inputs), batch.labels));
                        });
                        if (error != "") {
                          errors[static_cast<std::size_t>(group.rank())] = error;
                          break;
                        }
                        end_window(group.rank(), accelerator, net, sgd);
                        if (group.rank() == 0 || sgd.lr() != 0) optimizer.step();
                        optimizer.zero_grad();
                      }
                    },
                    {.timeout = 20});
    CHECK(errors[0] == errors[1]);
    return errors[0];
  };
  const auto differs = [](const std::string& first, const std::string& second) {
    return "[window] all ranks must clip and step alike, got " + first + " on rank 0 and " +
           second + " on rank 1; call the same with the same values on every rank";
  };
  const std::string step = "step of optimizer 0 with lr 0.1";
  CHECK(run([](int, auto& accelerator, auto& net, auto&) {
          accelerator.clip_grad_norm(net.parameters(), 1);
        }) == "");
  CHECK(run([](int rank, auto&, auto&, auto& sgd) { sgd.set_lr(rank == 0 ? 0.1 : 0.3); }) ==
        differs(step, "step of optimizer 0 with lr 0.3"));
  CHECK(run([](int rank, auto&, auto&, auto& sgd) { sgd.set_lr(rank == 0 ? 0.1 : 0); }) ==
        differs(step, "nothing done"));
  CHECK(run([](int rank, auto& accelerator, auto& net, auto&) {
          if (rank == 1) accelerator.clip_grad_norm(net.parameters(), 1);
        }) == differs(step, "clip_grad_norm 1 2, " + step));
}

TEST_CASE("train.divergence: hooks on one rank that do not throw change nothing") {
  const auto reports = on_ranks(2, [](dist::ProcessGroup& group) {
    const auto add_hook = [&](nn::Linear& net) {
      if (group.rank() == 0) net.weight().register_hook([](const Tensor& g) { return g; });
    };
    return train_layer(&group, 2, add_hook, kNothing);
  });
  const Report alone = train_layer(nullptr, 2, kNothing, kNothing);
  for (const Report& report : reports) CHECK(report.weights == alone.weights);
}

TEST_CASE("train.divergence: a recorded forward pass on some ranks only is refused on all") {
  for (const int size : {2, 3, 4}) {
    const auto reports = on_ranks(size, [&](dist::ProcessGroup& group) {
      const bool is_odd = group.rank() == size - 1;
      int count = 0;
      return train_layer(&group, 8, kNothing, [&](nn::Linear& net, const data::Batch& batch) {
        if (is_odd && ++count == 2) (void)net(batch.inputs);
      });
    });
    for (const auto& [weights, errors, step, losses] : reports) {
      CHECK(errors == reports[0].errors);
      CHECK(weights == reports[0].weights);
      CHECK(weights[1] == weights[0]);
      CHECK(weights[3] != weights[2]);
      CHECK(errors[1] ==
            text("[bucketer] a parameter must have the same uses on all ranks, got bias whose "
                 "recorded forward passes without gradient differ between ranks 0 and ",
                 size - 1,
                 "; run extra forward passes under NoGrad"));
    }
  }
}

TEST_CASE("train.divergence: a recorded forward pass on all ranks, also empty ones, keeps bits") {
  const Report alone = train_layer(nullptr, 8, kNothing, kNothing);
  const auto twice = [](nn::Linear& net, const data::Batch& batch) { (void)net(batch.inputs); };
  for (const int size : {2, 3, 5}) {
    const auto reports = on_ranks(
        size, [&](dist::ProcessGroup& group) { return train_layer(&group, 1, kNothing, twice); });
    for (const Report& report : reports) CHECK(report.weights == alone.weights);
  }
}

TEST_CASE("train.divergence: a rank without data takes the dtype of the loss from the others") {
  const auto run = [](dist::ProcessGroup* group) {
    nn::Linear net{Variable::leaf(Tensor::full({2, 3}, 0.1, DType::float64))};
    optim::SGD sgd(net.named_parameters(), {.lr = 0.1});
    data::DataLoader batches(points(3, DType::float64), {.batch_size = 1});
    Accelerator accelerator({.global_batch_size = 2, .process_group = group});
    auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
    Report report;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& batch : loader) {
        auto scope = accelerator.accumulate(model);
        accelerator.backward(nn::mse(net(batch.inputs), batch.labels));
        optimizer.step();
        optimizer.zero_grad();
        if (accelerator.sync_gradients()) report.losses.push_back(accelerator.window_loss());
      }
    }
    return report;
  };
  const Report alone = run(nullptr);
  CHECK(alone.losses.size() == 4);
  for (const int size : {2, 3, 4}) {
    const auto reports = on_ranks(size, [&](dist::ProcessGroup& group) { return run(&group); });
    for (const Report& report : reports) CHECK(report.losses == alone.losses);
  }
}
