// Proves that every split of the batch gives the same bits, and that the proof has teeth.
//
// Each model is trained with every split of B into A micro-batches of b, on every CPU path. One
// hash covers gradients, loss and weights of every step. It must equal the hash of the scalar
// reference model, which knows no micro-batches, or, for a network too large to be written twice,
// that of all other splits. Then faults are put into the reference model: each
// must change the hash of some split.
#include "accrue/bench/support/invariance_cases.h"
#include "accrue/bench/support/invariance_networks.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace accrue::bench {
namespace {

using reference::Fault;
using reference::Half;
using reference::Training;

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

/// Two whole windows, and a last one that cuts a lane.
std::int64_t num_samples(std::int64_t global_batch_size) {
  return 2 * global_batch_size + 2 * global_batch_size / 3 + 1;
}

/// Every b that divides B.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t global_batch_size) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 1; b <= global_batch_size; ++b) {
    if (global_batch_size % b == 0) sizes.push_back(b);
  }
  return sizes;
}

std::uint64_t reference_hash(reference::Model model,
                             const std::vector<reference::Sample>& samples,
                             const Training& training) {
  return hash_of(reference::train(model, samples, training));
}

/// Who computes: vector instructions and threads of the CPU, or a device.
struct Path {
  kernels::Isa isa = kernels::best_isa();
  int threads = 1;
  Device device = {};

  std::string str() const {
    return device.is_cpu() ? fmt::format("{}, threads {}", name_of(isa), threads) : device.str();
  }
};

std::vector<Path> paths_on(Device device) {
  if (!device.is_cpu()) return {{.device = device}};
  std::vector<Path> paths;
  for (int isa = 0; isa <= static_cast<int>(kernels::best_isa()); ++isa) {
    for (const int threads : {1, 2}) paths.push_back({static_cast<kernels::Isa>(isa), threads});
  }
  return paths;
}

// ---- every split, every path ----

struct Count {
  int runs = 0;
  int differing = 0;  ///< from the hash of their row
};

/// What all runs of a row must give, and whose hash that is. Without a hash the first run gives it:
/// one sample after the other, by plain loops.
struct Expected {
  const char* relation = "all equal";
  std::optional<std::uint64_t> hash = std::nullopt;
};

/// Trains with every split on every path and prints a row of the table.
template <class Train>
void check_splits(const std::string& name,
                  Expected expected,
                  Training training,
                  const std::vector<Path>& paths,
                  const Train& train,
                  Count& total) {
  const std::vector<std::int64_t> sizes = micro_batch_sizes(training.global_batch_size);
  std::string differing;
  for (const Path& path : paths) {
    kernels::set_isa(path.isa);
    kernels::set_num_threads(path.threads);
    for (const std::int64_t b : sizes) {
      training.micro_batch_size = b;
      const std::uint64_t hash = hash_of(train(training, {.device = path.device}));
      if (!expected.hash) expected.hash = hash;
      ++total.runs;
      if (hash == *expected.hash) continue;
      ++total.differing;
      differing += fmt::format(
          "    {} x {}, {}: {}\n", training.global_batch_size / b, b, path.str(), hex16(hash));
    }
  }
  fmt::print("{:<14} {:>3} {:>5}   {:>2} splits x {} paths   {}  {}\n{}",
             name,
             training.global_batch_size,
             training.lanes,
             sizes.size(),
             paths.size(),
             hex16(*expected.hash),
             differing.empty() ? expected.relation : "DIFFERS",
             differing);
}

void check_models(const std::vector<InvarianceCase>& cases,
                  const std::vector<std::int64_t>& sizes,
                  const std::vector<int>& lanes,
                  const std::vector<Path>& paths,
                  Half half,
                  Count& total) {
  for (const InvarianceCase& whole : cases) {
    for (const std::int64_t global : sizes) {
      InvarianceCase start = whole;
      start.samples.resize(static_cast<std::size_t>(num_samples(global)));
      for (const int l : lanes) {
        const Training training = training_of(global, l, half);
        const auto train = [&](const Training& split, const train::AcceleratorOptions& options) {
          return train_by_library(start, split, options);
        };
        check_splits(start.name,
                     {"= reference", reference_hash(start.model, start.samples, training)},
                     training,
                     paths,
                     train,
                     total);
      }
    }
  }
}

/// The hash of the CPU, which takes whole windows.
template <class Train>
Expected by_cpu(const Train& train, Training training) {
  training.micro_batch_size = training.global_batch_size;
  return {"= CPU", hash_of(train(training, {}))};
}

void check_networks(const std::vector<std::int64_t>& sizes,
                    const std::vector<int>& lanes,
                    const std::vector<Path>& paths,
                    Half half,
                    Count& total) {
  for (const Network& network : networks(num_samples(96))) {
    for (const std::int64_t global : sizes) {
      const auto train = [&](const Training& split, const train::AcceleratorOptions& options) {
        return train_by_library(network, num_samples(global), split, options);
      };
      for (const int l : lanes) {
        const Training training = training_of(global, l, half);
        Expected expected;
        if (!paths.front().device.is_cpu()) expected = by_cpu(train, training);
        check_splits(network.name, expected, training, paths, train, total);
      }
    }
  }
}

// ---- teeth ----

struct Tooth {
  Fault fault;
  const char* name;
  bool needs_half = false;
};
constexpr Tooth kTeeth[] = {{Fault::add_finished_product, "finished product added"},
                            {Fault::scale_by_reciprocals, "scaled by 1/b * 1/A"},
                            {Fault::mean_of_means, "mean of means"},
                            {Fault::swap_lanes, "lanes swapped"},
                            {Fault::round_gradient, "sums rounded to half", true}};

struct Differences {
  int count = 0;     ///< splits whose bits differ from the right ones
  std::string cell;  ///< of the table, with the splits that do not differ
};

Differences differences(const Tooth& tooth,
                        const InvarianceCase& start,
                        std::int64_t global,
                        Half half) {
  Training training = training_of(global, 8, half);
  // Whole windows only, so that no fault is seen by its handling of a short one.
  const std::vector<reference::Sample> samples(start.samples.begin(),
                                               start.samples.begin() + 2 * global);
  const std::uint64_t right = reference_hash(start.model, samples, training);
  training.fault = tooth.fault;
  const std::vector<std::int64_t> sizes = micro_batch_sizes(global);
  Differences result;
  std::string equal;
  for (const std::int64_t b : sizes) {
    training.micro_batch_size = b;
    const bool differs = reference_hash(start.model, samples, training) != right;
    result.count += differs;
    if (!differs) equal += fmt::format(" {}x{}", global / b, b);
  }
  result.cell = fmt::format(
      "{:>2} of {:>2}{}", result.count, sizes.size(), equal.empty() ? "" : ", not" + equal);
  return result;
}

/// Prints which splits show each fault; returns the number of faults that none shows, for some
/// model and B. Powers of two scale exactly, so B = 16 is printed but owes nothing. A few products
/// of half precision add up exactly: there one model is enough.
int check_teeth(const InvarianceCase& layer,
                const InvarianceCase& tokens,
                const std::vector<std::int64_t>& sizes,
                Half half) {
  fmt::print(
      "\nSplits whose bits differ when the reference accumulates in a wrong way (8 lanes):\n\n"
      "{:<24} {:>3}   {:<34} {}\n",
      "fault",
      "B",
      layer.name,
      tokens.name);
  int num_unseen = 0;
  for (const Tooth& tooth : kTeeth) {
    if (tooth.needs_half && half == Half::none) continue;
    for (const std::int64_t global : sizes) {
      const Differences in_layer = differences(tooth, layer, global, half);
      const Differences in_tokens = differences(tooth, tokens, global, half);
      fmt::print("{:<24} {:>3}   {:<34} {}\n", tooth.name, global, in_layer.cell, in_tokens.cell);
      const bool in_both = in_layer.count > 0 && in_tokens.count > 0;
      const bool is_seen = half == Half::none ? in_both : in_layer.count + in_tokens.count > 0;
      num_unseen += global != 16 && !is_seen;
    }
  }
  return num_unseen;
}

int run(int argc, char** argv) {
  bool quick = false;
  std::size_t precision = 0, matmul = 0;
  Device device;
  Options options("Trains five models with every split of the batch and compares the bits.");
  options.flag("quick", quick, "only B = 24 with 8 lanes");
  options.choice("mixed_precision", precision, {"no", "bf16", "fp16"}, "what products take");
  options.device(device);
  options.choice(
      "matmul_precision", matmul, {"ieee", "tf32", "bf16"}, "on devices: the promise needs ieee");
  options.parse(argc, argv);
  set_matmul_precision(MatmulPrecision{static_cast<std::uint8_t>(matmul)});
  const Half half{static_cast<std::uint8_t>(precision)};
  const std::vector<Path> paths = paths_on(device);
  const std::vector<std::int64_t> sizes =
      quick ? std::vector<std::int64_t>{24} : std::vector<std::int64_t>{16, 24, 30, 96};
  const std::vector<int> lanes = quick ? std::vector<int>{8} : std::vector<int>{1, 8, 16};
  const std::vector<InvarianceCase> cases = invariance_cases(num_samples(96));

  fmt::print(
      "Each split of B samples into A x b, {}: hash of\n"
      "gradients, loss and weights of 6 steps with clipping, by SGD with momentum unless it says\n"
      "otherwise. The GPT has dropout.\n\n"
      "{:<14} {:>3} {:>5}   {:<22} {}\n",
      device.is_cpu() ? "on each CPU path with 1 and 2 threads" : "on " + device.str(),
      "model",
      "B",
      "lanes",
      "runs",
      "hash");
  Count total;
  check_models(cases, sizes, lanes, paths, half, total);
  check_networks(sizes, lanes, paths, half, total);
  const int num_unseen = check_teeth(cases[0], cases[2], sizes, half);
  fmt::print(
      "\n{} runs, {} differ; {} faults stay unseen\n", total.runs, total.differing, num_unseen);
  return total.differing == 0 && num_unseen == 0 ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
