// The learning rates that a schedule runs through.
#pragma once

#include "accrue/optim/schedule.h"
#include "accrue/optim/sgd.h"
#include "accrue/tests/support/doctest.h"

#include <cmath>

namespace accrue::tests {

inline optim::SGD sgd_with(double lr) {
  return optim::SGD({Variable::leaf(Tensor::zeros({1}))}, {.lr = lr, .momentum = .9});
}

/// The rates of steps 0 to count - 1 of a schedule on the base rate 0.1.
template <class Make>
std::vector<double> rates_of(std::size_t count, const Make& make) {
  optim::SGD sgd = sgd_with(.1);
  auto schedule = make(sgd);
  std::vector<double> rates = {sgd.lr()};
  while (rates.size() < count) {
    schedule.step();
    CHECK(schedule.last_lrs() == std::vector<double>{sgd.lr()});
    rates.push_back(sgd.lr());
  }
  return rates;
}

/// Checks rates against expected ones that are written with ten digits.
template <class Make>
void check_ten_digits(const std::vector<double>& expected, const Make& make) {
  const std::vector<double> rates = rates_of(expected.size(), make);
  for (std::size_t t = 0; t < rates.size(); ++t) {
    CAPTURE(t);
    CAPTURE(rates[t]);
    CAPTURE(expected[t]);
    CHECK(std::abs(rates[t] - expected[t]) <= 1e-9 * expected[t]);
  }
}

/// Checks that a schedule saved in mid-course and loaded into another goes on in the same bits.
template <class Make>
void check_resumes(const Make& make) {
  optim::SGD sgd = sgd_with(.1), fresh = sgd_with(.7);
  auto schedule = make(sgd);
  for (int step = 0; step < 4; ++step) schedule.step();
  auto resumed = make(fresh);
  resumed.load_state(schedule.state());
  CHECK(fresh.lr() == sgd.lr());
  CHECK(fresh.momentum() == sgd.momentum());
  for (int step = 0; step < 5; ++step) {
    schedule.step();
    resumed.step();
    CHECK(fresh.lr() == sgd.lr());
    CHECK(fresh.momentum() == sgd.momentum());
  }
}

}  // namespace accrue::tests
