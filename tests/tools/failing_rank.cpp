// Trains on all ranks of a job, of which one fails as the command line says.
//
// failing_rank FAILURE POINT RANK [TIMEOUT]: RANK fails at POINT. With a timeout ranks send
// messages; without, they share memory and wait for a second. Each rank prints a hash of the
// weights after each step, and again when it gives up. Where ACCRUE_TEST_SURVIVORS is set, ranks
// that lose one return that.
#include "accrue/accrue.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/tests/tools/faulty_group.h"
#include "accrue/tests/tools/processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

using namespace accrue;

namespace {

struct Fault {
  std::string failure, point;
  bool is_here = false;  ///< on this rank
};

/// Ranks issue two collectives, of which the first differs on one of them, or their order.
void call_wrongly(dist::ProcessGroup& group, const Fault& fault) {
  const auto is = [&](const char* failure) { return fault.is_here && fault.failure == failure; };
  Tensor tensor =
      Tensor::zeros({is("shape") ? 4 : 3}, is("dtype") ? DType::float64 : DType::float32);
  if (is("swapped")) group.broadcast(tensor, 0);
  group.all_reduce(tensor, is("operation") ? dist::ReduceOp::min : dist::ReduceOp::sum);
  group.broadcast(tensor, is("root") ? 1 : 0);
}

/// Of this process and of those that look after it: the program, accrue rank, mpirun, accrue
/// launch.
void print_listeners() {
  int process = getpid();
  for (const char* const name : {"failing_rank", "accrue rank", "mpirun", "accrue launch"}) {
    std::printf("%s listens at %d\n", name, test::count_listeners(process));
    process = test::parent_of(process);
  }
}

/// A child ends as a process does that knows nothing of MPI.
void fork_and_exit() {
  const pid_t child = fork();
  if (child == 0) std::exit(bench::kDone);
  waitpid(child, nullptr, 0);
}

void fail_here(const Fault& fault) {
  if (fault.failure == "killed") std::raise(SIGKILL);
  if (fault.failure == "stopped") std::raise(SIGSTOP);
  if (fault.failure == "orphaned") kill(getppid(), SIGKILL);
  if (fault.failure == "unattended") kill(test::parent_of(getppid()), SIGKILL);
  if (fault.failure == "orphaned" || fault.failure == "unattended") sleep(60);
  if (fault.failure == "listens") print_listeners();
  if (fault.failure == "forks") fork_and_exit();
  if (fault.failure == "ended") std::exit(bench::kDone);
  if (fault.failure == "exits") std::exit(3);
  if (fault.failure == "throws") throw std::runtime_error("a rank throws");
}

/// The names of failures in which ranks issue other collectives than the rest.
bool is_wrong_call(const std::string& failure) {
  return failure == "shape" || failure == "dtype" || failure == "operation" || failure == "root" ||
         failure == "swapped";
}

Tensor samples(std::int64_t width, std::uint64_t seed) {
  Tensor tensor = Tensor::empty({36, width});
  Generator(seed).normal({tensor.mutable_data<float>(), static_cast<std::size_t>(tensor.numel())});
  return tensor;
}

/// Three windows of twelve samples.
class Training {
 public:
  Training(test::FaultyGroup& group, const Fault& fault)
      : group_(group),
        fault_(fault),
        first_(8, is("wide") ? 65 : 64, !is("unbiased")),
        second_(is("wide") ? 65 : 64, 16) {}

  void run() {
    data::DataLoader batches(data::TensorDataset({samples(8, 1), samples(16, 2)}),
                             {.batch_size = 2});
    optim::SGD one(first_.parameters(), {.lr = 0.1, .momentum = 0.9});
    optim::SGD two(second_.parameters(), {.lr = 0.1, .momentum = 0.9});
    train::Accelerator accelerator({.global_batch_size = 12,
                                    .process_group = &group_,
                                    .first_bucket_bytes = 1024,
                                    .bucket_cap_bytes = 1024});
    if (is("reordered")) accelerator.prepare(second_);
    auto [a, b, optimizer, other, loader] = accelerator.prepare(first_, second_, one, two, batches);
    print("after step");
    pass("start");
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(a, b);
      const Variable hidden = relu(a(batch.inputs));
      if (step_ == 1) pass("forward");
      if (step_ == 1 && accelerator.sync_gradients() && fault_.is_here) arm();
      accelerator.backward(nn::mse(b(hidden), batch.labels));
      optimizer.step();
      if (step_ == 1 && accelerator.sync_gradients()) pass("step");
      other.step();
      optimizer.zero_grad();
      other.zero_grad();
      if (!accelerator.sync_gradients()) continue;
      ++step_;
      print("after step");
    }
    pass("end");
    accelerator.wait_for_everyone();
  }

  void print(const char* when) {
    std::uint64_t hash = kHashSeed;
    for (const nn::Linear* layer : {&first_, &second_}) {
      for (const Variable& parameter : layer->parameters())
        hash = hash_bits(std::span<const float>(parameter.value().to_vector<float>()), hash);
    }
    std::printf("rank %d %s %d: %s\n", group_.rank(), when, step_, hex16(hash).c_str());
    std::fflush(stdout);
  }

  static inline const Fault* current = nullptr;

 private:
  bool is(const char* failure) const { return fault_.is_here && fault_.failure == failure; }

  /// In the collectives of the first bucket, which have one further step, or of the second.
  void arm() {
    const int further_steps = fault_.point == "sum" ? 0 : fault_.point == "later" ? 2 : -1;
    group_.arm(further_steps, [] { fail_here(*current); });
  }

  void pass(const char* point) {
    if (fault_.point != point) return;
    if (is_wrong_call(fault_.failure)) return call_wrongly(group_, fault_);
    if (fault_.is_here) fail_here(fault_);
  }

  test::FaultyGroup& group_;
  const Fault& fault_;
  nn::Linear first_, second_;
  int step_ = 0;
};

int run(int argc, char** argv) {
  const bool sends = argc > 4;
  const auto world =
      dist::init({.timeout = sends ? std::atof(argv[4]) : 1, .shared_memory = !sends});
  const Fault fault{argv[1], argv[2], world->rank() == std::atoi(argv[3])};
  Training::current = &fault;
  test::FaultyGroup group(world);
  Training training(group, fault);
  try {
    training.run();
  } catch (const DistributedError&) {
    training.print("ends after step");
    std::printf("rank %d waited %.2f s\n", group.rank(), group.waited());
    if (const char* const code = std::getenv("ACCRUE_TEST_SURVIVORS")) return std::atoi(code);
    throw;
  }
  return bench::kDone;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(run, argc, argv); }
