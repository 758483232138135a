#include "accrue/optim/one_cycle.h"

#include "accrue/core/error.h"

#include <cmath>
#include <numbers>

namespace accrue::optim {
namespace {

void check_options(const OneCycleOptions& o) {
  constexpr const char* kName = "OneCycleLR";
  ACCRUE_CHECK(o.total >= 1, ValueError, kName, "total must be >= 1, got ", o.total);
  const double largest = o.three_phase ? 0.5 : 1.0;
  ACCRUE_CHECK(o.rise >= 0 && o.rise <= largest,
               ValueError,
               kName,
               "rise must lie in [0, ",
               largest,
               "], got ",
               o.rise);
  ACCRUE_CHECK(o.div > 0, ValueError, kName, "div must be > 0, got ", o.div);
  ACCRUE_CHECK(o.final_div > 0, ValueError, kName, "final_div must be > 0, got ", o.final_div);
  for (const double lr : o.max_lrs) check_option(kName, "max_lr", lr);
  check_decay(kName, "base_momentum", o.base_momentum);
  check_decay(kName, "max_momentum", o.max_momentum);
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleOptions options)
    : Schedule(optimizer), options_(std::move(options)) {
  check_options(options_);
  const auto groups = static_cast<std::size_t>(num_groups());
  if (options_.max_lrs.size() == 1) options_.max_lrs.resize(groups, options_.max_lrs[0]);
  ACCRUE_CHECK(options_.max_lrs.size() == groups,
               ValueError,
               "OneCycleLR",
               "one max_lr or one per group is needed, got ",
               options_.max_lrs.size(),
               " for ",
               groups,
               " groups");
  ACCRUE_CHECK(!options_.cycle_momentum || optimizer.has_momentum(),
               StateError,
               "OneCycleLR",
               "the optimizer must have a momentum, got none; set cycle_momentum to false");
  start();
}

OneCycleLR::Place OneCycleLR::place_of(std::int64_t t) const {
  ACCRUE_CHECK(t <= options_.total,
               ValueError,
               "OneCycleLR",
               "at most ",
               options_.total,
               " steps are scheduled, got step ",
               t);
  const auto total = static_cast<double>(options_.total), step = static_cast<double>(t);
  const double top = options_.rise * total - 1.0, end = total - 1.0;
  const auto place = [&](Corner from, double start, Corner to, double stop) {
    return Place{from, to, stop == start ? 1.0 : (step - start) / (stop - start)};
  };
  if (step <= top) return place(Corner::first, 0, Corner::top, top);
  if (!options_.three_phase) return place(Corner::top, top, Corner::last, end);
  const double back = 2.0 * options_.rise * total - 2.0;
  if (step <= back) return place(Corner::top, top, Corner::first, back);
  return place(Corner::first, back, Corner::last, end);
}

double OneCycleLR::between(double from, double to, double part) const {
  if (options_.anneal == Anneal::linear) return (to - from) * part + from;
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1.0);
}

double OneCycleLR::lr_of(Corner corner, int group) const {
  const double top = options_.max_lrs[static_cast<std::size_t>(group)];
  if (corner == Corner::top) return top;
  const double first = top / options_.div;
  return corner == Corner::first ? first : first / options_.final_div;
}

double OneCycleLR::lr_at(int group, std::int64_t t) const {
  const auto [from, to, part] = place_of(t);
  return between(lr_of(from, group), lr_of(to, group), part);
}

void OneCycleLR::moved_to(std::int64_t t) {
  if (!options_.cycle_momentum) return;
  const auto momentum_of = [&](Corner corner) {
    return corner == Corner::top ? options_.base_momentum : options_.max_momentum;
  };
  const auto [from, to, part] = place_of(t);
  const double momentum = between(momentum_of(from), momentum_of(to), part);
  for (int group = 0; group < num_groups(); ++group) optimizer().set_momentum(momentum, group);
}

}  // namespace accrue::optim
