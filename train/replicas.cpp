#include "accrue/train/replicas.h"

#include "accrue/autograd/leaf.h"
#include "accrue/dist/caught_text.h"
#include "accrue/dist/same_lines.h"
#include "accrue/train/window_reduction.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace accrue::train {
namespace {

/// One line for each parameter, then for each buffer.
std::string layout_of(const nn::Module& model) {
  std::string layout;
  for (const auto& [name, parameter] : model.named_parameters())
    layout += text(name,
                   ' ',
                   parameter.shape(),
                   ' ',
                   parameter.dtype(),
                   parameter.requires_grad() ? "\n" : " frozen\n");
  for (const auto& [name, buffer] : model.named_buffers())
    layout += text("buffer ", name, ' ', buffer.shape(), ' ', buffer.dtype(), '\n');
  return layout;
}

}  // namespace

Replicas::Replicas(dist::ProcessGroup& group, const dist::BucketerOptions& options)
    : group_(group), options_(options) {}

Replicas::~Replicas() = default;

/// Gradients may be views of the buckets. Where a rank has no data it may have none of them.
void Replicas::check_free() {
  const bool is_free = std::ranges::none_of(parameters_, [](const auto& entry) {
    const Leaf& leaf = *entry.second.node()->as_leaf();
    return leaf.has_grad() || leaf.has_sums();
  });
  const std::vector<std::string> all = group_.all_gather_bytes(is_free ? "" : "some");
  const auto busy = std::ranges::find(all, "some");
  ACCRUE_CHECK(busy == all.end(),
               StateError,
               "prepare",
               "a further model must come where no gradients are alive, got some on rank ",
               busy - all.begin(),
               "; prepare models first, or after the step() and zero_grad() that end a window");
}

void Replicas::add(const nn::Module& model) {
  if (reduction_ || mean_) check_free();
  reduction_.reset();
  mean_.reset();
  for (const auto& entry : model.named_parameters()) {
    if (!has(entry.second)) parameters_.push_back(entry);
  }
  if (!are_several()) return;
  dist::check_same_lines(group_,
                         layout_of(model),
                         "prepare",
                         "all ranks must have the same model",
                         "build the model alike everywhere");
  for (Variable parameter : model.parameters()) group_.broadcast(parameter.mutable_value());
  for (auto& [name, buffer] : model.named_buffers()) {
    group_.broadcast(buffer);
    buffers_.push_back(buffer);
  }
}

bool Replicas::has(const Variable& parameter) const {
  return std::ranges::any_of(
      parameters_, [&](const auto& entry) { return entry.second.node() == parameter.node(); });
}

optim::ParameterList Replicas::all() const {
  optim::ParameterList all(parameters_);
  all.append(optimized_);
  return all;
}

std::string Replicas::name_of(const Leaf& leaf) const {
  const optim::ParameterList list = all();
  std::size_t i = 0;
  while (i < list.size() && list[i].node().get() != &leaf) ++i;
  return i < list.size() ? list.name(i) : "one that is not prepared";
}

optim::ParameterList Replicas::take_new_gradients() {
  const optim::ParameterList list = all();
  std::vector<optim::ParameterList::Entry> entries(list.begin(), list.end());
  std::erase_if(entries,
                [](auto& entry) { return !entry.second.node()->as_leaf()->take_is_new(); });
  return entries;
}

WindowReduction& Replicas::reduction() {
  if (!reduction_) reduction_ = std::make_unique<WindowReduction>(group_, parameters_, options_);
  return *reduction_;
}

RankMean& Replicas::mean() {
  if (mean_) return *mean_;
  const auto missing =
      std::ranges::count_if(optimized_, [&](const auto& entry) { return !has(entry.second); });
  ACCRUE_CHECK(missing == 0,
               StateError,
               "backward",
               "with several ranks all parameters must belong to a prepared model, got ",
               missing,
               " of optimizers that do not; pass their models to prepare()");
  return mean_.emplace(group_, parameters_);
}

void Replicas::broadcast_buffers() {
  for (Tensor& buffer : buffers_) group_.broadcast(buffer);
}

void Replicas::tell_caught() { mean().fail(dist::caught_text()); }

void Replicas::note(std::string_view deed, std::span<const double> numbers) {
  if (!reduction_) return;
  std::string line(deed);
  for (const double number : numbers) {
    std::array<char, 32> digits{};
    char* const end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    line.append(" ").append(digits.begin(), end);
  }
  reduction_->note(line);
}

}  // namespace accrue::train
