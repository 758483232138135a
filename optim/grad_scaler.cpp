#include "accrue/optim/grad_scaler.h"

#include "accrue/autograd/ops/binary.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"
#include "accrue/optim/gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue::optim {
namespace {

constexpr const char* kName = "grad_scaler";

void check_scale(double scale) {
  ACCRUE_CHECK(
      scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max(),
      ValueError,
      kName,
      "scale must be positive and a normal float32, got ",
      scale);
}

GradScalerState checked(const GradScalerState& state) {
  check_scale(state.scale);
  ACCRUE_CHECK(std::isfinite(state.growth_factor) && state.growth_factor > 1,
               ValueError,
               kName,
               "growth_factor must be > 1 and finite, got ",
               state.growth_factor);
  ACCRUE_CHECK(state.backoff_factor > 0 && state.backoff_factor < 1,
               ValueError,
               kName,
               "backoff_factor must lie in (0, 1), got ",
               state.backoff_factor);
  ACCRUE_CHECK(state.growth_interval >= 1,
               ValueError,
               kName,
               "growth_interval must be >= 1, got ",
               state.growth_interval);
  ACCRUE_CHECK(state.growth_tracker >= 0 && state.growth_tracker < state.growth_interval,
               ValueError,
               kName,
               "growth_tracker must lie in [0, growth_interval = ",
               state.growth_interval,
               "), got ",
               state.growth_tracker);
  GradScalerState result = state;
  result.scale = static_cast<float>(state.scale);
  return result;
}

}  // namespace

bool unscale_gradients(const ParameterList& parameters, double scale) {
  const double inverse = static_cast<float>(1 / scale);
  std::vector<Gradient> gradients = writable(parameters, gradients_of(parameters));
  const bool overflowed = find_nonfinite(gradients).count > 0;
  for (Gradient& gradient : gradients) {
    Tensor& value = gradient.value;
    kernels::launch(value.device(),
                    kernels::ScalarForward{kernels::BinaryOp::mul, value, inverse, value});
  }
  return overflowed;
}

GradScaler::GradScaler(const GradScalerOptions& options)
    : enabled_(options.enabled),
      state_(checked({options.init_scale,
                      options.growth_factor,
                      options.backoff_factor,
                      options.growth_interval})) {}

Variable GradScaler::scale(const Variable& loss) const { return enabled_ ? loss * scale() : loss; }

GradScaler::Entry* GradScaler::find(const Optimizer& optimizer) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.optimizer == &optimizer;
  });
  return found == entries_.end() ? nullptr : &*found;
}

void GradScaler::unscale(Optimizer& optimizer) {
  if (!enabled_) return;
  const Entry* const entry = find(optimizer);
  ACCRUE_CHECK(!entry,
               StateError,
               kName,
               "gradients can be unscaled once, got a call after ",
               entry->stepped ? "step()" : "unscale()",
               "; call update() at the end of each iteration");
  const bool has_gradient =
      std::any_of(optimizer.parameters().begin(), optimizer.parameters().end(), [](const auto& p) {
        return p.second.requires_grad() && p.second.grad().defined();
      });
  ACCRUE_CHECK(has_gradient,
               StateError,
               kName,
               "a parameter must have a gradient, got none; call scale(loss).backward() first");
  entries_.push_back({&optimizer, unscale_gradients(optimizer.parameters(), scale())});
}

bool GradScaler::step(Optimizer& optimizer) {
  if (enabled_ && !find(optimizer)) unscale(optimizer);
  Entry* const entry = find(optimizer);
  ACCRUE_CHECK(!entry || !entry->stepped,
               StateError,
               kName,
               "an optimizer can step once, got a second call; call update() at the end of each "
               "iteration");
  const bool steps = !entry || !entry->overflowed;
  if (steps) optimizer.step();
  if (entry) entry->stepped = true;
  return steps;
}

void GradScaler::update() {
  if (!enabled_) return;
  ACCRUE_CHECK(!entries_.empty(),
               StateError,
               kName,
               "gradients must be looked at before update(), got none; call step(optimizer) first");
  update(std::any_of(
      entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.overflowed; }));
}

void GradScaler::update(bool overflowed) {
  if (!enabled_) return;
  entries_.clear();
  auto& [scale, growth, backoff, interval, tracker] = state_;
  if (overflowed) {
    // Down to the smallest normal number: a scale of 0 would have no reciprocal.
    const float lower = static_cast<float>(scale * backoff);
    scale = std::max(lower, std::numeric_limits<float>::min());
    tracker = 0;
  } else if (++tracker == interval) {
    const float higher = static_cast<float>(scale * growth);
    if (std::isfinite(higher)) scale = higher;
    tracker = 0;
  }
}

void GradScaler::set_scale(double scale) {
  check_scale(scale);
  state_.scale = static_cast<float>(scale);
}

void GradScaler::load_state(const GradScalerState& state) {
  if (!enabled_) return;
  ACCRUE_CHECK(state.scale != 0,
               ValueError,
               kName,
               "the state must be of an enabled scaler, got one of a run without fp16; train with "
               "the mixed_precision of that run, or leave the scaler's state out");
  state_ = checked(state);
  entries_.clear();
}

}  // namespace accrue::optim
