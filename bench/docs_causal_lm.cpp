// The documentation's autoregressive training: sequences of unequal length, a loss whose weight is
// the number of tokens in all micro-batches, and a clone that takes each window at once.
#include "accrue/accrue.h"
#include "accrue/bench/support/hex_line.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"

#include <fmt/format.h>

namespace accrue::bench {
namespace {

constexpr double kLearningRate = 0.08;

struct Settings {
  std::int64_t gradient_accumulation_steps = 0;
  std::int64_t per_device_batch_size = 4;
  std::int64_t global_batch_size = 0;
  std::int64_t num_samples = 0;
  std::int64_t lanes = 8;
  std::size_t dealing = 1;  ///< of data::Dealing: the documentation deals in turns
  bool compat = false;
  bool hex = false;
  Device device = {};
};

/// Sample i holds the tokens 1 .. i + 1; the label of a token is its parity.
class CountingTokens : public data::Dataset {
 public:
  explicit CountingTokens(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  data::Sample get(std::int64_t index) const override {
    Tensor tokens = Tensor::empty({index + 1}), labels = Tensor::empty({index + 1}, DType::int64);
    for (std::int64_t i = 0; i <= index; ++i) {
      tokens.mutable_data<float>()[i] = static_cast<float>(i + 1);
      labels.mutable_data<std::int64_t>()[i] = (i + 1) % 2;
    }
    return {.fields = {tokens, labels}};
  }

 private:
  std::int64_t size_;
};

data::Dealing dealing_of(const Settings& settings) {
  return data::Dealing{static_cast<std::uint8_t>(settings.dealing)};
}

data::DataLoader batches_of(const Settings& settings, std::int64_t batch_size) {
  return data::DataLoader(CountingTokens(settings.num_samples),
                          {.batch_size = batch_size, .collate = data::PadCollate{}});
}

std::string weight_of(const nn::Linear& model) {
  return model.weight().value().to(Device::cpu()).view({2}).str();
}

/// Each rank prints its own line, the main process the sum. Returns the sum.
double print_items(const train::ProcessState& ranks, std::int64_t step, double items) {
  fmt::print("Step {} - Device {} - num items in the local batch {}\n",
             step,
             ranks.process_index(),
             items);
  const double total = ranks.reduce(Tensor::full({1}, items, DType::float64)).item<double>();
  if (ranks.is_main_process()) fmt::print("Total num items {}\n", total);
  return total;
}

/// Tokens are counted on the way: the window is divided once, at its end. On all ranks, or on those
/// of `group`.
void train(nn::Linear& net,
           const Settings& settings,
           std::int64_t batch_size,
           bool print,
           dist::ProcessGroup* group = nullptr) {
  data::DataLoader batches = batches_of(settings, batch_size);
  optim::SGD sgd(net.parameters(), {.lr = kLearningRate});
  train::Accelerator accelerator({.global_batch_size = settings.global_batch_size,
                                  .lanes = static_cast<int>(settings.lanes),
                                  .dealing = dealing_of(settings),
                                  .device = settings.device,
                                  .process_group = group});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::int64_t step = 0;
  double items = 0;
  for (const auto& batch : loader) {
    auto scope = accelerator.accumulate(model);
    const Loss loss = nn::cross_entropy(model(batch.inputs.unsqueeze(-1)), batch.labels);
    items += loss.weight().value();
    accelerator.backward(loss);
    if (accelerator.sync_gradients() && print)
      print_items(accelerator, step++, std::exchange(items, 0));
    optimizer.step();
    optimizer.zero_grad();
  }
}

/// Upstream's way: the micro-batches of a step are loaded first, to count their tokens.
void train_as_upstream(nn::Linear& net, const Settings& settings) {
  const std::int64_t steps = settings.gradient_accumulation_steps;
  data::DataLoader batches = batches_of(settings, settings.per_device_batch_size);
  optim::SGD sgd(net.parameters(), {.lr = kLearningRate});
  train::Accelerator accelerator({.gradient_accumulation_steps = steps,
                                  .compat = train::Compat::accelerate(),
                                  .device = settings.device});
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::vector<data::Batch> group;
  std::int64_t step = 0, loaded = 0;
  for (const auto& batch : loader) {
    group.push_back(batch);
    if (++loaded % steps != 0 && loaded != loader.size()) continue;
    double items = 0;
    for (const auto& member : group) items += cross_entropy_weight(member.labels, {}).value();
    const double total = print_items(accelerator, step++, items);
    const auto pass = [&](const data::Batch& member) {
      const Variable logits = reshape(model(member.inputs.unsqueeze(-1)), {-1, 2});
      const Variable loss = cross_entropy(logits, member.labels.flatten(), {}, Reduction::sum);
      // backward() divides by the steps, and the mean over ranks by their number.
      accelerator.backward(loss * static_cast<double>(steps * accelerator.num_processes()) / total);
    };
    for (std::size_t i = 0; i + 1 < group.size(); ++i) {
      const auto local = accelerator.no_sync(model);
      pass(group[i]);
    }
    pass(group.back());
    optimizer.step();
    optimizer.zero_grad();
    group.clear();
  }
}

[[noreturn]] void refuse(const char* reason) { throw ProgramEnd{kConfiguration, reason}; }

/// Fills in what was not given, for `world_size` ranks.
void complete(Settings& s, int world_size) {
  if (s.compat && s.global_batch_size > 0) {
    refuse(
        "--compat counts micro-batches; give --gradient_accumulation_steps instead of "
        "--global_batch_size");
  }
  if (s.compat && (s.lanes != Settings().lanes || s.dealing != Settings().dealing)) {
    refuse("--compat sums in call order; leave out --lanes and --dealing");
  }
  if (s.gradient_accumulation_steps == 0 && s.global_batch_size == 0) {
    s.gradient_accumulation_steps = 2;
  }
  const std::int64_t product = world_size * s.gradient_accumulation_steps * s.per_device_batch_size;
  if (s.global_batch_size == 0) s.global_batch_size = product;
  if (product != 0 && product != s.global_batch_size) {
    refuse(
        "--global_batch_size must be processes * --gradient_accumulation_steps * "
        "--per_device_batch_size; leave one of them out");
  }
  if (s.num_samples == 0) s.num_samples = s.global_batch_size;
  // Throws for values that do not fit together, before anything is printed.
  (void)data::WindowPlan({.num_samples = s.num_samples,
                          .global_batch_size = s.global_batch_size,
                          .micro_batch_size = s.per_device_batch_size,
                          .lanes = static_cast<int>(s.lanes),
                          .world_size = world_size,
                          .dealing = dealing_of(s)});
}

Settings read_settings(int argc, char** argv, int world_size) {
  Settings s;
  Options options("Trains on padded sequences with and without gradient accumulation.");
  options.integer("gradient_accumulation_steps",
                  s.gradient_accumulation_steps,
                  "micro-batches per step; 2 unless --global_batch_size is given");
  options.integer("per_device_batch_size", s.per_device_batch_size, "samples per micro-batch");
  options.integer("global_batch_size", s.global_batch_size, "samples per step");
  options.integer("num_samples", s.num_samples, "size of the data set; by default one step");
  options.integer("lanes", s.lanes, "leaves of the reduction tree, a power of two");
  options.choice("dealing", s.dealing, {"contiguous", "round_robin"}, "who gets which samples");
  options.flag("compat", s.compat, "accumulate as Accelerate does, in call order");
  options.flag("hex", s.hex, "also print the bits of the final weights");
  options.device(s.device);
  options.parse(argc, argv);
  complete(s, world_size);
  return s;
}

int run(int argc, char** argv) {
  const train::ProcessState ranks;
  const Settings settings = read_settings(argc, argv, ranks.num_processes());
  const bool is_main = ranks.is_main_process();
  manual_seed(0);
  nn::Linear model(1, 2, false);
  nn::Linear clone(Variable::leaf(model.weight().value().clone()));
  if (is_main) {
    fmt::print("initial model weight is {}\n", weight_of(model));
    fmt::print("initial model clone weight is {}\n", weight_of(clone));
  }

  if (settings.compat) {
    train_as_upstream(model, settings);
  } else {
    train(model, settings, settings.per_device_batch_size, true);
  }
  const auto alone = dist::self_group();
  train(clone, settings, settings.global_batch_size, false, alone.get());

  fmt::print("Device {} - w/ accumulation, the final model weight is {}\n",
             ranks.process_index(),
             weight_of(model));
  if (settings.hex) print_hex_line(model.weight().value());
  if (is_main) {
    fmt::print("w/o accumulation, the final model weight is {}\n", weight_of(clone));
    if (settings.hex) print_hex_line(clone.weight().value());
  }
  return kDone;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
