// Attention on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/kernels/attention.h"

#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

struct Case {
  Shape lead;
  std::int64_t t, s, d, e;
  bool causal;
};

Shape shape_of(Shape lead, std::int64_t rows, std::int64_t cols) {
  lead.push_back(rows);
  lead.push_back(cols);
  return lead;
}

/// Small numbers, and some that make weights of 0 and sums of -0.
Tensor numbers(const Shape& shape, Dice& dice) {
  Tensor values = Tensor::empty(shape);
  float* const out = values.mutable_data<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    out[i] = dice.once_in(30) ? 300 * dice.value() : dice.once_in(9) ? dice.tiny() : dice.value();
  }
  return values;
}

/// Operands and results of both directions.
struct Problem {
  Case size;
  DeviceTensor q, k, v, dy, y, dq, dk, dv;

  Problem(const Case& it, Layout layout, Dice& dice)
      : size(it),
        q(numbers(shape_of(it.lead, it.t, it.d), dice), layout),
        k(numbers(shape_of(it.lead, it.s, it.d), dice), layout),
        v(numbers(shape_of(it.lead, it.s, it.e), dice), layout),
        dy(numbers(shape_of(it.lead, it.t, it.e), dice), layout),
        y(DeviceTensor::unwritten(shape_of(it.lead, it.t, it.e))),
        dq(DeviceTensor::unwritten(shape_of(it.lead, it.t, it.d))),
        dk(DeviceTensor::unwritten(shape_of(it.lead, it.s, it.d))),
        dv(DeviceTensor::unwritten(shape_of(it.lead, it.s, it.e))) {
    run(&DeviceTensor::twin, [](const auto& args) { launch_cpu(args); });
  }

  template <class Launch>
  void run(Tensor DeviceTensor::*which, const Launch& launch) const {
    launch(AttentionForward{q.*which, k.*which, v.*which, size.causal, 0.3, y.*which});
    launch(AttentionBackward{q.*which,
                             k.*which,
                             v.*which,
                             size.causal,
                             0.3,
                             dy.*which,
                             dq.*which,
                             dk.*which,
                             dv.*which});
  }
  std::vector<Output> outputs() {
    return {y.output("y"), dq.output("dq"), dk.output("dk"), dv.output("dv")};
  }
  std::string examine_all() {
    return examine(outputs(), [&] {
      run(&DeviceTensor::tensor, [](const auto& args) { launch_cuda(args, {}); });
    });
  }
};

}  // namespace

TEST_CASE("cuda.attention: outputs and gradients have the CPU's bits, causal or not") {
  const Case cases[] = {{{}, 1, 1, 1, 1, true},
                        {{2}, 5, 5, 3, 2, true},
                        {{2}, 5, 7, 3, 2, false},
                        {{2, 3}, 20, 20, 8, 8, true},
                        {{1}, 64, 64, 16, 4, true},
                        {{2}, 65, 65, 5, 66, true},
                        {{1}, 130, 130, 4, 4, true},
                        {{2}, 66, 130, 17, 3, false},
                        {{2}, 3, 0, 4, 2, false},
                        {{2}, 0, 3, 4, 2, false},
                        {{0}, 3, 3, 4, 2, true}};
  Dice dice{std::mt19937(1)};
  int num_problems = 0;
  for (const Case& it : cases) {
    if ((kAddressSanitizer || kThreadSanitizer) && it.t > 65) continue;
    for (const Layout layout : {Layout::contiguous, Layout::transposed}) {
      Problem problem(it, layout, dice);
      CAPTURE(it.t);
      CAPTURE(it.s);
      CAPTURE(it.causal);
      CHECK(problem.examine_all() == "");
      ++num_problems;
    }
  }
  MESSAGE(num_problems, " problems under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.attention: keys behind a causal row are not read, whatever they hold") {
  Dice dice{std::mt19937(2)};
  Problem problem({{1}, 40, 40, 4, 4, true}, Layout::contiguous, dice);
  for (Tensor* const x : {&problem.q.tensor, &problem.k.tensor, &problem.v.tensor}) {
    float* const last = x->mutable_data<float>() + 39 * 4;
    std::fill_n(last, 4, std::numeric_limits<float>::quiet_NaN());
  }
  launch_cuda(
      AttentionForward{
          problem.q.tensor, problem.k.tensor, problem.v.tensor, true, 0.3, problem.y.tensor},
      {});
  const float *const got = problem.y.tensor.data<float>(), *const expected =
                                                               problem.y.twin.data<float>();
  for (std::int64_t i = 0; i < 39 * 4; ++i) CHECK(got[i] == expected[i]);
}

TEST_CASE("cuda.attention: gradients that are not wanted are not made") {
  Dice dice{std::mt19937(3)};
  Problem problem({{2}, 9, 9, 4, 3, true}, Layout::contiguous, dice);
  for (const int wanted : {1, 2, 4}) {
    AttentionBackward args{problem.q.tensor,
                           problem.k.tensor,
                           problem.v.tensor,
                           true,
                           0.3,
                           problem.dy.tensor,
                           {},
                           {},
                           {}};
    if (wanted == 1) args.dq = problem.dq.tensor;
    if (wanted == 2) args.dk = problem.dk.tensor;
    if (wanted == 4) args.dv = problem.dv.tensor;
    const Output output = wanted == 1   ? problem.dq.output("dq")
                          : wanted == 2 ? problem.dk.output("dk")
                                        : problem.dv.output("dv");
    CHECK(examine({output}, [&] { launch_cuda(args, {}); }) == "");
  }
}

TEST_CASE("cuda.attention: sequences too long for one workspace are cut into blocks of rows") {
  if (kAddressSanitizer || kThreadSanitizer) {
    MESSAGE("left out under sanitizers: 2,049 rows of 2,049 keys take minutes");
    return;
  }
  Dice dice{std::mt19937(4)};
  Problem problem({{1}, 2049, 2049, 1, 1, true}, Layout::contiguous, dice);
  problem.run(&DeviceTensor::tensor, [](const auto& args) { launch_cuda(args, {}); });
  for (const DeviceTensor* const it : {&problem.y, &problem.dq, &problem.dk, &problem.dv}) {
    const auto bits = [](const Tensor& x) {
      return hash_bits(std::span(x.data<float>(), static_cast<std::size_t>(x.numel())));
    };
    CHECK(bits(it->tensor) == bits(it->twin));
  }
}
