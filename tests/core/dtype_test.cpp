// Element types: sizes, names, and the way from a DType to a C++ type and back.
#include "accrue/core/dtype.h"

#include "accrue/tests/support/doctest.h"

#include <string>
#include <utility>
#include <vector>

using accrue::DType;

TEST_CASE("core.dtype: names and sizes are those of torch") {
  const std::vector<std::pair<std::string, std::int64_t>> expected = {{"float32", 4},
                                                                      {"float64", 8},
                                                                      {"int64", 8},
                                                                      {"int32", 4},
                                                                      {"uint8", 1},
                                                                      {"bool", 1},
                                                                      {"bfloat16", 2},
                                                                      {"float16", 2}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK(accrue::name_of(dtype) == expected[i].first);
    CHECK(accrue::size_of(dtype) == expected[i].second);
    CHECK(accrue::text(dtype) == expected[i].first);
    CHECK(accrue::is_floating(dtype) == (i < 2));
  }
}

TEST_CASE("core.dtype: visit_dtype hands over the element type of the dtype") {
  for (int i = 0; i < 8; ++i) {
    const auto dtype = static_cast<DType>(i);
    accrue::visit_dtype(dtype, [&]<class T>(T zero) {
      CHECK(zero == T{});
      CHECK(accrue::dtype_of<T> == dtype);
      CHECK(static_cast<std::int64_t>(sizeof(T)) == accrue::size_of(dtype));
    });
  }
}

TEST_CASE("core.dtype: visit_floating refuses integers and stored halves") {
  const auto size = [](auto zero) { return sizeof zero; };
  CHECK(accrue::visit_floating(DType::float32, "relu", size) == 4);
  CHECK(accrue::visit_floating(DType::float64, "relu", size) == 8);
  CHECK_THROWS_WITH_AS(accrue::visit_floating(DType::int64, "relu", size),
                       "[relu] needs float32 or float64, got int64; convert with to()",
                       accrue::DTypeError);
  CHECK_THROWS_WITH_AS(accrue::visit_floating(DType::bfloat16, "mul", size),
                       "[mul] needs float32 or float64, got bfloat16; convert with to()",
                       accrue::DTypeError);
  CHECK_THROWS_AS(accrue::visit_floating(DType::boolean, "relu", size), accrue::DTypeError);
}
