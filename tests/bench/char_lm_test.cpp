// The example char_lm, small: it learns, and no split changes its weights.
#include "accrue/tests/bench/run.h"

#include <string>

namespace {

using accrue::test::count;
using accrue::test::run;
using accrue::test::Run;

const std::string kSmall =
    "../examples/char_lm --text " ACCRUE_GOLDEN
    "/../../LICENSE --context 16 --layers 1 --embed_dim 16 --global_batch_size 24 ";

/// The last word of the line that starts with `start`.
std::string value_of(const std::string& output, const std::string& start) {
  const std::size_t at = output.rfind("\n" + start);
  REQUIRE(at != std::string::npos);
  const std::size_t end = output.find('\n', at + 1);
  const std::size_t word = output.rfind(' ', end) + 1;
  return output.substr(word, end - word);
}

}  // namespace

TEST_CASE("bench.char_lm: every split and number of threads ends at the same weights") {
  const std::string options = kSmall + "--steps 6 --sample 0 ";
  const std::string whole = value_of(run(options + "--per_device_batch_size 24").output, "weights");
  CHECK(whole.size() == 16);
  for (const char* split : {"1", "4", "5", "12"}) {
    for (const char* threads : {"1", "2"}) {
      const Run result =
          run(options + "--per_device_batch_size " + split + " --threads " + threads);
      CAPTURE(split);
      CAPTURE(threads);
      CHECK(value_of(result.output, "weights") == whole);
    }
  }
  CHECK(value_of(run(options + "--per_device_batch_size 24 --seed 1").output, "weights") != whole);
}

TEST_CASE("bench.char_lm: it learns and writes") {
  const Run result = run(kSmall + "--steps 100 --sample 50 --per_device_batch_size 24");
  CHECK(result.code == 0);
  CHECK(std::stod(value_of(result.output, "step    1")) > 4.0);
  CHECK(std::stod(value_of(result.output, "step  100")) < 3.0);
  CHECK(result.output.size() - result.output.find("weights ") > 8 + 16 + 50);
}

TEST_CASE("bench.char_lm: a text that is missing or too short is refused") {
  CHECK(run("../examples/char_lm --text no_such_file 2> /dev/null").code == 74);
  CHECK(run("../examples/char_lm --text / 2> /dev/null").code == 74);
  const Run error = run("../examples/char_lm --text /dev/null 2>&1");
  CHECK(error.code == 78);
  CHECK(count(error.output, "more than 64 characters, got 0") == 1);
}
