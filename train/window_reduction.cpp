#include "accrue/train/window_reduction.h"

#include "accrue/autograd/leaf.h"
#include "accrue/dist/caught_text.h"
#include "accrue/train/bucket_parameters.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace accrue::train {
namespace {

std::string bytes_of(const LossWeight& weight) {
  std::vector<std::int64_t> numbers = {weight.count(), std::ssize(weight.class_counts())};
  for (const std::int64_t count : weight.class_counts()) numbers.push_back(count);
  for (const double w : weight.class_weights()) numbers.push_back(std::bit_cast<std::int64_t>(w));
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)};
}

LossWeight weight_of(const std::string& bytes) {
  std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  const auto num_classes = numbers.at(1);
  if (num_classes == 0) return LossWeight(numbers[0]);
  const auto counts = numbers.begin() + 2, weights = counts + num_classes;
  std::vector<double> class_weights;
  std::transform(weights, numbers.end(), std::back_inserter(class_weights), [](std::int64_t w) {
    return std::bit_cast<double>(w);
  });
  return LossWeight({counts, weights}, class_weights);
}

constexpr std::size_t kSeedBytes = 1 + sizeof(std::uint64_t);

/// What ranks must have alike: a mark and the seed, where random numbers were drawn, then a digit
/// for each parameter, 0 where it is frozen.
std::string terms_of(const Window& window, std::span<const Variable> parameters) {
  const std::uint64_t seed = window.has_draws() ? window.seed() : 0;
  std::string terms(kSeedBytes, window.has_draws() ? '1' : '0');
  std::memcpy(terms.data() + 1, &seed, sizeof(seed));
  for (const Variable& parameter : parameters) terms += parameter.requires_grad() ? '1' : '0';
  return terms;
}

std::uint64_t seed_of(const std::string& terms) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, terms.data() + 1, sizeof(seed));
  return seed;
}

/// Of all ranks. Errors: MismatchError with the first difference.
void check_terms(std::span<const std::string> terms) {
  const std::string* drawn = nullptr;  // the first that drew
  for (std::size_t rank = 0; rank < terms.size(); ++rank) {
    const std::string& mine = terms[rank];
    for (std::size_t i = kSeedBytes; i < mine.size(); ++i) {
      ACCRUE_CHECK(mine[i] == terms[0][i],
                   MismatchError,
                   "window",
                   "all ranks must train the same parameters, got parameter ",
                   i - kSeedBytes,
                   " of the prepared models with requires_grad ",
                   terms[0][i],
                   " on rank 0 and ",
                   mine[i],
                   " on rank ",
                   rank,
                   "; call set_requires_grad alike everywhere");
    }
    if (mine[0] == '0') continue;
    if (!drawn) drawn = &mine;
    ACCRUE_CHECK(seed_of(mine) == seed_of(*drawn),
                 MismatchError,
                 "window",
                 "all ranks must draw the same random numbers, got seed ",
                 seed_of(*drawn),
                 " on rank ",
                 drawn - terms.data(),
                 " and ",
                 seed_of(mine),
                 " on rank ",
                 rank,
                 "; call manual_seed with the same seed on every rank");
  }
}

/// The weight of all ranks, each told after a number, the size of its terms, and these.
double total_weight(std::span<const std::string> told) {
  LossWeight total;
  std::vector<std::string> terms;
  for (const std::string& bytes : told) {
    std::size_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof(size));
    terms.push_back(bytes.substr(sizeof(size), size));
    total.add(weight_of(bytes.substr(sizeof(size) + size)));
  }
  check_terms(terms);
  return total.value();
}

}  // namespace

WindowReduction::WindowReduction(dist::ProcessGroup& group,
                                 const nn::NamedParameters& parameters,
                                 const dist::BucketerOptions& options)
    : bucketer_(group, bucket_parameters(parameters), &total_weight, options) {
  for (const auto& [name, parameter] : parameters) {
    numbers_.emplace(parameter.node()->as_leaf(), parameters_.size());
    parameters_.push_back(parameter);
  }
}

void WindowReduction::begin(LoaderPass& pass, const LossWeight& weight) {
  const std::string terms = terms_of(pass.window, parameters_);
  const std::size_t size = terms.size();
  std::string told(reinterpret_cast<const char*>(&size), sizeof(size));
  bucketer_.begin(pass.window.number(), told + terms + bytes_of(weight));
  pass.window.observe(this);
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

WindowTotals WindowReduction::finish(LoaderPass& pass) {
  if (!bucketer_.is_open()) begin(pass, pass.weight);
  dist::NodeSum loss;
  try {
    hand_over_rest(pass.window);
    loss = {pass.loss.close(), Tensor::empty({1}, pass.loss.dtype())};
  } catch (...) {
    fail(pass, dist::caught_text());
    throw;
  }
  const bool has_hooks = std::any_of(parameters_.begin(), parameters_.end(), [](const auto& p) {
    return p.node()->as_leaf()->has_final_hooks();
  });
  const double weight = bucketer_.finish(std::span(&loss, 1), has_hooks);
  if (weight == 0) {
    pass.window.drop();
    return {};
  }
  publish(pass.window);
  const DType dtype = loss.sum.dtype();
  const double sum =
      visit_floating(dtype, "loss", [&]<class T>(T) -> double { return loss.sum.item<T>(); });
  return {weight, sum, dtype};
}

/// Hooks run here: where one throws, no rank may step.
void WindowReduction::publish(Window& window) {
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < parameters_.size(); ++i) gradients.push_back(bucketer_.gradient(i));
  bucketer_.confirm_after([&] { window.publish(parameters_, gradients); });
}

void WindowReduction::fail(LoaderPass& pass, const std::string& reason) noexcept {
  bucketer_.give_up(pass.window.number(), reason);
  pass.window.observe(nullptr);
}

}  // namespace accrue::train
