// Embedding on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/fault.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/kernels/lane_reference.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <memory>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

std::vector<float> unwritten(std::int64_t count) {
  return DeviceFloats::unwritten(static_cast<std::size_t>(count));
}

/// Rows of dy with an index each: some rows are zero, some indices never come, one comes often.
struct Problem {
  std::int64_t rows, width, table;
  bool has_padding;
  DeviceVector<std::int64_t> indices;
  Operand<> dy;

  Problem(
      std::int64_t num_rows, std::int64_t num_cols, std::int64_t num_table, bool pads, Dice& dice)
      : rows(num_rows),
        width(num_cols),
        table(num_table),
        has_padding(pads),
        dy(num_rows, num_cols, 0, dice) {
    const std::int64_t often = dice.below(table);
    for (std::int64_t n = 0; n < rows; ++n) {
      indices.push_back(dice.once_in(3) ? often : dice.below(table));
      for (std::int64_t e = 0; n % 5 == 2 && e < width; ++e) dy.view(n, e) = e % 2 ? 0.0f : -0.0f;
    }
  }

  EmbeddingGrad<float> gradient(const float* from,
                                const Program& program,
                                const std::vector<float*>& buffers) const {
    return {row_major(from, rows, width),
            indices.data(),
            table,
            has_padding ? indices[0] : -1,
            program.view(),
            buffers};
  }
};

/// Runs a program on both devices; "" if the bits agree.
std::string examine_gradient(const Problem& p, const Program& program, Dice& dice) {
  DeviceFloats dy(p.dy.storage);
  std::vector<std::vector<float>> expected;
  std::vector<std::unique_ptr<DeviceFloats>> arrays;
  std::vector<float*> device, host;
  for (int i = 0; i < program.num_buffers; ++i) {
    std::vector<float> values = unwritten(p.table * p.width);
    if (program.loaded[static_cast<std::size_t>(i)]) {
      for (float& value : values) value = dice.value();
    }
    expected.push_back(values);
    arrays.push_back(std::make_unique<DeviceFloats>(values));
    device.push_back(arrays.back()->data());
  }
  for (auto& values : expected) host.push_back(values.data());
  launch_cpu(p.gradient(p.dy.storage.data(), program, host));
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    outputs.push_back({"buffer", arrays[i].get(), expected[i]});
  }
  return examine(outputs, [&] { launch_cuda(p.gradient(dy.data(), program, device), {}); });
}

}  // namespace

TEST_CASE("cuda.embedding: rows of the table are copied, aligned or not") {
  Dice dice{std::mt19937(1)};
  for (const std::int64_t width : {1, 3, 4, 33, 128, 1030}) {
    const std::int64_t rows = width > 1000 ? 2 : 21, table = 9;
    const Operand<> host(table, width, 0, dice);
    DeviceVector<std::int64_t> indices;
    for (std::int64_t n = 0; n < rows; ++n) indices.push_back(dice.below(table));
    std::vector<float> expected = unwritten(rows * width);
    launch_cpu(EmbeddingForward<float>{
        host.view, indices.data(), row_major(expected.data(), rows, width)});
    DeviceFloats device(host.storage, 4 * (width % 4)), y(unwritten(rows * width));
    CAPTURE(width);
    CHECK(examine({{"y", &y, expected}}, [&] {
            launch_cuda(EmbeddingForward<float>{row_major<const float>(device.data(), table, width),
                                                indices.data(),
                                                row_major(y.data(), rows, width)},
                        {});
          }) == "");
  }
}

TEST_CASE("cuda.embedding: the table's gradient runs lane programs with the CPU's bits") {
  Dice dice{std::mt19937(2)};
  const int num_cases = kAddressSanitizer || kThreadSanitizer ? 8 : 40;
  for (int i = 0; i < num_cases; ++i) {
    const auto rows = dice.pick<std::int64_t>({1, 7, 40, 255, 257, 700});
    const auto width = dice.pick<std::int64_t>({1, 5, 32, 70});
    const auto table = dice.pick<std::int64_t>({1, 3, 30, 255, 300});
    const Problem p(rows, width, table, dice.once_in(3), dice);
    const Program program = i % 2 == 0
                                ? random_program(rows, dice)
                                : lane_tree({rows / 5, rows / 5, rows / 2, rows}, i % 4 == 1);
    CAPTURE(i);
    CHECK(examine_gradient(p, program, dice) == "");
  }
  MESSAGE(num_cases, " programs under ", all_schedules().size(), " schedules");
}

TEST_CASE("cuda.embedding: tables whose numbers need three bytes are sorted whole") {
  Dice dice{std::mt19937(3)};
  const Problem p(300, 1, 70000, false, dice);
  CHECK(examine_gradient(p, lane_tree({100, 300}, false), dice) == "");
}

TEST_CASE("cuda.embedding: rows wider than a warp takes have the CPU's bits") {
  Dice dice{std::mt19937(5)};
  const Problem p(12, 1030, 3, true, dice);
  CHECK(examine_gradient(p, lane_tree({5, 12}, false), dice) == "");
}

TEST_CASE("cuda.embedding: no rows give what the program makes of nothing") {
  Dice dice{std::mt19937(4)};
  Problem p(1, 3, 4, false, dice);
  p.rows = 0;
  CHECK(examine_gradient(p, lane_tree({0, 0}, false), dice) == "");
}

TEST_CASE("cuda.embedding: an index outside the table is noted and reads nothing") {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{4}, INT64_MAX, INT64_MIN}) {
    const DeviceVector<std::int64_t> indices = {2, bad, 1};
    DeviceFloats table({0, 1, 2, 3}), y(unwritten(3)), dy({1, 2, 4}), gradient(unwritten(4));
    std::vector<float*> buffers = {gradient.data()};
    DeviceVector<int> fault(1);
    const cuda::Stream stream{nullptr, fault.data()};
    launch_cuda(
        EmbeddingForward<float>{
            row_major<const float>(table.data(), 4, 1), indices.data(), row_major(y.data(), 3, 1)},
        stream);
    CHECK_THROWS_AS(cuda::throw_fault(fault[0]), IndexError);
    CHECK(y.values()[0] == 2);
    CHECK(std::isnan(y.values()[1]));
    fault[0] = 0;
    const Program program = lane_tree({3}, false);
    launch_cuda(EmbeddingGrad<float>{row_major<const float>(dy.data(), 3, 1),
                                     indices.data(),
                                     4,
                                     -1,
                                     program.view(),
                                     buffers},
                stream);
    CHECK_THROWS_AS(cuda::throw_fault(fault[0]), IndexError);
    CHECK(gradient.values() == std::vector<float>{0, 4, 1, 0});
    launch_cuda(
        EmbeddingForward<float>{
            row_major<const float>(table.data(), 4, 1), indices.data(), row_major(y.data(), 3, 1)},
        {});
    CHECK(y.values()[2] == 1);
  }
  CHECK_NOTHROW(cuda::throw_fault(0));
}

TEST_CASE("cuda.embedding: elements behind the first 2^31 are read") {
  constexpr std::int64_t kWidth = 1 << 16, kTable = (1 << 15) + 2;
  const simt::GuardedMemory memory(kTable * kWidth * 4, 0, simt::GuardedMemory::kWideFence);
  float* const table = reinterpret_cast<float*>(memory.data());
  table[kTable * kWidth - 1] = 5;
  const DeviceVector<std::int64_t> indices = {kTable - 1, 0};
  DeviceVector<float> y(2 * kWidth);
  launch_cuda(EmbeddingForward<float>{row_major<const float>(table, kTable, kWidth),
                                      indices.data(),
                                      row_major(y.data(), 2, kWidth)},
              {});
  CHECK(y[kWidth - 1] == 5);
  CHECK(y.back() == 0);
  const Matrix<const float> dy{table, 2, 1, kTable * kWidth - 1, 1};
  const DeviceVector<std::int64_t> rows = {0, 1};
  DeviceFloats gradient(unwritten(3));
  float* const buffers[] = {gradient.data()};
  const Program program = lane_tree({2}, false);
  launch_cuda(EmbeddingGrad<float>{dy, rows.data(), 3, -1, program.view(), buffers}, {});
  CHECK(gradient.values() == std::vector<float>{0, 5, 0});
}
