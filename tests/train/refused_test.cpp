// What a rank is refused: alike on all ranks, at once, and the window is handled in one way.
#include "accrue/accrue.h"
#include "accrue/dist/dist.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/train/line.h"

#include <utility>

using namespace accrue;
using accrue::test::message;
using accrue::test::There;
using tests::Line;
using tests::line_loader;
using train::Accelerator;
using train::AcceleratorOptions;
using train::Compat;

namespace {

constexpr const char* kThrew =
    "[backward] a backward pass of this window threw, so its sums are incomplete; call "
    "optimizer.zero_grad() first";

/// What `body` threw on each of two ranks.
template <class Body>
std::vector<std::string> messages(const Body& body) {
  std::vector<std::string> errors(2);
  dist::run_ranks(2,
                  [&](dist::ProcessGroup& group) {
                    errors[static_cast<std::size_t>(group.rank())] = message([&] { body(group); });
                  },
                  {.timeout = 5});
  return errors;
}

AcceleratorOptions plain(bool compat, std::int64_t steps, dist::ProcessGroup* group = nullptr) {
  return {.gradient_accumulation_steps = steps,
          .invariant = false,
          .compat = {compat},
          .process_group = group};
}

/// A mean whose backward pass throws where `fails`.
Variable mean_of(Line& line, const data::Batch& batch, bool fails) {
  const Variable y = line.model(batch.inputs);
  if (fails) y.register_hook([](const Tensor&) -> Tensor { throw ValueError("stop"); });
  return mse_loss(y, batch.labels);
}

}  // namespace

TEST_CASE("train.refused: a further model in an open window is refused on all ranks alike") {
  for (const bool invariant : {true, false}) {
    int refusals = 0;
    dist::run_ranks(
        2,
        [&](dist::ProcessGroup& group) {
          Line line, other;
          auto batches = line_loader(11, 1);  // of the second window rank 0 has all three samples
          Accelerator accelerator(
              {.global_batch_size = 8, .invariant = invariant, .process_group = &group});
          auto [model, optimizer, loader] =
              accelerator.prepare(line.model, line.optimizer, batches);
          int index = 0;
          for (const auto& batch : loader) {
            {
              auto scope = accelerator.accumulate(model);
              if (batch.size() > 0 || accelerator.sync_gradients())
                accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
              optimizer.step();
              optimizer.zero_grad();
            }
            if (++index != 5) continue;
            const std::string error = message([&] { accelerator.prepare(other.model); });
            CHECK(error ==
                  "[prepare] a further model must come where no gradients are alive, got some on "
                  "rank 0; prepare models first, or after the step() and zero_grad() that end a "
                  "window");
            if (group.rank() == 0) ++refusals;
          }
          CHECK(index == 7);
          CHECK(group.all_gather(line.model.weight().value())[0].item<float>() ==
                group.all_gather(line.model.weight().value())[1].item<float>());
          accelerator.prepare(other.model);
        },
        {.timeout = 5});
    CHECK(refusals == 1);
  }
}

TEST_CASE("train.refused: a pass of a Variable that throws poisons the window until zero_grad") {
  for (const bool compat : {true, false}) {
    Accelerator accelerator(plain(compat, 4));
    Line line, other;
    auto batches = line_loader(8, 1);
    auto [model, optimizer, second, loader] =
        accelerator.prepare(line.model, line.optimizer, other.optimizer, batches);
    other.model.to(accelerator.device());
    int index = 0;
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      const auto backward = [&](bool fails) {
        const Variable both = mean_of(line, batch, fails) + mean_of(other, batch, false);
        return message([&] { accelerator.backward(both); });
      };
      CHECK(backward(index == 1 || index == 7) == (index == 1 || index == 7 ? "stop"
                                                   : index == 2             ? kThrew
                                                                            : ""));
      if (index == 2) {
        optimizer.zero_grad();
        second.zero_grad();
        CHECK(backward(false) == "");
      }
      if (index++ == 1) continue;
      if (index == 4) {  // of samples 3 and 4
        CHECK(line.model.weight().grad().item<float>() == -25);
        CHECK(other.model.weight().grad().item<float>() == -25);
      }
      CHECK(message([&, step = &optimizer] { step->step(); }) == (index == 8 ? kThrew : ""));
      optimizer.zero_grad();
      second.step();
      second.zero_grad();
    }
    CHECK(line.weight() == 0.5F);
    CHECK(other.weight() == 0.5F);
    CHECK(optimizer.step_was_skipped());
  }
}

TEST_CASE("train.refused: what a window that threw has added stays out of the next one") {
  Accelerator accelerator(plain(false, 2));
  Line line;
  auto batches = line_loader(6, 1);
  auto [model, optimizer, loader] = accelerator.prepare(line.model, line.optimizer, batches);
  int index = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const std::string error =
        message([&] { accelerator.backward(mean_of(line, batch, index == 1)); });
    CHECK(error == (index == 1 ? "stop" : index == 2 ? kThrew : ""));
    if (index == 2) optimizer.zero_grad();
    if (index++ < 2) continue;
    optimizer.step();
    if (accelerator.sync_gradients()) optimizer.zero_grad();
  }
  // The mean of sample 4 alone, then of 5 and 6: -(2 * 4 * 8) / 2, then the same with the rest.
  CHECK(line.weight() == doctest::Approx(0.64 + 0.02 * (25 + 36) * (2 - 0.64)));
}

TEST_CASE("train.refused: a gradient that a window still adds up is told to all ranks at once") {
  for (const bool is_alike : {true, false}) {
    std::vector<std::string> errors(2);
    dist::run_ranks(2,
                    [&](dist::ProcessGroup& group) {
                      const bool adds = is_alike || group.rank() == 1;
                      Line line, other;
                      auto batches = line_loader(8, 1);
                      Accelerator accelerator(plain(false, 2, &group));
                      auto [model, second, optimizer, loader] =
                          accelerator.prepare(line.model, other.model, line.optimizer, batches);
                      int index = 0;
                      for (const auto& batch : loader) {
                        auto scope = accelerator.accumulate(model);
                        if (index == 0 && adds)
                          accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
                        if (index++ == 0) continue;
                        const std::string error =
                            message([&] { accelerator.backward(mean_of(other, batch, false)); });
                        if (index == 2) errors[static_cast<std::size_t>(group.rank())] = error;
                        if (index > 2) CHECK(error == "");
                        optimizer.zero_grad();
                        other.optimizer.zero_grad();
                      }
                      CHECK(index == 4);
                    },
                    {.timeout = 5});
    constexpr const char* kAdds = "[grad] gradients exist when the window ends";
    CHECK(errors[0].substr(0, 43) ==
          (is_alike ? kAdds : "[bucketer] all ranks must complete their gr"));
    CHECK(errors[1].substr(0, 43) == kAdds);
  }
}

TEST_CASE("train.refused: a Variable that cannot be scaled is told to all ranks at once") {
  for (const auto precision : {train::MixedPrecision::no, train::MixedPrecision::fp16}) {
    for (const int failing : {0, 1}) {  // the micro-batch, of windows of two
      std::vector<float> weights(2);
      std::vector<std::string> errors(2);
      dist::run_ranks(2,
                      [&](dist::ProcessGroup& group) {
                        const auto rank = static_cast<std::size_t>(group.rank());
                        Line line;
                        auto batches = line_loader(8, 1);
                        AcceleratorOptions options = plain(true, 2, &group);
                        options.mixed_precision = precision;
                        options.grad_scaler = optim::GradScalerOptions{.init_scale = 64};
                        Accelerator accelerator(options);
                        auto [model, optimizer, loader] =
                            accelerator.prepare(line.model, line.optimizer, batches);
                        int index = 0;
                        for (const auto& batch : loader) {
                          auto scope = accelerator.accumulate(model);
                          const Loss loss = nn::mse(model(batch.inputs), batch.labels);
                          const bool fails = rank == 1 && index == failing;
                          const std::string error =
                              message([&] { accelerator.backward(fails ? Loss() : loss); });
                          if (error != "") errors[rank] += text(index, error.substr(0, 11));
                          if (error != "") optimizer.zero_grad();
                          optimizer.step();
                          optimizer.zero_grad();
                          if (++index == 2) CHECK(line.weight() == 0);
                        }
                        weights[rank] = line.weight();
                      },
                      {.timeout = 5});
      CHECK(errors[0] == "1[bucketer] ");
      CHECK(errors[1] == (failing == 0 ? "0[tensor] te1[backward] " : "1[tensor] te"));
      CHECK(weights[0] == weights[1]);
      CHECK(weights[0] != 0);
    }
  }
}

TEST_CASE("train.refused: a parameter written after its first use in a window is refused") {
  const auto run = [](std::int64_t batch_size) {
    return message([&] {
      Accelerator accelerator({.global_batch_size = 4});
      nn::Linear net(1, 1);
      optim::SGD sgd(net.named_parameters(), {.lr = 0.1});
      auto batches = line_loader(4, batch_size);
      auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
      int index = 0;
      for (const auto& batch : loader) {
        auto scope = accelerator.accumulate(model);
        const Loss loss = nn::mse(model(batch.inputs), batch.labels);
        if (index++ == 0) net.bias().mutable_value().fill(1);  // which backward does not read
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
      }
    });
  };
  CHECK(run(4) == "");
  CHECK(run(2) ==
        "[backward] a parameter must keep its values through a window, got bias written after a "
        "micro-batch that used it; write where the window has ended");
}

TEST_CASE("train.refused: what ranks make of samples is marked on all ranks or on none") {
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    const train::ProcessState ranks(&group);
    const Tensor made = There::ones({2, 1});
    auto batches = line_loader(4, 2);
    const Tensor rows = batches.load(std::vector<std::int64_t>{0, 1}).inputs.to(made.device());
    for (const bool has_samples : {true, false}) {
      const Tensor& mine = has_samples && group.rank() == 1 ? rows : made;
      for (const Tensor& result : {ranks.gather(mine),
                                   ranks.gather_rows(mine),
                                   ranks.gather_for_metrics(mine, 3),
                                   ranks.reduce(mine),
                                   ranks.reduce(mine, train::RankReduction::mean),
                                   ranks.pad_across_processes(mine)})
        CHECK(result.sample_axis().is_mixed() == has_samples);
    }
  });
}

TEST_CASE("train.refused: ranks that pass tensors of other ranks are told so at once") {
  const auto differs = [](const char* operation, const char* theirs, const std::string& note = "") {
    return text(operation,
                " all but one size must agree on all ranks, got [1] float32",
                note,
                " on rank 0 and ",
                theirs,
                note,
                " on rank 1");
  };
  const auto shapes = [](dist::ProcessGroup& group) {
    return group.rank() == 0 ? There::ones({2}) : There::ones({});
  };
  const auto rows = messages([&](dist::ProcessGroup& group) {
    (void)train::ProcessState(&group).gather_rows(shapes(group));
  });
  CHECK(rows[0] == differs("[gather_rows]", "[] float32"));
  CHECK(rows[1] == rows[0]);
  const auto padded = messages([&](dist::ProcessGroup& group) {
    (void)train::ProcessState(&group).pad_across_processes(shapes(group));
  });
  CHECK(padded[0] == differs("[pad_across_processes]", "[] float32", " padded in dimension 0"));
  CHECK(padded[1] == padded[0]);
  const auto none = messages([&](dist::ProcessGroup& group) {
    (void)train::ProcessState(&group).pad_across_processes(There::ones({2}), 1);
  });
  CHECK(none[0] == "[pad_across_processes] dimension must exist, got 1 for shape [2]");
  CHECK(none[1] == none[0]);
}

TEST_CASE("train.refused: options that are no enumerator are refused") {
  const auto made = [](const AcceleratorOptions& options) {
    return message([&] { const Accelerator accelerator(options); });
  };
  CHECK(made({.dealing = static_cast<data::Dealing>(2)}) ==
        "[accelerator] dealing must be contiguous or round_robin, got 2");
  CHECK(made({.mixed_precision = static_cast<train::MixedPrecision>(3)}) ==
        "[accelerator] mixed_precision must be no, bf16 or fp16, got 3");
  CHECK(made({.dealing = data::Dealing::round_robin,
              .mixed_precision = train::MixedPrecision::fp16}) == "");
}
