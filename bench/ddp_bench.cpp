// Training on two processes: against PyTorch's DistributedDataParallel, what communication costs
// with and without overlap, and what lanes cost on one process.
#include "accrue/accrue.h"
#include "accrue/bench/support/child.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

namespace accrue::bench {
namespace {

constexpr int kProcesses = 2, kPairs = 15;

// ---- steps ----

std::unique_ptr<nn::Layer> line() { return std::make_unique<nn::Linear>(1, 1, false); }

/// 1024 - 2048 - 2048 - 2048 - 10 with ReLU: 10.5 million parameters.
std::unique_ptr<nn::Layer> mlp() {
  auto net = std::make_unique<nn::Sequential>();
  for (const std::int64_t inputs : {1024, 2048, 2048}) {
    net->add<nn::Linear>(inputs, 2048);
    net->add<nn::ReLU>();
  }
  net->add<nn::Linear>(2048, 10);
  return net;
}

data::TensorDataset samples(std::int64_t count, std::int64_t inputs, std::int64_t outputs) {
  Tensor x = Tensor::empty({count, inputs});
  Generator(1).uniform({x.mutable_data<float>(), static_cast<std::size_t>(x.numel())});
  return data::TensorDataset({x, Tensor::ones({count, outputs})});
}

/// Steps by squared error and SGD: forward, loss, backward, reduction, step, zero_grad. The clock
/// runs from accumulate() to the end of its scope: the peer loads no data either.
class Steps {
 public:
  Steps(std::unique_ptr<nn::Layer> net,
        data::TensorDataset dataset,
        std::int64_t batch_size,
        const train::AcceleratorOptions& options)
      : net_(std::move(net)),
        sgd_(net_->named_parameters(), {.lr = 0.02}),
        batches_(std::move(dataset), {.batch_size = batch_size}),
        accelerator_(options),
        model_(accelerator_.prepare(*net_)),
        optimizer_(accelerator_.prepare(sgd_)),
        loader_(accelerator_.prepare(batches_)) {}

  /// Seconds per step of at least `count` steps.
  double run(std::int64_t count) {
    using Clock = std::chrono::steady_clock;
    Clock::duration passed{};
    std::int64_t steps = 0;
    while (steps < count) {
      for (const auto& batch : loader_) {
        const Clock::time_point start = Clock::now();
        {
          auto scope = accelerator_.accumulate(model_);
          accelerator_.backward(nn::mse(model_(batch.inputs), batch.labels));
          optimizer_.step();
          optimizer_.zero_grad();
        }
        passed += Clock::now() - start;
        ++steps;
      }
    }
    return std::chrono::duration<double>(passed).count() / static_cast<double>(steps);
  }

 private:
  std::unique_ptr<nn::Layer> net_;
  optim::SGD sgd_;
  data::DataLoader batches_;
  train::Accelerator accelerator_;
  nn::Layer& model_;
  train::PreparedOptimizer optimizer_;
  train::Loader loader_;
};

// ---- one of two processes ----

enum Case : std::int64_t { kEnd, kLine, kOverlap, kNoOverlap, kAlone };

constexpr std::int64_t kLineBatch = 2, kMlpBatch = 32;
constexpr int kMlpLanes = 8;

/// The same arithmetic in all three: kMlpLanes / kProcesses lanes of this rank.
std::unique_ptr<Steps> mlp_steps(dist::ProcessGroup& group, bool overlap) {
  const int size = group.size();
  return std::make_unique<Steps>(
      mlp(),
      samples(size * kMlpBatch, 1024, 10),
      kMlpBatch,
      train::AcceleratorOptions{
          .lanes = kMlpLanes * size / kProcesses, .process_group = &group, .overlap = overlap});
}

/// Answers "<case> <steps>" on rank 0's stdin with seconds per step, until kEnd.
void serve(dist::ProcessGroup& world) {
  kernels::set_num_threads(1);
  const auto alone = dist::self_group();
  Steps line_steps(
      line(), samples(64 * kProcesses * kLineBatch, 1, 1), kLineBatch, {.process_group = &world});
  const auto overlap = mlp_steps(world, true), no_overlap = mlp_steps(world, false),
             by_itself = mlp_steps(*alone, false);
  if (world.rank() == 0) std::cout << "ready" << std::endl;
  while (true) {
    std::vector<std::int64_t> words(2);
    if (world.rank() == 0 && !(std::cin >> words[0] >> words[1])) words[0] = kEnd;
    Tensor order = Tensor::from(words, {2});
    world.broadcast(order);
    const auto which = static_cast<Case>(order[0].item<std::int64_t>());
    if (which == kEnd) return;
    Steps& steps = which == kLine        ? line_steps
                   : which == kOverlap   ? *overlap
                   : which == kNoOverlap ? *no_overlap
                                         : *by_itself;
    const double seconds = steps.run(order[1].item<std::int64_t>());
    if (world.rank() == 0) std::cout << fmt::format("{}", seconds) << std::endl;
  }
}

// ---- measuring ----

Turn asking(Child& child, const std::string& line) {
  return [&child, line] { return std::stod(child.ask(line)); };
}

/// The peer; null, with the reason on stdout, where it cannot run.
std::unique_ptr<Child> start_peer(Report& report) {
  const std::string script = ACCRUE_BENCH_SOURCES "/ddp_peer.py";
  auto peer = std::make_unique<Child>(std::vector<std::string>{"/usr/bin/python3", script});
  const std::string version = peer->read_line();
  if (version.empty()) {
    fmt::print("left out: the comparison with PyTorch, which needs python3-torch\n");
    return nullptr;
  }
  report.machine("peer", "PyTorch " + version + ", DistributedDataParallel over gloo");
  return peer;
}

void compare_line(Report& report, Child& ours) {
  const std::unique_ptr<Child> peer = start_peer(report);
  if (!peer) return;
  const auto our_turn = asking(ours, fmt::format("{} 3000", static_cast<int>(kLine)));
  report.compare("step of the documented line, batch 2, 2 processes",
                 time_in_turns(our_turn, asking(*peer, "100"), kPairs),
                 10);
}

/// What a step takes longer than the same arithmetic without other ranks.
void measure_communication(Report& report, Child& ours) {
  const auto turn = [&](Case which) {
    return asking(ours, fmt::format("{} 3", static_cast<int>(which)));
  };
  const Turn overlap = turn(kOverlap), no_overlap = turn(kNoOverlap), alone = turn(kAlone);
  constexpr double kLeast = 1e-6;  // of noise, so that ratios exist
  overlap(), no_overlap(), alone();
  std::vector<double> exposed, exposed_without, ratios, steps;
  for (int i = 0; i < kPairs; ++i) {
    const double base = alone(), with = overlap(), without = no_overlap();
    exposed.push_back(std::max(with - base, kLeast));
    exposed_without.push_back(std::max(without - base, kLeast));
    ratios.push_back(exposed_without.back() / exposed.back());
    steps.push_back(base);
  }
  fmt::print(
      "MLP of 10.5 million parameters, batch 32 on each of 2 processes, 1 thread each:\n"
      "  step without other ranks    {:.2f} ms\n"
      "  exposed communication       {:.2f} ms with overlap, {:.2f} ms without\n",
      median(steps) * 1e3,
      median(exposed) * 1e3,
      median(exposed_without) * 1e3);
  report.compare("exposed communication, with overlap to without",
                 {median(exposed), median(exposed_without), median(ratios)});
}

/// On one process: default lanes against a single chain.
void measure_lanes(Report& report) {
  for (const std::int64_t batch : {8, 64}) {
    const auto steps = [&](int lanes) {
      return std::make_unique<Steps>(
          mlp(), samples(batch, 1024, 10), batch, train::AcceleratorOptions{.lanes = lanes});
    };
    const auto eight = steps(8), one = steps(1);
    report.compare(
        fmt::format("step of the MLP, batch {}, 1 process: 8 lanes against 1", batch),
        time_in_turns([&] { return eight->run(3); }, [&] { return one->run(3); }, kPairs));
  }
}

int run(int argc, char** argv) {
  std::string json;
  Options options("Measures steps on two processes against PyTorch, communication, and lanes.");
  options.file("json", json, "write the figures there");
  options.parse(argc, argv);
  const auto world = dist::world();
  if (world->size() > 1) {
    serve(*world);
    return kDone;
  }
  Report report;
  {
    std::vector<std::string> command = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n"};
    if (geteuid() == 0) command.insert(command.begin() + 1, "--allow-run-as-root");
    command.push_back(std::to_string(kProcesses));
    command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    Child ours(command);
    if (ours.read_line() != "ready")
      throw ProgramEnd{kConfiguration, "cannot run mpirun; install openmpi-bin"};
    compare_line(report, ours);
    measure_communication(report, ours);
  }
  measure_lanes(report);
  report.write(json);
  return report.holds() ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
