// The ordered sum over ranks against MPI_Allreduce, whose bits depend on the number of ranks.
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/dist/dist.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace accrue::bench {
namespace {

constexpr int kPairs = 15;
constexpr double kTurn = 0.02;  // seconds

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds per call of `calls` calls that all ranks start together.
template <class Call>
double turn(dist::ProcessGroup& world, std::int64_t calls, const Call& call) {
  world.barrier();
  const double start = now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  return (now() - start) / static_cast<double>(calls);
}

/// All ranks sum `bytes`; rank 0 prints the medians of its times and of their ratios.
void measure(dist::ProcessGroup& world, std::int64_t bytes) {
  const std::int64_t count = bytes / 4;
  const Tensor partial = Tensor::full({count}, world.rank() + 1.5);
  Tensor sum = Tensor::empty({count}), peer_sum = Tensor::empty({count});
  const std::vector<TreeNode> nodes = {{0, world.rank(), partial}};
  const auto ours = [&] { dist::sum_nodes(world, world.size(), nodes, sum); };
  const auto peer = [&] {
    MPI_Allreduce(partial.data<float>(),
                  peer_sum.mutable_data<float>(),
                  static_cast<int>(count),
                  MPI_FLOAT,
                  MPI_SUM,
                  MPI_COMM_WORLD);
  };
  turn(world, 2, ours);
  turn(world, 2, peer);
  const double once = std::min(turn(world, 3, ours), turn(world, 3, peer));
  Tensor calls = Tensor::full({1}, std::clamp(kTurn / once, 1.0, 1e5), DType::int64);
  world.broadcast(calls);

  std::vector<double> our_times, peer_times, ratios;
  for (int i = 0; i < kPairs; ++i) {
    our_times.push_back(turn(world, calls.item<std::int64_t>(), ours));
    peer_times.push_back(turn(world, calls.item<std::int64_t>(), peer));
    ratios.push_back(peer_times.back() / our_times.back());
  }
  if (world.rank() == 0) {
    fmt::print("{} {} {} {}\n", bytes, median(our_times), median(peer_times), median(ratios));
    std::fflush(stdout);
  }
}

/// Starts this program on `count` processes and adds what rank 0 prints.
void add_processes(Report& report, int count) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format("mpirun {} --oversubscribe -n {} '{}'",
                                          geteuid() == 0 ? "--allow-run-as-root" : "",
                                          count,
                                          self);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw ProgramEnd{kInternal, "cannot start a shell"};
  std::int64_t bytes = 0, num_cases = 0;
  Pair pair;
  while (std::fscanf(pipe.get(), "%ld %lf %lf %lf", &bytes, &pair.ours, &pair.peer, &pair.ratio) ==
         4) {
    report.compare(fmt::format("sum of {} KiB, {} processes", bytes / 1024, count), pair);
    ++num_cases;
  }
  if (num_cases == 0) throw ProgramEnd{kConfiguration, "cannot run mpirun; install openmpi-bin"};
}

int run(int argc, char** argv) {
  std::string json;
  Options options("Measures ordered sums over processes against MPI_Allreduce.");
  options.file("json", json, "write the figures there");
  options.parse(argc, argv);

  const auto world = dist::world();
  if (world->size() > 1) {
    for (std::int64_t bytes = 1024; bytes <= 64 << 20; bytes *= 4) measure(*world, bytes);
    return kDone;
  }
  Report report;
  for (const int count : {2, 4}) add_processes(report, count);
  report.limit("geometric mean, as time of ours over the peer's", 1 / report.geomean(), 1.0, "");
  report.write(json);
  return report.holds() ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
