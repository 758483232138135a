// Shows what mixed precision costs and keeps: losses beside those of float32, the documented
// examples, and steps that all ranks skip together.
#include "accrue/accrue.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/dist/dist.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>

namespace accrue::bench {
namespace {

using train::MixedPrecision;

struct Mode {
  MixedPrecision precision;
  double tolerance;  ///< of what float32 gives
};
constexpr Mode kModes[] = {{MixedPrecision::bf16, 0.01}, {MixedPrecision::fp16, 0.005}};

constexpr std::int64_t kFeatures = 32, kClasses = 10, kWindow = 64;

/// Classes that a random linear map gives, one in ten replaced. `bad_sample` has values beyond
/// float16.
data::TensorDataset classified(std::uint64_t seed,
                               std::int64_t num_samples,
                               std::int64_t bad_sample = -1) {
  Generator generator(seed);
  Tensor x = Tensor::empty({num_samples, kFeatures}), map = Tensor::empty({kClasses, kFeatures});
  for (Tensor* tensor : {&x, &map})
    generator.normal({tensor->mutable_data<float>(), static_cast<std::size_t>(tensor->numel())});
  const Tensor scores = linear(x, map).value();
  Tensor labels = Tensor::empty({num_samples}, DType::int64);
  for (std::int64_t n = 0; n < num_samples; ++n) {
    const float* const row = scores.data<float>() + n * kClasses;
    labels.mutable_data<std::int64_t>()[n] =
        n % 10 == 0 ? generator.random() % kClasses : std::max_element(row, row + kClasses) - row;
  }
  if (bad_sample >= 0) x[bad_sample].fill(1e30);
  return data::TensorDataset({x, labels});
}

std::unique_ptr<nn::Sequential> mlp(std::uint64_t seed) {
  Generator generator(seed);
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Linear>(kFeatures, 128, true, generator);
  net->add<nn::ReLU>();
  net->add<nn::Linear>(128, 128, true, generator);
  net->add<nn::GELU>();
  net->add<nn::Linear>(128, kClasses, true, generator);
  return net;
}

/// The loss over all samples after `num_steps` steps of SGD, by the network as it was trained. 200
/// steps are two epochs: a loss that falls to zero by learning noise by heart compares with
/// nothing.
double final_loss(MixedPrecision precision, std::uint64_t seed, int num_steps) {
  const auto net = mlp(seed);
  optim::SGD sgd(net->named_parameters(), {.lr = 0.05, .momentum = 0.9});
  data::DataLoader batches(classified(seed, 100 * kWindow), {.batch_size = kWindow / 4});
  const auto alone = dist::self_group();
  train::Accelerator accelerator({.gradient_accumulation_steps = 4,
                                  .process_group = alone.get(),
                                  .mixed_precision = precision});
  auto [model, optimizer, loader] = accelerator.prepare(*net, sgd, batches);
  for (int step = 0; step < num_steps;) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
      accelerator.clip_grad_norm(net->named_parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
      if (accelerator.sync_gradients() && ++step == num_steps) break;
    }
  }
  train::Evaluation loss(accelerator);
  const NoGrad no_grad;
  for (const auto& batch : loader) loss.add(nn::cross_entropy(model(batch.inputs), batch.labels));
  return loss.mean();
}

/// Prints a row; returns whether the difference is within the mode's tolerance.
bool compare(const std::string& what, const Mode& mode, double single, double value) {
  const double difference = std::abs(value - single) / std::abs(single);
  const bool is_close = difference <= mode.tolerance;
  fmt::print("{:<34} {:<5} {:>12.6f} {:>12.6f} {:>8.3f} %  {}\n",
             what,
             name_of(mode.precision),
             single,
             value,
             100 * difference,
             is_close ? "ok" : fmt::format("MORE THAN {} %", 100 * mode.tolerance));
  return is_close;
}

int check_losses(int num_steps) {
  int num_missed = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double single = final_loss(MixedPrecision::no, seed, num_steps);
    for (const Mode& mode : kModes) {
      num_missed += !compare(fmt::format("MLP, seed {}: loss, {} steps", seed, num_steps),
                             mode,
                             single,
                             final_loss(mode.precision, seed, num_steps));
    }
  }
  return num_missed;
}

// ---- the documented examples ----

/// The weights that a program of this folder prints in hexadecimal, trained in `precision`.
std::vector<float> weights_of(const std::string& program, MixedPrecision precision) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string command = fmt::format(
      "ACCELERATE_MIXED_PRECISION={} '{}/{}' --hex", name_of(precision), folder.string(), program);
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::vector<float> weights;
  char line[4096];
  while (pipe && std::fgets(line, sizeof line, pipe)) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != "hex") continue;
    while (words >> word)
      weights.push_back(float_of(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16))));
  }
  if (!pipe || pclose(pipe) != 0 || weights.empty())
    throw ProgramEnd{kInternal, fmt::format("{} failed", program)};
  return weights;
}

int check_examples() {
  int num_missed = 0;
  for (const char* const program : {"docs_gradient_accumulation", "docs_causal_lm"}) {
    const std::vector<float> single = weights_of(program, MixedPrecision::no);
    for (const Mode& mode : kModes) {
      const std::vector<float> weights = weights_of(program, mode.precision);
      // Those with and without accumulation must agree in every bit.
      const std::size_t half = weights.size() / 2;
      const bool agree = std::equal(weights.begin(),
                                    weights.begin() + static_cast<long>(half),
                                    weights.begin() + static_cast<long>(half),
                                    weights.end());
      if (!agree) fmt::print("{} {}: weights DIFFER\n", program, name_of(mode.precision));
      num_missed += !agree;
      for (std::size_t i = 0; i < half; ++i) {
        num_missed += !compare(fmt::format("{} {}", program, i), mode, single.at(i), weights[i]);
      }
    }
  }
  return num_missed;
}

// ---- overflow on one rank ----

/// What a rank saw.
struct Course {
  std::string steps;  ///< a letter per window: s for a step, - for one that was skipped
  std::vector<double> scales;
  std::int64_t schedule_steps = 0;
  std::uint64_t hash = kHashSeed;

  bool operator==(const Course&) const = default;
};

/// The sample that overflows lies in the second window, on one rank.
Course train_with_overflow(dist::ProcessGroup& group) {
  const data::TensorDataset samples = classified(1, 10 * kWindow, 90);
  const auto net = mlp(1);
  optim::SGD sgd(net->named_parameters(), {.lr = 0.05});
  optim::LambdaLR decay(sgd, [](std::int64_t t) { return 1 / (1.0 + static_cast<double>(t)); });
  data::DataLoader batches(samples, {.batch_size = 8});
  train::Accelerator accelerator({.global_batch_size = kWindow,
                                  .process_group = &group,
                                  .mixed_precision = MixedPrecision::fp16});
  auto [model, optimizer, loader, scheduler] = accelerator.prepare(*net, sgd, batches, decay);
  Course course;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
    optimizer.step();
    scheduler.step();
    optimizer.zero_grad();
    if (!accelerator.sync_gradients()) continue;
    course.steps += accelerator.optimizer_step_was_skipped() ? '-' : 's';
    course.scales.push_back(accelerator.scaler()->scale());
    for (const Variable& p : net->parameters()) {
      const std::vector<float> values = p.value().to_vector<float>();
      course.hash = hash_bits(std::span(values), course.hash);
    }
  }
  course.schedule_steps = decay.last_step();
  return course;
}

int check_overflow() {
  int num_missed = 0;
  std::vector<Course> first;
  fmt::print("\nOverflow of one sample, fp16: windows (s: step, -: skipped), schedule, hash\n");
  for (const int size : {1, 2, 3, 4}) {
    std::vector<Course> courses(static_cast<std::size_t>(size));
    dist::run_ranks(size, [&](dist::ProcessGroup& group) {
      courses[static_cast<std::size_t>(group.rank())] = train_with_overflow(group);
    });
    first.push_back(courses[0]);
    for (const Course& course : courses) {
      const bool is_right = course == first[0] && course.steps == "s-ssssssss" &&
                            course.schedule_steps == 9 && course.scales.back() == 512;
      num_missed += !is_right;
    }
    const Course& course = courses[0];
    fmt::print("{} ranks  {}  schedule {}  scale {}  {}\n",
               size,
               course.steps,
               course.schedule_steps,
               course.scales.back(),
               hex16(course.hash));
  }
  return num_missed;
}

int run(int argc, char** argv) {
  std::int64_t num_steps = 200;
  Options options("Trains in bfloat16 and float16 and compares with float32.");
  options.integer("steps", num_steps, "of the MLP");
  options.parse(argc, argv);
  fmt::print("{:<34} {:<5} {:>12} {:>12} {:>10}\n", "", "", "float32", "mixed", "difference");
  const int num_missed =
      check_losses(static_cast<int>(num_steps)) + check_examples() + check_overflow();
  fmt::print("\n{} missed\n", num_missed);
  return num_missed == 0 ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
