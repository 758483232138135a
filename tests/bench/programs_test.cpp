// The programs as a user runs them: documented output, bits, exit codes.
#include "accrue/tests/bench/run.h"

#include <fstream>
#include <sstream>
#include <string>

namespace {

using accrue::test::count;
using accrue::test::run;
using accrue::test::Run;

std::string golden(const std::string& name) {
  std::ifstream file(ACCRUE_GOLDEN "/docs/" + name);
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The program refuses its arguments: `code`, nothing on stdout, one line on stderr.
void check_refused(const std::string& command, int code) {
  CAPTURE(command);
  const Run out = run(command + " 2> /dev/null");
  CHECK(out.code == code);
  CHECK(out.output.empty());
  const Run error = run(command + " 2>&1 > /dev/null");
  CHECK(count(error.output, "\n") == 1);
  CHECK(error.output.size() > 20);
}

}  // namespace

TEST_CASE("bench.programs: the documented outputs appear character for character") {
  CHECK(run("docs_gradient_accumulation").output == golden("gradient_accumulation.txt"));
  const Run tokens =
      run("docs_causal_lm --gradient_accumulation_steps 1 --per_device_batch_size 8");
  CHECK(tokens.output == golden("causal_lm_1x1x8.txt"));
  CHECK(tokens.code == 0);
}

TEST_CASE("bench.programs: y = 2x ends at torch's bits, accumulated or not") {
  CHECK(count(run("docs_plain_loop --hex").output, "is 2.04000\nhex 40028f5c\n") == 1);
  CHECK(count(run("docs_gradient_accumulation --hex").output, "is 2.04000\nhex 40028f5c\n") == 2);
}

TEST_CASE("bench.programs: --device cuda gives the same output, also where there is no device") {
  const Run near = run("docs_plain_loop --hex"), far = run("docs_plain_loop --hex --device cuda");
  CHECK(far.code == 0);
  CHECK(far.output == near.output);
  check_refused("docs_plain_loop --device gpu", 64);
  check_refused("docs_plain_loop --device cuda:-1", 64);
}

TEST_CASE(
    "bench.programs: every split of the tokens gives the same bits with and without "
    "accumulation") {
  const auto check = [](const std::string& options, const std::string& bits) {
    CAPTURE(options);
    const Run result = run("docs_causal_lm --hex " + options);
    CHECK(result.code == 0);
    CHECK(count(result.output, "\nhex " + bits + "\n") == 2);
  };
  const std::string eight = "3dc32169 3ede0b12", sixteen = "3e58cc50 3ea26d44";
  for (const char* const dealing : {"contiguous", "round_robin"}) {
    for (const int b : {1, 2, 4, 8}) {
      check("--gradient_accumulation_steps " + std::to_string(8 / b) + " --per_device_batch_size " +
                std::to_string(b) + " --dealing " + dealing,
            eight);
    }
    for (const int b : {1, 4, 16}) {
      check("--gradient_accumulation_steps " + std::to_string(16 / b) +
                " --per_device_batch_size " + std::to_string(b) + " --dealing " + dealing,
            sixteen);
    }
  }
  check("--global_batch_size 16 --per_device_batch_size 3", sixteen);
  check("--global_batch_size 16 --per_device_batch_size 5 --lanes 8 --num_samples 16", sixteen);
  check("--gradient_accumulation_steps 4 --per_device_batch_size 2 --compat", eight);
}

TEST_CASE("bench.programs: the number of items of each window is that of its labels") {
  const Run result = run("docs_causal_lm --global_batch_size 4 --num_samples 10");
  CHECK(count(result.output, "Step ") == 3);
  CHECK(count(result.output, "Step 0 - Device 0 - num items in the local batch 10\n") == 1);
  CHECK(count(result.output, "Step 1 - Device 0 - num items in the local batch 26\n") == 1);
  CHECK(count(result.output, "Step 2 - Device 0 - num items in the local batch 19\n") == 1);
}

TEST_CASE("bench.programs: wrong arguments exit with 64, print one line and nothing else") {
  for (const char* const program : {"docs_plain_loop",
                                    "docs_gradient_accumulation",
                                    "docs_causal_lm",
                                    "accumulation_invariance"}) {
    check_refused(program + std::string(" --no_such_option"), 64);
    check_refused(program + std::string(" stray"), 64);
  }
  for (const char* const value : {"",
                                  "1e3",
                                  "1,5",
                                  "2x",
                                  "0x8",
                                  "+8",
                                  "' 8'",
                                  "''",
                                  "0",
                                  "-1",
                                  "99999999999999999999",
                                  "--hex"}) {
    check_refused(std::string("docs_causal_lm --lanes ") + value, 64);
  }
  check_refused("docs_causal_lm --dealing random", 64);
  check_refused("docs_causal_lm --hex --hex", 64);
  for (const char* const value : {"1", "true", "false", ""}) {
    check_refused(std::string("docs_causal_lm --hex=") + value, 64);
  }
  check_refused("docs_causal_lm --lanes 8 --lanes 8", 64);
}

TEST_CASE("bench.programs: configurations that cannot work exit with 78") {
  check_refused("docs_causal_lm --global_batch_size 9 --gradient_accumulation_steps 2", 78);
  check_refused("docs_causal_lm --global_batch_size 8 --compat", 78);
  check_refused("docs_causal_lm --lanes 4 --compat", 78);
  check_refused("docs_causal_lm --lanes 3", 78);
}

TEST_CASE("bench.programs: sizes beyond any memory exit with 71") {
  const std::string huge = "2147483647";
  for (const char* const compat : {"", " --compat"}) {
    const Run result = run("docs_causal_lm --gradient_accumulation_steps " + huge +
                           " --per_device_batch_size " + huge + compat + " 2> /dev/null");
    CHECK(result.code == 71);
  }
}

TEST_CASE("bench.programs: output that is lost exits with 74") {
  for (const char* const program : {"docs_plain_loop",
                                    "docs_gradient_accumulation",
                                    "docs_causal_lm",
                                    "docs_causal_lm --help"}) {
    CAPTURE(program);
    CHECK(run(program + std::string(" 2> /dev/null > /dev/full")).code == 74);
    CHECK(run(program + std::string(" 2> /dev/null >&-")).code == 74);
  }
  const std::string reader_gone =
      "docs_plain_loop > /dev/null; code=$(mktemp); { sleep 0.3; "
      "./docs_plain_loop 2> /dev/null; echo $? > $code; } | true; "
      "cat $code; rm $code";
  CHECK(run(reader_gone).output == "74\n");
}

TEST_CASE("bench.programs: --help exits with 0 and lists the options") {
  const Run help = run("docs_causal_lm --help");
  CHECK(help.code == 0);
  for (const char* const option : {"--gradient_accumulation_steps",
                                   "--per_device_batch_size",
                                   "--global_batch_size",
                                   "--num_samples",
                                   "--lanes",
                                   "--dealing",
                                   "--compat",
                                   "--hex"}) {
    CHECK(count(help.output, option) >= 1);
  }
  CHECK(count(help.output, "--lanes N [8]") == 1);
  CHECK(count(help.output, "[0]") == 0);
}

TEST_CASE("bench.programs: every split equals the reference model, every fault is seen") {
  const Run result = run("accumulation_invariance" ACCRUE_INVARIANCE_OPTIONS);
  CHECK(result.code == 0);
  CHECK(count(result.output, "DIFFERS") == 0);
  CHECK(count(result.output, "= reference") >= 3);
  const std::size_t last = result.output.rfind('\n', result.output.size() - 2);
  MESSAGE(result.output.substr(last + 1));
}

TEST_CASE("bench.programs: every topology equals the reference model, wrong reductions are seen") {
  const std::string options = ACCRUE_TOPOLOGY_OPTIONS;
  const Run result = run("topology_invariance --quick" + options);
  CHECK(result.code == 0);
  CHECK(count(result.output, "DIFFERS") == 0);
  CHECK(count(result.output, "Ranks as") == (options.empty() ? 2 : 1));  // threads, processes
  CHECK(count(result.output, " refused, 0 differ") == (options.empty() ? 2 : 1) * 3);
  const std::size_t last = result.output.rfind('\n', result.output.size() - 2);
  MESSAGE(result.output.substr(last + 1));
}
