// Training steps against libtorch, memory under accumulation, start and size of a program.
#include "accrue/accrue.h"
#include "accrue/bench/step_cases.h"
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

// ---- memory ----

/// 784 - 256 - 10 with ReLU.
std::unique_ptr<nn::Layer> mlp() {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>(784, 256);
  net->add<nn::ReLU>();
  net->add<nn::Linear>(256, 10);
  return net;
}

/// Largest number of bytes that tensors hold during windows of `steps` micro-batches of 4 images.
std::int64_t peak_bytes(std::int64_t steps, int lanes) {
  constexpr std::int64_t kBatch = 4;
  const std::vector<Tensor> data = {Tensor::full({kBatch * 64, 784}, 0.5),
                                    Tensor::zeros({kBatch * 64}, DType::int64)};
  const std::unique_ptr<nn::Layer> net = mlp();
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
  const double gradient = 4.0 * static_cast<double>(mlp()->num_parameters());
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
  const auto compare = [&](const char* name, double least, const Turn& ours, const auto& peer) {
    report.compare(name, time_in_turns(ours, repeated(peer), turns), least);
  };
  compare("step of the documented line, batch 2", 10, our_line_step(), peer_line_step());
  compare("step of the documented tokens, 8 sequences", 0, our_token_step(), peer_token_step());
  const MlpStep small{256, 64}, large{512, 256}, adamw{256, 64, true};
  compare("step MLP 784-256-10, batch 64", 1.2, our_mlp_step(small), peer_mlp_step(small));
  compare("step MLP 784-512-10, batch 256", 1, our_mlp_step(large), peer_mlp_step(large));
  compare("step MLP 784-256-10, batch 64, AdamW", 1, our_mlp_step(adamw), peer_mlp_step(adamw));
  compare("step conv net 28 x 28, batch 64", 1, our_conv_step(64), peer_conv_step(64));
  compare("step GPT 4 x 128, 8 x 64 tokens, AdamW", 1, our_gpt_step({}), peer_gpt_step({}));
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
