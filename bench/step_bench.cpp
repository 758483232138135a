// Training steps against libtorch, memory under accumulation, start and size of a program.
#include "accrue/accrue.h"
#include "accrue/bench/step_peer.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cmath>
#include <filesystem>

namespace accrue::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- steps ----

/// Steps on one batch, a window each, with the default lanes. The clock runs from accumulate() to
/// the end of its scope: the peer loads no data either.
class Steps {
 public:
  using LossOf = Loss (*)(const Variable& outputs, const Tensor& labels);

  Steps(std::unique_ptr<nn::Layer> net,
        const Tensor& inputs,
        const Tensor& labels,
        double lr,
        LossOf loss_of)
      : net_(std::move(net)),
        loss_of_(loss_of),
        sgd_(net_->parameters(), {.lr = lr}),
        batches_(data::TensorDataset({inputs, labels}), {.batch_size = inputs.size(0)}) {}

  /// Seconds per step, measured for at least 20 ms.
  double turn() {
    auto [model, optimizer, loader] = accelerator_.prepare(*net_, sgd_, batches_);
    double seconds = 0;
    int steps = 0;
    for (; seconds < 0.02; ++steps) {
      for (const auto& batch : loader) {
        const Clock::time_point start = Clock::now();
        {
          auto scope = accelerator_.accumulate(model);
          accelerator_.backward(loss_of_(model(batch.inputs), batch.labels));
          optimizer.step();
          optimizer.zero_grad();
        }
        seconds += seconds_since(start);
      }
    }
    return seconds / steps;
  }

 private:
  train::Accelerator accelerator_;
  std::unique_ptr<nn::Layer> net_;
  LossOf loss_of_;
  optim::SGD sgd_;
  data::DataLoader batches_;
};

Loss cross_entropy(const Variable& logits, const Tensor& labels) {
  return nn::cross_entropy(logits, labels);
}

Turn our_line_step() {
  const Tensor x = Tensor::of<float>({{1}, {2}}), y = Tensor::of<float>({{2}, {4}});
  const auto squared_error = [](const Variable& outputs, const Tensor& labels) {
    return nn::mse(outputs, labels);
  };
  auto steps =
      std::make_shared<Steps>(std::make_unique<nn::Linear>(1, 1, false), x, y, 0.02, squared_error);
  return [steps] { return steps->turn(); };
}

Turn our_token_step() {
  constexpr std::int64_t kSequences = 8;
  Tensor tokens = Tensor::zeros({kSequences, kSequences, 1});
  Tensor labels = Tensor::full({kSequences, kSequences}, -100, DType::int64);
  for (std::int64_t i = 0; i < kSequences; ++i) {
    for (std::int64_t t = 0; t <= i; ++t) {
      tokens[i][t].fill(static_cast<double>(t + 1));
      labels[i][t].fill(static_cast<double>((t + 1) % 2));
    }
  }
  auto steps = std::make_shared<Steps>(
      std::make_unique<nn::Linear>(1, 2, false), tokens, labels, 0.08, cross_entropy);
  return [steps] { return steps->turn(); };
}

std::unique_ptr<nn::Layer> mlp(std::int64_t inputs, std::int64_t hidden, std::int64_t classes) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>(inputs, hidden);
  net->add<nn::ReLU>();
  net->add<nn::Linear>(hidden, classes);
  return net;
}

/// Random images and classes.
std::vector<Tensor> images(std::int64_t count, std::int64_t inputs, std::int64_t classes) {
  Generator generator(1);
  Tensor pixels = Tensor::empty({count, inputs}), labels = Tensor::empty({count}, DType::int64);
  generator.uniform({pixels.mutable_data<float>(), static_cast<std::size_t>(count * inputs)});
  generator.randint(
      {labels.mutable_data<std::int64_t>(), static_cast<std::size_t>(count)}, 0, classes);
  return {pixels, labels};
}

void compare_mlp(Report& report, std::int64_t hidden, std::int64_t batch, double least, int pairs) {
  const std::vector<Tensor> data = images(batch, 784, 10);
  Steps steps(mlp(784, hidden, 10), data[0], data[1], 0.01, cross_entropy);
  report.compare(fmt::format("step MLP 784-{}-10, batch {}", hidden, batch),
                 time_in_turns(rested([&] { return steps.turn(); }, kernels::num_threads()),
                               repeated(peer_mlp_step(784, hidden, 10, batch)),
                               pairs),
                 least);
}

// ---- memory ----

/// Largest number of bytes that tensors hold during windows of `steps` micro-batches of 4 images.
std::int64_t peak_bytes(std::int64_t steps, int lanes) {
  constexpr std::int64_t kBatch = 4;
  const std::vector<Tensor> data = images(kBatch * 64, 784, 10);
  const std::unique_ptr<nn::Layer> net = mlp(784, 256, 10);
  optim::SGD sgd(net->parameters(), {.lr = 0.01});
  data::DataLoader batches(data::TensorDataset(data), {.batch_size = kBatch});
  train::Accelerator accelerator({.gradient_accumulation_steps = steps, .lanes = lanes});
  auto [model, optimizer, loader] = accelerator.prepare(*net, sgd, batches);
  reset_peak_cpu_memory();
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
    optimizer.step();
    optimizer.zero_grad();
  }
  return cpu_memory_stats().peak_bytes;
}

/// Contract 6: log2(L) + 1 gradients at most, of which A = 1 has one already, whatever A is. A
/// micro-batch of 4 needs less than a tenth of a gradient besides.
void check_memory(Report& report) {
  const double gradient = 4.0 * static_cast<double>(mlp(784, 256, 10)->num_parameters());
  const double images_bytes = 4.0 * 4 * 64 * 784;
  for (const int lanes : {1, 8}) {
    const auto peak = [&](std::int64_t steps) {
      return static_cast<double>(peak_bytes(steps, lanes));
    };
    const double at_1 = peak(1), at_16 = peak(16), at_64 = peak(64);
    const auto name = [&](const char* what) {
      return fmt::format("memory, {} lanes: {}", lanes, what);
    };
    report.limit(name("peak at A = 1"), at_1, images_bytes + 2.1 * gradient, "bytes");
    report.limit(
        name("peak at A = 64"), at_64, at_1 + (std::log2(lanes) + 0.1) * gradient, "bytes");
    report.limit(name("A = 64 against A = 16"), std::abs(at_64 - at_16), 0.1 * gradient, "bytes");
  }
}

// ---- start and size ----

/// Milliseconds from spawning a program to its end.
double run_time(const std::filesystem::path& program) {
  std::string name = program.string();
  char* const arguments[] = {name.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const Clock::time_point start = Clock::now();
  pid_t process = 0;
  int status = posix_spawn(&process, name.c_str(), &actions, nullptr, arguments, environ);
  if (status == 0) waitpid(process, &status, 0);
  const double seconds = seconds_since(start);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) throw ProgramEnd{kInternal, "cannot run " + name};
  return seconds * 1e3;
}

void check_program(Report& report, int starts) {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path program = folder / "docs_plain_loop.stripped";
  std::vector<double> times;
  for (int i = 0; i < starts; ++i) times.push_back(run_time(program));
  report.limit("docs_plain_loop, start to end", median(times), 10, "ms");
  report.limit("docs_plain_loop, stripped",
               static_cast<double>(std::filesystem::file_size(program)) / 1e6,
               3,
               "MB");
}

int run(int argc, char** argv) {
  std::string json;
  std::int64_t threads = 2, pairs = 15;
  Options options("Measures training steps against libtorch, memory, start and size.");
  options.file("json", json, "write the figures there");
  options.integer("threads", threads, "of both sides", 1, 1024);
  options.integer("pairs", pairs, "turns of each side; medians count", 15, 1000);
  options.parse(argc, argv);

  Report report;
  kernels::set_num_threads(static_cast<int>(threads));
  report.machine("peer", "libtorch " + start_peer(static_cast<int>(threads)));
  report.machine("threads", std::to_string(threads));
  report.machine("kernels", name_of(kernels::current_isa()));

  const int turns = static_cast<int>(pairs);
  report.compare("step of the documented line, batch 2",
                 time_in_turns(our_line_step(), repeated(peer_line_step()), turns),
                 10);
  report.compare("step of the documented tokens, 8 sequences",
                 time_in_turns(our_token_step(), repeated(peer_token_step()), turns));
  compare_mlp(report, 256, 64, 1.2, turns);
  compare_mlp(report, 512, 256, 1.0, turns);
  check_memory(report);
  check_program(report, turns);
  report.write(json);
  return report.holds() ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  // Otherwise threads of OpenMP, which libtorch waits with, starve those of OpenBLAS.
  accrue::bench::require_environment(argv, "OMP_WAIT_POLICY", "passive");
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
