// The fused linear layer and cross-entropy against both apart and against libtorch: bits, memory,
// time of forward and backward.
#include "accrue/accrue.h"
#include "accrue/autograd/engine.h"
#include "accrue/bench/op_peer.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fmt/format.h>

#include <cmath>

namespace accrue::bench {
namespace {

constexpr double kMostTime = 1.35, kMostMemory = 1.0 / 8;

struct Settings {
  std::string json = {};
  std::int64_t tokens = 2048, vocabulary = 50304, width = 256;
  std::int64_t threads = 2, pairs = 15;
};

struct Problem {
  Variable hidden, weight;
  Tensor labels;

  explicit Problem(const Settings& settings)
      : hidden(Variable::leaf(normal({settings.tokens, settings.width}, 1))),
        weight(Variable::leaf(normal({settings.vocabulary, settings.width}, 0.02))),
        labels(Tensor::empty({settings.tokens}, DType::int64)) {
    Generator(3).randint(
        {labels.mutable_data<std::int64_t>(), static_cast<std::size_t>(settings.tokens)},
        0,
        settings.vocabulary);
  }
  static Tensor normal(const Shape& shape, double std) {
    Tensor result = Tensor::empty(shape);
    nn::init::normal(result, 0, std);
    return result;
  }
  double logits_bytes() const {
    return 4.0 * static_cast<double>(labels.numel()) * static_cast<double>(weight.size(0));
  }
  double gradient_bytes() const { return 4.0 * static_cast<double>(weight.numel()); }
};

using LossOf = Loss (*)(const Problem&);

Loss fused(const Problem& p) { return nn::linear_cross_entropy(p.hidden, p.weight, {}, p.labels); }

Loss apart(const Problem& p) { return nn::cross_entropy(linear(p.hidden, p.weight), p.labels); }

/// Forward and backward of the mean. The results: row losses and both gradients.
std::vector<Tensor> train_once(Problem& p, LossOf loss_of) {
  p.hidden.zero_grad();
  p.weight.zero_grad();
  const Loss loss = loss_of(p);
  (loss.sum() / loss.weight().value()).backward();
  return {loss.rows().value(), p.hidden.grad(), p.weight.grad()};
}

/// Bytes that tensors take at most while `call` runs, beside those that are left when it returns:
/// operands, results and gradients.
template <class Call>
double extra_bytes(const Call& call) {
  reset_peak_cpu_memory();
  const auto results = call();
  const MemoryStats stats = cpu_memory_stats();
  return static_cast<double>(stats.peak_bytes - stats.allocated_bytes);
}

/// The same in a window of one micro-batch, whose lanes wait for each other.
double extra_bytes_in_window(Problem& p, int lanes) {
  const std::int64_t tokens = p.labels.numel();
  p.weight.zero_grad();
  Problem batch = p;
  batch.hidden = Variable(p.hidden.value().with_sample_axis({.dim = 0}));
  Window window;
  window.begin(
      {.lanes = {.nominal_size = tokens, .count = lanes}, .size = tokens, .end_lane = lanes});
  const double bytes = extra_bytes([&] {
    const MicroBatch scope(window, 0, tokens);
    const Variable rows = fused(batch).rows();
    Engine({}).run(rows, Tensor::ones({1}).expand({tokens}));
    return rows;
  });
  window.drop();
  return bytes;
}

bool agree(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= 1e-4f * (1e-3f + std::abs(y[i])))) return false;
  }
  return x.size() == y.size();
}

void check_bits_and_memory(Report& report, Problem& p) {
  const std::vector<Tensor> ours = train_once(p, fused), theirs = train_once(p, apart);
  bool same = true;
  for (std::size_t i = 0; i < ours.size(); ++i) same = same && equal_bits(ours[i], theirs[i]);
  report.require("the bits of both apart", same);
  const auto extra = [&](LossOf loss_of) {
    return extra_bytes([&] { return train_once(p, loss_of); });
  };
  const double limit = kMostMemory * 2 * p.logits_bytes();
  report.machine("extra bytes of both apart", fmt::format("{:.0f}", extra(apart)));
  report.limit("extra bytes", extra(fused), limit, "bytes");
  constexpr int kLanes = 8;
  report.limit("extra bytes, 8 lanes in one micro-batch",
               extra_bytes_in_window(p, kLanes),
               limit + std::log2(kLanes) * p.gradient_bytes(),
               "bytes");
}

int run(int argc, char** argv) {
  Settings settings;
  Options options("Measures linear_cross_entropy against both operations apart and libtorch.");
  options.file("json", settings.json, "write the figures there");
  options.integer("tokens", settings.tokens, "rows");
  options.integer("vocabulary", settings.vocabulary, "classes");
  options.integer("width", settings.width, "of the hidden rows");
  options.integer("threads", settings.threads, "of all sides", 1, 1024);
  options.integer("pairs", settings.pairs, "turns of each side; medians count", 1, 1000);
  options.parse(argc, argv);

  Report report;
  kernels::set_num_threads(static_cast<int>(settings.threads));
  report.machine("peer", "libtorch " + start_op_peer(static_cast<int>(settings.threads)));
  report.machine("threads", std::to_string(settings.threads));
  report.machine("kernels", name_of(kernels::current_isa()));

  manual_seed(1);
  Problem p(settings);
  check_bits_and_memory(report, p);

  const std::string name =
      fmt::format("{} x {} x {}", settings.tokens, settings.vocabulary, settings.width);
  const int pairs = static_cast<int>(settings.pairs);
  const Turn ours = rested(repeated([&] { train_once(p, fused); }), kernels::num_threads());
  const Turn ours_apart = repeated([&] { train_once(p, apart); });
  report.compare(name + ", both apart", time_in_turns(ours, ours_apart, pairs), 1 / kMostTime);
  const OpRun peer = peer_op(
      "linear_cross_entropy", {p.hidden.value(), p.weight.value(), p.labels}, Tensor::ones({}));
  const std::vector<Tensor> results = train_once(p, fused), wanted = peer.results();
  if (!agree(results[1], wanted[1]) || !agree(results[2], wanted[2]))
    throw ProgramEnd{kInternal, "gradients differ from the peer's"};
  report.compare(name + ", libtorch", time_in_turns(ours, repeated(peer.both), pairs));
  report.write(settings.json);
  return report.holds() ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  accrue::bench::require_environment(argv, "OMP_WAIT_POLICY", "passive");
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
