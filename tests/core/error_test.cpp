// Typed errors: their text, their types, and when the text is built.
#include "accrue/core/error.h"

#include "accrue/tests/support/doctest.h"

namespace {

struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE("core.error: a failed check throws the named type with the operation in brackets") {
  const int count = -3;
  CHECK_THROWS_WITH_AS(
      ACCRUE_CHECK(count >= 0, ValueError, "zeros", "count must be >= 0, got ", count),
      "[zeros] count must be >= 0, got -3",
      accrue::ValueError);
}

TEST_CASE("core.error: a check that holds evaluates no part of its message") {
  int evaluations = 0;
  const auto part = [&] { return ++evaluations; };
  CHECK_NOTHROW(ACCRUE_CHECK(true, StateError, "test", part()));
  CHECK(evaluations == 0);
  CHECK_THROWS_AS(ACCRUE_CHECK(false, StateError, "test", part()), accrue::StateError);
  CHECK(evaluations == 1);
}

TEST_CASE_TEMPLATE("core.error: every type is an accrue::Error and a std::runtime_error",
                   Type,
                   accrue::ShapeError,
                   accrue::DTypeError,
                   accrue::DeviceError,
                   accrue::IndexError,
                   accrue::ValueError,
                   accrue::StateError,
                   accrue::OutOfMemoryError,
                   accrue::DistributedError,
                   accrue::TimeoutError,
                   accrue::MismatchError) {
  CHECK_THROWS_WITH_AS(accrue::fail<Type>("a", 1), "a1", accrue::Error);
  CHECK_THROWS_WITH_AS(accrue::fail<Type>("a", 1), "a1", std::runtime_error);
}

TEST_CASE("core.error: numbers in messages do not follow the global locale") {
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string message = accrue::text(1234567, ' ', 1.5);
  std::locale::global(before);
  CHECK(message == "1234567 1.5");
}
