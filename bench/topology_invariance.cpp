// Proves that every number of ranks, dealing, micro-batch size and bucket cap gives the same bits,
// and that the proof has teeth.
//
// Ranks are threads of this process, then the processes of mpirun, which starts this program again.
// Each run trains a model; its hash covers gradients, loss and weights of every step on every rank,
// and must equal that of the scalar reference model, which knows neither ranks nor micro-batches.
#include "accrue/accrue.h"
#include "accrue/bench/support/invariance_cases.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/dist/dist.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <tuple>

namespace accrue::bench {
namespace {

using reference::Fault;
using reference::Half;
using reference::Training;

/// One way to spread a window.
struct Topology {
  int world_size;
  std::int64_t micro_batch_size;
  data::Dealing dealing;
  std::int64_t bucket_cap_bytes = 0;
};

/// What the command line asks for.
const std::vector<std::string> kPrecisions = {"no", "bf16", "fp16"};  // of Half

struct Settings {
  bool quick = false, only_threads = false;
  Half half = Half::none;
  Device device = {};
};

constexpr std::int64_t kBucketCaps[] = {
    std::int64_t{1} << 10, std::int64_t{64} << 10, std::int64_t{25} << 20};

const char* name_of(data::Dealing dealing) {
  return dealing == data::Dealing::contiguous ? "contiguous" : "round robin";
}

/// fp16 scales the loss as Accelerator does.
Training training_of(std::int64_t global_batch_size, int lanes, Half half) {
  return {.global_batch_size = global_batch_size,
          .lanes = lanes,
          .epochs = 2,
          .lr = 0.05,
          .momentum = 0.9,
          .max_norm = 0.5,
          .half = half,
          .loss_scale = half == Half::float16 ? 1024.0f : 1.0f};
}

/// Two whole windows; those, and one that cuts a lane.
std::vector<std::int64_t> data_set_sizes(std::int64_t global_batch_size) {
  return {2 * global_batch_size, 2 * global_batch_size + 2 * global_batch_size / 3 + 1};
}

bool is_legal(const Topology& topology, const Training& training, std::int64_t num_samples) {
  try {
    (void)data::WindowPlan({.num_samples = num_samples,
                            .global_batch_size = training.global_batch_size,
                            .micro_batch_size = topology.micro_batch_size,
                            .lanes = training.lanes,
                            .world_size = topology.world_size,
                            .dealing = topology.dealing});
    return true;
  } catch (const ValueError&) {
    return false;
  }
}

std::uint64_t reference_hash(reference::Model model,
                             const std::vector<reference::Sample>& samples,
                             const Training& training) {
  return hash_of(reference::train(model, samples, training));
}

/// The hash that each rank of `group` arrives at.
std::uint64_t rank_hash(dist::ProcessGroup& group,
                        const InvarianceCase& start,
                        Training training,
                        const Topology& topology,
                        Device device) {
  training.micro_batch_size = topology.micro_batch_size;
  manual_seed(static_cast<std::uint64_t>(group.rank()));  // initial weights of ranks differ
  return hash_of(train_by_library(start,
                                  training,
                                  {.dealing = topology.dealing,
                                   .device = device,
                                   .process_group = &group,
                                   .first_bucket_bytes = topology.bucket_cap_bytes / 4,
                                   .bucket_cap_bytes = topology.bucket_cap_bytes}));
}

/// Of all ranks, on threads.
std::vector<std::uint64_t> thread_hashes(const InvarianceCase& start,
                                         const Training& training,
                                         const Topology& topology,
                                         Device device) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(topology.world_size));
  dist::run_ranks(topology.world_size, [&](dist::ProcessGroup& group) {
    hashes[static_cast<std::size_t>(group.rank())] =
        rank_hash(group, start, training, topology, device);
  });
  return hashes;
}

struct Count {
  int runs = 0, refused = 0, differing = 0;
  std::set<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> distinct;  ///< W, A, b, n
};

/// One topology, by every bucket cap where there are buckets. `hashes_of` trains on all ranks.
template <class HashesOf>
void check_caps(const InvarianceCase& start,
                const Training& training,
                Topology topology,
                std::uint64_t expected,
                const HashesOf& hashes_of,
                Count& count) {
  for (const std::int64_t cap : kBucketCaps) {
    topology.bucket_cap_bytes = cap;
    ++count.runs;
    const std::vector<std::uint64_t> hashes = hashes_of(start, training, topology);
    const auto differs = [&](std::uint64_t hash) { return hash != expected; };
    const auto wrong = std::find_if(hashes.begin(), hashes.end(), differs);
    if (wrong != hashes.end()) {
      ++count.differing;
      fmt::print("    DIFFERS: {} samples, {} ranks, b = {}, {}, {} bytes per bucket: {}, not {}\n",
                 start.samples.size(),
                 topology.world_size,
                 topology.micro_batch_size,
                 name_of(topology.dealing),
                 cap,
                 hex16(*wrong),
                 hex16(expected));
    }
    if (topology.world_size == 1) return;
  }
}

/// All topologies of one model, B and L; in a short run on devices, which may be simulated, those
/// of a few micro-batch sizes and the data set that cuts a lane.
template <class HashesOf>
void check_topologies(const InvarianceCase& whole,
                      const Training& training,
                      const std::vector<int>& world_sizes,
                      const Settings& settings,
                      const HashesOf& hashes_of,
                      Count& count) {
  const bool takes_all = !settings.quick || settings.device.is_cpu();
  for (const std::int64_t num_samples : data_set_sizes(training.global_batch_size)) {
    if (!takes_all && num_samples % training.global_batch_size == 0) continue;
    InvarianceCase start = whole;
    start.samples.resize(static_cast<std::size_t>(num_samples));
    const std::uint64_t expected = reference_hash(start.model, start.samples, training);
    for (const int world_size : world_sizes) {
      const std::int64_t most = training.global_batch_size + world_size - 1;
      for (std::int64_t b = 1; b * world_size <= most; b += takes_all ? 1 : b + 1) {
        for (const auto dealing : {data::Dealing::contiguous, data::Dealing::round_robin}) {
          const Topology topology{world_size, b, dealing};
          if (!is_legal(topology, training, num_samples)) {
            ++count.refused;
            continue;
          }
          const std::int64_t steps =
              (training.global_batch_size + world_size * b - 1) / (world_size * b);
          count.distinct.insert({world_size, steps, b, num_samples});
          check_caps(start, training, topology, expected, hashes_of, count);
        }
      }
    }
  }
}

template <class HashesOf>
int check_all(const std::vector<int>& world_sizes,
              const HashesOf& hashes_of,
              const Settings& settings,
              bool print) {
  const std::vector<std::int64_t> sizes =
      settings.quick ? std::vector<std::int64_t>{24} : std::vector<std::int64_t>{16, 24, 30};
  const std::vector<int> lanes = settings.quick ? std::vector<int>{8} : std::vector<int>{8, 16};
  int differing = 0;
  for (const InvarianceCase& whole : invariance_cases(data_set_sizes(30).back())) {
    Count model;
    for (const std::int64_t global : sizes) {
      for (const int l : lanes)
        check_topologies(
            whole, training_of(global, l, settings.half), world_sizes, settings, hashes_of, model);
    }
    differing += model.differing;
    if (print) {
      fmt::print("{:<14} {:>5} runs, {:>4} distinct (W, A, b, n), {:>4} refused, {} differ\n",
                 whole.name,
                 model.runs,
                 model.distinct.size(),
                 model.refused,
                 model.differing);
    }
  }
  return differing;
}

// ---- teeth ----

/// What `training` gives when its ranks sum or divide in a wrong way: the faults of the reference
/// model, with the share of one of three ranks as micro-batch.
struct Tooth {
  const char* name;
  Fault fault;
};
constexpr Tooth kTeeth[] = {{"ranks' sums in a ring", Fault::add_finished_product},
                            {"mean over each rank", Fault::mean_of_means},
                            {"nodes swapped", Fault::swap_lanes}};

/// Prints which wrong reductions over three ranks change the bits; returns how many do not.
int check_teeth(const InvarianceCase& whole, Half half) {
  constexpr std::int64_t kGlobal = 24;
  Training training = training_of(kGlobal, 8, half);
  training.micro_batch_size = kGlobal / 3;
  std::vector<reference::Sample> samples(whole.samples.begin(),
                                         whole.samples.begin() + kGlobal + 4);
  const std::uint64_t right = reference_hash(whole.model, samples, training);
  int num_unseen = 0;
  const auto show = [&](const char* name, std::uint64_t hash) {
    fmt::print("  {:<14} {:<24} {}\n", whole.name, name, hash == right ? "UNSEEN" : "differs");
    num_unseen += hash == right;
  };
  for (const Tooth& tooth : kTeeth) {
    training.fault = tooth.fault;
    show(tooth.name, reference_hash(whole.model, samples, training));
  }
  training.fault = Fault::none;
  samples.push_back(samples[0]);
  samples.push_back(samples[1]);
  show("duplicates that count", reference_hash(whole.model, samples, training));
  return num_unseen;
}

/// The part of one rank of `world`: all ranks train, the first prints.
int run_processes(dist::ProcessGroup& world, const Settings& settings) {
  const auto hashes_of = [&](const InvarianceCase& start,
                             const Training& training,
                             const Topology& topology) {
    const std::string mine = hex16(rank_hash(world, start, training, topology, settings.device));
    std::vector<std::uint64_t> hashes;
    for (const std::string& hash : world.all_gather_bytes(mine))
      hashes.push_back(std::stoull(hash, nullptr, 16));
    return hashes;
  };
  const bool is_main = world.rank() == 0;
  if (is_main) fmt::print("\nRanks as {} processes:\n", world.size());
  return check_all({world.size()}, hashes_of, settings, is_main) == 0 ? kDone : kClaimFailed;
}

/// Runs this program on `count` processes and returns its exit code.
int start_processes(int count, const Settings& settings) {
  std::fflush(stdout);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> words = {
      "mpirun", "--oversubscribe", "-n", std::to_string(count), program};
  if (geteuid() == 0) words.insert(words.begin() + 1, "--allow-run-as-root");
  if (settings.quick) words.push_back("--quick");
  words.push_back("--mixed_precision=" + kPrecisions[static_cast<std::size_t>(settings.half)]);
  if (!settings.device.is_cpu()) words.push_back("--device=" + settings.device.str());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  int status = 0;
  if (posix_spawnp(&process, "mpirun", nullptr, nullptr, arguments.data(), environ) != 0)
    throw ProgramEnd{kConfiguration, "cannot start mpirun; install openmpi-bin"};
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kInternal;
}

int run_all(const Settings& settings) {
  const bool quick = settings.quick;
  std::vector<int> world_sizes =
      quick ? std::vector<int>{1, 2, 3} : std::vector<int>{1, 2, 3, 4, 7, 8};
  if (!settings.device.is_cpu()) world_sizes = {1, 2, 3, 4};
  fmt::print(
      "Each number of ranks, dealing and micro-batch size, two data sets per batch size, buckets "
      "of\n"
      "1 KiB, 64 KiB and 25 MiB: hash of gradients, loss and weights of every step on every rank,\n"
      "against the reference model.\n\n"
      "Ranks as threads:\n");
  const auto hashes_of =
      [&](const InvarianceCase& start, const Training& training, const Topology& topology) {
        return thread_hashes(start, training, topology, settings.device);
      };
  const int differing = check_all(world_sizes, hashes_of, settings, true);
  int num_failed = 0;
  for (const int count : quick ? std::vector<int>{2} : std::vector<int>{2, 3, 4}) {
    if (!settings.only_threads) num_failed += start_processes(count, settings) != kDone;
  }
  fmt::print("\nWrong reductions over 3 ranks:\n");
  int num_unseen = 0;
  for (const InvarianceCase& start : invariance_cases(64))
    num_unseen += check_teeth(start, settings.half);
  fmt::print("\n{} runs on threads differ; {} jobs of processes failed; {} faults stay unseen\n",
             differing,
             num_failed,
             num_unseen);
  return differing + num_failed + num_unseen == 0 ? kDone : kClaimFailed;
}

int run(int argc, char** argv) {
  Settings settings;
  std::size_t precision = 0;
  Options options("Trains three models on every topology and compares the bits.");
  options.flag("quick", settings.quick, "fewer ranks and splits, only B = 24 with 8 lanes");
  options.flag("only_threads", settings.only_threads, "no processes, so no mpirun");
  options.device(settings.device);
  options.choice("mixed_precision", precision, kPrecisions, "what products take");
  options.parse(argc, argv);
  settings.half = Half{static_cast<std::uint8_t>(precision)};
  kernels::set_num_threads(1);
  const auto world = dist::world();
  return world->size() > 1 ? run_processes(*world, settings) : run_all(settings);
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
