// The linear kernels on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <algorithm>
#include <array>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

/// A matrix in device memory, in one of the layouts of Operand.
struct DeviceOperand {
  DeviceFloats storage;
  Matrix<float> view;

  explicit DeviceOperand(const Operand<>& host, std::size_t misalignment = 0)
      : storage(host.storage, misalignment), view(host.view) {
    view.data = storage.data() + (host.view.data - host.storage.data());
  }
};

std::vector<float> unwritten(std::int64_t count) {
  return DeviceFloats::unwritten(static_cast<std::size_t>(count));
}

struct Shape3 {
  std::int64_t m, n, k;
};

/// Every size at least once on each side of a border of tiles, of vectors and of stages.
std::vector<Shape3> shapes() {
  std::vector<Shape3> out = {{1, 1, 1},
                             {1, 65, 17},
                             {64, 64, 16},
                             {65, 63, 15},
                             {3, 130, 33},
                             {31, 5, 129},
                             {127, 4, 257},
                             {2, 3, 0}};
  if (!kThreadSanitizer) out.push_back({128, 129, 40});
  return out;
}

}  // namespace

TEST_CASE("cuda.linear: forward, input gradient and product have the CPU's bits") {
  Dice dice{std::mt19937(1)};
  std::int64_t outputs = 0;
  for (const auto& [m, n, k] : shapes()) {
    for (int layout = 0; layout < 4; ++layout) {
      const Operand<> a(m, k, layout, dice), b(k, n, (layout + 1) % 4, dice), bias(1, n, 0, dice);
      DeviceOperand device_a(a, layout % 2 * 4), device_b(b), device_bias(bias);
      DeviceFloats y(unwritten(m * n), layout / 2 * 8), dx(unwritten(m * n)), c(unwritten(m * n));
      std::array<std::vector<float>, 3> expected;
      for (auto& values : expected) values = unwritten(m * n);
      const auto out = [&, m = m, n = n](float* data) { return row_major(data, m, n); };
      launch_cpu(LinearForward<float>{
          a.view, b.view.transposed(), bias.view.data, out(expected[0].data())});
      launch_cpu(LinearInputGrad<float>{a.view, b.view, out(expected[1].data())});
      launch_cpu(Matmul<float>{a.view, b.view, out(expected[2].data())});
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(layout);
      const auto fault =
          examine({{"y", &y, expected[0]}, {"dx", &dx, expected[1]}, {"c", &c, expected[2]}}, [&] {
            launch_cuda(LinearForward<float>{device_a.view,
                                             device_b.view.transposed(),
                                             device_bias.view.data,
                                             out(y.data())},
                        {});
            launch_cuda(LinearInputGrad<float>{device_a.view, device_b.view, out(dx.data())}, {});
            launch_cuda(Matmul<float>{device_a.view, device_b.view, out(c.data())}, {});
          });
      CHECK(fault == "");
      outputs += 3 * m * n;
    }
  }
  MESSAGE((4 * shapes().size()),
          " shapes and layouts, ",
          outputs,
          " outputs under ",
          all_schedules().size(),
          " schedules");
}

namespace {

/// A chain that nothing closes: -0 stays -0, past dead rows too.
Program one_chain(std::int64_t rows) {
  return {{LaneInstruction::zero(), LaneInstruction::chain(0, rows), LaneInstruction::store(0)},
          1,
          0,
          {false}};
}

/// Runs a program as weight and bias gradient on both devices; "" if the bits agree.
std::string examine_gradients(
    const Program& program, const Operand<>& dy, const Operand<>& x, Dice& dice, bool tiny) {
  DeviceOperand device_dy(dy), device_x(x);
  const std::int64_t num_outputs = dy.view.cols, num_inputs = x.view.cols;
  std::vector<std::unique_ptr<DeviceFloats>> arrays;
  std::vector<std::vector<float>> expected;
  std::vector<float*> device[2], host[2];
  for (int i = 0; i < 2 * program.num_buffers; ++i) {
    std::vector<float> values = unwritten(num_outputs * (i % 2 == 0 ? num_inputs : 1));
    if (program.loaded[static_cast<std::size_t>(i / 2)]) {
      for (float& value : values) value = tiny ? dice.tiny() : dice.value();
    }
    expected.push_back(values);
    arrays.push_back(std::make_unique<DeviceFloats>(values));
    device[i % 2].push_back(arrays.back()->data());
  }
  for (int i = 0; i < 2 * program.num_buffers; ++i) {
    host[i % 2].push_back(expected[static_cast<std::size_t>(i)].data());
  }
  launch_cpu(LinearWeightGrad<float>{dy.view, x.view, program.view(), host[0]});
  launch_cpu(LinearBiasGrad<float>{dy.view, program.view(), host[1]});
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    outputs.push_back({i % 2 == 0 ? "weight buffer" : "bias buffer", arrays[i].get(), expected[i]});
  }
  return examine(outputs, [&] {
    launch_cuda(LinearWeightGrad<float>{device_dy.view, device_x.view, program.view(), device[0]},
                {});
    launch_cuda(LinearBiasGrad<float>{device_dy.view, program.view(), device[1]}, {});
  });
}

}  // namespace

TEST_CASE("cuda.linear: weight and bias gradients run lane programs with the CPU's bits") {
  Dice dice{std::mt19937(2)};
  const int num_cases = kAddressSanitizer || kThreadSanitizer ? 12 : 96;
  std::int64_t instructions = 0;
  for (int i = 0; i < num_cases; ++i) {
    const auto rows = dice.pick<std::int64_t>({0, 1, 7, 16, 40, 65, 130});
    const auto o = dice.pick<std::int64_t>({1, 3, 10, 64, 66}),
               in = dice.pick<std::int64_t>({1, 5, 64, 70});
    const bool tiny = dice.once_in(2);
    Operand<> dy(rows, o, i % 4, dice, tiny), x(rows, in, i / 4 % 4, dice, tiny);
    for (std::int64_t n = 0; n < rows; n += 3) {  // dead rows, infinities beside them
      for (std::int64_t c = 0; c < o; ++c) dy.view(n, c) = dice.once_in(2) ? 0.0f : -0.0f;
      x.view(n, 0) = std::numeric_limits<float>::infinity();
    }
    CAPTURE(i);
    const Program program = i % 3 == 0   ? random_program(rows, dice)
                            : i % 3 == 1 ? lane_tree({rows / 5, rows / 5, rows / 2, rows}, i % 2)
                                         : one_chain(rows);
    CHECK(examine_gradients(program, dy, x, dice, tiny) == "");
    instructions += std::ssize(program.instructions);
  }
  MESSAGE(num_cases,
          " programs, ",
          instructions,
          " instructions under ",
          all_schedules().size(),
          " schedules");
}

TEST_CASE("cuda.linear: the large tiles of products that fill a GPU have the CPU's bits") {
  if (kAddressSanitizer || kThreadSanitizer) {
    MESSAGE("left out under sanitizers: 132 tiles of 128 x 128 take minutes");
    return;
  }
  Dice dice{std::mt19937(3)};
  const Operand<> dy(20, 12 * 128 + 1, 0, dice), x(20, 11 * 128 + 3, 1, dice);
  CHECK(examine_gradients(lane_tree({4, 4, 10, 20}, false), dy, x, dice, false) == "");
}

TEST_CASE("cuda.linear: outputs behind the first 2^31 elements are right") {
  constexpr std::int64_t kRows = (std::int64_t{1} << 31) / 64 + 64;
  const simt::GuardedMemory x(kRows * 64 * 4, 0, simt::GuardedMemory::kWideFence);
  const simt::GuardedMemory y(kRows * 64 * 4, 0, simt::GuardedMemory::kWideFence);
  const auto rows = [](const simt::GuardedMemory& memory) {
    return row_major(reinterpret_cast<float*>(memory.data()), kRows, 64);
  };
  DeviceVector<float> w(64 * 64, 0.0f);
  for (std::size_t i = 0; i < 64; ++i) w[i * 65] = 2.0f;
  rows(x)(kRows - 1, 63) = 21.0f;
  simt::run_options() = {.block_begin = kRows / 64 - 1};
  launch_cuda(
      LinearForward<float>{rows(x), row_major<const float>(w.data(), 64, 64), nullptr, rows(y)},
      {});
  simt::run_options() = {};
  CHECK(rows(y)(kRows - 1, 63) == 42.0f);
  CHECK(rows(y)(kRows - 1, 62) == 0.0f);
}

TEST_CASE("cuda.linear: a product may have more columns than a grid's second dimension has tiles") {
  if (kAddressSanitizer || kThreadSanitizer) {
    MESSAGE("left out under sanitizers: 65,537 blocks take minutes");
    return;
  }
  const std::int64_t columns = std::int64_t{64} * 65536 + 1;
  DeviceFloats a({}), b({});
  DeviceFloats c(unwritten(columns));
  launch_cuda(Matmul<float>{row_major<const float>(a.data(), 1, 0),
                            row_major<const float>(b.data(), 0, columns),
                            row_major(c.data(), 1, columns)},
              {});
  CHECK(std::ranges::all_of(c.values(), [](float value) { return value == 0; }));
}
