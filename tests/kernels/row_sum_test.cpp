// Row sums of any stride against the contract read literally.
#include "accrue/kernels/row_sum.h"

#include "accrue/core/bits.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/literal_sum.h"

#include <random>
#include <vector>

using namespace accrue;
using namespace accrue::kernels;

TEST_CASE_TEMPLATE("kernels.row_sum: rows, columns and repeats sum in one order",
                   T,
                   float,
                   double) {
  std::mt19937 engine(5);
  std::vector<T> data(300 * 1100);
  for (T& value : data) value = static_cast<T>(static_cast<double>(engine()) / 0x1p31 - 1);
  const Matrix<const T> whole = row_major<const T>(data.data(), 300, 1100);
  Matrix<const T> repeated = whole;
  repeated.col_stride = 0;
  int num_paths = 0;
  for (const auto& x : {whole, whole.transposed(), repeated}) {
    std::vector<T> expected;
    for (std::int64_t n = 0; n < x.rows; ++n) {
      expected.push_back(test::literal_sum<T>(x.cols, [&](std::int64_t c) { return x(n, c); }));
    }
    num_paths += test::for_each_cpu_path([&] {
      std::vector<T> sum(expected.size(), T(7));
      launch_cpu(RowSum<T>{x, sum.data()});
      CHECK(sum == expected);
    });
  }
  MESSAGE("swept 3 layouts, ", num_paths, " runs");
}

TEST_CASE("kernels.row_sum: empty rows sum to +0") {
  std::vector<float> sum(2, 7.0f);
  launch_cpu(RowSum<float>{{nullptr, 2, 0, 0, 1}, sum.data()});
  CHECK(hex8(sum[1]) == "00000000");
  launch_cpu(RowSum<float>{{nullptr, 0, 5, 5, 1}, nullptr});
}
