// Trains on all ranks of a job until a signal comes, which the fifth step of one rank sends.
//
// stopping_rank SIGNAL SENDER TARGET: rank SENDER sends it to itself or to the launcher; a third
// target, `deaf`, is the launcher of ranks that never ask whether a signal came.
#include "accrue/accrue.h"
#include "accrue/bench/support/program.h"
#include "accrue/tests/tools/processes.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

using namespace accrue;

namespace {

/// The process that starts mpirun, which starts this one's parent.
int launcher() { return test::parent_of(test::parent_of(getppid())); }

int run(int, char** argv) {
  const int signal = std::atoi(argv[1]), sender = std::atoi(argv[2]);
  const std::string_view target = argv[3];
  const train::StopSignal stop;
  train::Accelerator accelerator;
  nn::Linear net(3, 2);
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  data::DataLoader batches(data::TensorDataset({Tensor::ones({4000, 3}), Tensor::ones({4000, 2})}),
                           {.batch_size = 2});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  int step = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::mse(model(batch.inputs), batch.labels));
    optimizer.step();
    optimizer.zero_grad();
    if (!accelerator.sync_gradients()) continue;
    // No two ranks take the same time for a step.
    std::this_thread::sleep_for(std::chrono::milliseconds(2 + 3 * accelerator.process_index()));
    ++step;
    if (step >= 5 && accelerator.process_index() == sender) {
      if (step == 5) kill(target == "itself" ? getpid() : launcher(), signal);
      if (target == "deaf") std::this_thread::sleep_for(std::chrono::milliseconds(300));
      if (target == "deaf" && step == 10) kill(launcher(), signal);
    }
    if (target != "deaf" && stop.has_come(accelerator)) break;
  }
  std::printf("rank %d stops after step %d\n", accelerator.process_index(), step);
  return bench::kRankLost;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(run, argc, argv); }
