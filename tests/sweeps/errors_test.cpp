// Every documented wrong call: the type of the error, its whole message, and inputs as before.
#include "accrue/autograd/leaf.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/op_case.h"

#include <cstdlib>
#include <map>
#include <optional>

using namespace accrue;
using namespace accrue::test;

namespace {

/// What must not change.
struct Snapshot {
  Tensor tensor, copy;
  std::uint64_t version = 0;

  explicit Snapshot(const Tensor& x) : tensor(x) {
    if (!x.defined()) return;
    copy = x.clone();
    version = x.version();
  }
  bool holds() const {
    return !tensor.defined() || (tensor.version() == version && equal_bits(tensor, copy));
  }
};

/// Values that are wrong show on a device when somebody waits for it.
void wait_for(const Variable& result) {
  if (!device_under_test().is_cpu()) result.value().to(Device::cpu());
}

/// Errors of values on a device name the operation, but no place.
void check_message(const std::string& got, const std::string& wanted) {
  const bool is_late = got.find(" on CUDA; results since are not valid") != std::string::npos;
  const std::string name = wanted.substr(1, wanted.find(']') - 1);
  if (is_late) {
    CHECK(got.find(name) != std::string::npos);
  } else {
    CHECK(got == wanted);
  }
}

void expect_error(const OpCase& op, const BadCall& bad) {
  std::vector<Variable> x;
  std::vector<Snapshot> snapshots;
  for (const Tensor& given : bad.inputs) {
    const Tensor input = there(given);
    snapshots.emplace_back(input);
    if (!input.defined() || !is_floating(input.dtype())) {
      x.emplace_back(input);
    } else if (!input.sample_axis().known()) {
      x.push_back(Variable::leaf(input));
    } else {
      x.push_back(Variable::leaf(input) * 1.0);  // a batch, behind a recorded operation
    }
  }
  Window window;
  std::optional<MicroBatch> micro_batch;
  if (bad.in_window) {
    window.begin({.lanes = {.nominal_size = 2, .count = 2}, .size = 2, .end_lane = 2});
    micro_batch.emplace(window, 0, 2);
  }
  try {
    wait_for((bad.call ? bad.call : op.function)(x));
    FAIL_CHECK("no error; wanted: " << bad.message);
  } catch (const Error& error) {
    check_message(error.what(), bad.message);
    CHECK(std::type_index(typeid(error)) == bad.type);
  }
  for (const Snapshot& snapshot : snapshots) CHECK(snapshot.holds());
  for (const Variable& variable : x) {
    if (variable.wanted_leaf()) CHECK(!variable.wanted_leaf()->has_grad());
  }
}

}  // namespace

TEST_CASE("sweeps.errors: wrong calls get a typed error with its message and change nothing") {
  int num_calls = 0;
  std::map<std::string, int> calls_of;
  for (const OpCase& op : op_cases()) {
    CAPTURE(op.name);
    for (const BadCall& bad : op.errors) {
      CAPTURE(bad.message);
      expect_error(op, bad);
      ++num_calls;
    }
    calls_of[op.name] = static_cast<int>(op.errors.size());
  }
  for (const char* name : {"linear with bias",
                           "matmul",
                           "mean of cross_entropy",
                           "mean of mse_loss",
                           "embedding",
                           "attention"}) {
    CHECK((calls_of[name] >= 10 || std::getenv("ACCRUE_OP")));
  }
  MESSAGE("wrong calls get a typed error with its whole message: " << num_calls);
}
