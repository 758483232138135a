#include "accrue/train/window_reduction.h"

#include "accrue/autograd/leaf.h"
#include "accrue/dist/caught_text.h"
#include "accrue/train/rank_mean.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accrue::train {

namespace {

/// What ranks tell each other, a line for each of kRules. An empty line agrees with all others.
constexpr std::size_t kNumRules = 3;
using Lines = std::array<std::string, kNumRules>;
constexpr std::array<std::array<const char*, 2>, kNumRules> kRules = {
    {{"draw the same random numbers", "; call manual_seed with the same seed on every rank"},
     {"train the same parameters", "; call set_requires_grad alike everywhere"},
     {"clip and step alike", "; call the same with the same values on every rank"}}};

std::string take_line(std::string_view& bytes) {
  std::string line(bytes.substr(0, bytes.find('\n')));
  bytes.remove_prefix(line.size() + 1);
  return line;
}

/// Of all ranks. Errors: MismatchError with the first difference.
void check_rules(std::span<const Lines> told) {
  for (std::size_t rule = 0; rule < kNumRules; ++rule) {
    std::size_t first = 0;
    while (first + 1 < told.size() && told[first][rule].empty()) ++first;
    for (std::size_t rank = first + 1; rank < told.size(); ++rank) {
      const std::string& mine = told[rank][rule];
      if (mine.empty() || mine == told[first][rule]) continue;
      const auto& [must, advice] = kRules[rule];
      const std::string ranks = text(" on rank ", first, " and ", mine, " on rank ", rank);
      throw MismatchError(
          text("[window] all ranks must ", must, ", got ", told[first][rule], ranks, advice));
    }
  }
}

/// The weight of all ranks, each told after its lines.
double total_weight(std::span<const std::string> told) {
  LossWeight total;
  std::vector<Lines> lines;
  for (std::string_view rest : told) {
    for (std::string& line : lines.emplace_back()) line = take_line(rest);
    total.add(LossWeight::from_bytes(rest));
  }
  check_rules(lines);
  return total.value();
}

}  // namespace

WindowReduction::WindowReduction(dist::ProcessGroup& group,
                                 const nn::NamedParameters& parameters,
                                 const dist::BucketerOptions& options)
    : parameters_(parameters),
      bucketer_(group, bucket_parameters(parameters), &total_weight, options) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    numbers_.emplace(parameters[i].second.node()->as_leaf(), i);
}

void WindowReduction::begin(Window& window, const LossWeight& weight) {
  std::string frozen;
  for (const auto& [name, parameter] : parameters_) {
    if (!parameter.requires_grad()) frozen += ' ' + name;
  }
  std::string told = window.has_draws() ? text("seed ", window.seed()) : "";
  told += frozen.empty() ? "\nnone frozen" : "\nfrozen" + frozen;
  told +=
      '\n' + (deeds_.empty() ? "nothing done" : std::exchange(deeds_, {})) + '\n' + weight.bytes();
  bucketer_.begin(window.number(), std::move(told));
  window.observe(this);
}

void WindowReduction::complete(Leaf& leaf) {
  const auto found = numbers_.find(&leaf);
  if (found != numbers_.end()) bucketer_.ready(found->second, leaf.close());
}

/// Parameters that the last backward pass did not complete.
void WindowReduction::hand_over_rest(const Window& window) {
  int num_unknown = 0;
  for (const Ref<Leaf>& leaf : window.leaves()) {
    const auto found = numbers_.find(leaf.get());
    num_unknown += found == numbers_.end();
    if (found != numbers_.end() && !bucketer_.is_ready(found->second)) complete(*leaf);
  }
  ACCRUE_CHECK(num_unknown == 0,
               StateError,
               "window",
               "with several ranks all parameters must belong to a prepared model, got ",
               num_unknown,
               " that do not; pass their models to prepare()");
}

WindowTotals WindowReduction::finish(Window& window, const LossWeight& weight, WindowSum& loss) {
  if (!bucketer_.is_open()) begin(window, weight);
  dist::NodeSum total;
  try {
    hand_over_rest(window);
    total = {loss.close(), Tensor::empty({1}, loss.dtype())};
  } catch (...) {
    fail(window, dist::caught_text());
    throw;
  }
  const double divisor = bucketer_.finish(std::span(&total, 1), have_final_hooks(parameters_));
  if (divisor == 0) {
    window.drop();
    return {};
  }
  publish(window);
  const DType dtype = total.sum.dtype();
  const double sum =
      visit_floating(dtype, "loss", [&]<class T>(T) -> double { return total.sum.item<T>(); });
  return {divisor, sum, dtype};
}

/// Hooks run here: where one throws, no rank may step.
void WindowReduction::publish(Window& window) {
  std::vector<Variable> parameters;
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) {
    gradients.push_back(bucketer_.gradient(parameters.size()));
    parameters.push_back(parameter);
  }
  bucketer_.confirm_after([&] { window.publish(parameters, gradients); });
}

void WindowReduction::fail(Window& window, const std::string& reason) noexcept {
  deeds_.clear();
  bucketer_.give_up(window.number(), reason);
  window.observe(nullptr);
}

}  // namespace accrue::train
