// Graphs and threads: passes that meet at a leaf, graphs that lose their names (edge cases 66, 67).
#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <atomic>
#include <string>
#include <thread>

using namespace accrue;
using accrue::test::There;

TEST_CASE("autograd.threads: two threads on one leaf wait or are refused, none is lost") {
  const Variable w = Variable::leaf(There::of<float>({1}));
  std::atomic<int> num_passes{0}, num_refused{0};
  const std::string refused =
      "[backward] a graph can be used by one backward pass at a time, got a second one at "
      "AccumulateGrad; wait for the first";
  const auto work = [&] {
    for (int i = 0; i < 2000; ++i) {
      try {
        (w * Variable(There::of<float>({1}))).backward();
        ++num_passes;
      } catch (const StateError& error) {
        num_refused += error.what() == refused;
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(num_passes + num_refused == 4000);
  CHECK(num_passes > 0);
  CHECK(w.grad().item<float>() == static_cast<float>(num_passes));
}

TEST_CASE("autograd.threads: a graph may lose its last name while another thread walks it") {
  for (int i = 0; i < 200; ++i) {
    const Variable x = Variable::leaf(There::of<float>({1}));
    Variable y = x;
    for (int n = 0; n < 50; ++n) y = neg(y);
    std::thread walker([y] { y.backward(); });
    y = Variable();
    walker.join();
    CHECK(x.grad().item<float>() == 1);
  }
}
