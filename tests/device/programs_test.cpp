// The documented programs with --device cuda: the documented output, the CPU's bits.
#include "accrue/tests/bench/run.h"

#include <string>

using namespace accrue::test;

namespace {

/// Runs a program with --device cuda, and sees that it did not say that it takes the CPU.
Run on_device(const std::string& command) {
  const Run result = shell(command + " --device cuda 2>&1");
  CHECK(result.code == 0);
  CHECK_MESSAGE(count(result.output, "running on the CPU") == 0, result.output);
  return result;
}

/// What the program prints on the device, which must be what it prints on the CPU.
std::string printed(const std::string& command) {
  CAPTURE(command);
  const Run far = on_device(command), near = shell(command + " --device cpu");
  CHECK(far.output == near.output);
  return far.output;
}

}  // namespace

TEST_CASE("device.programs: y = 2x is fitted on a device as on the CPU") {
  CHECK(count(printed("./docs_plain_loop --hex"), "is 2.04000\nhex 40028f5c\n") == 1);
  CHECK(count(printed("./docs_gradient_accumulation --hex"), "is 2.04000\nhex 40028f5c\n") == 2);
}

TEST_CASE("device.programs: every split of the tokens gives the CPU's bits on a device") {
  for (const int b : {1, 2, 8}) {
    const std::string output =
        printed("./docs_causal_lm --hex --gradient_accumulation_steps " + std::to_string(8 / b) +
                " --per_device_batch_size " + std::to_string(b));
    CHECK(count(output, "\nhex 3dc32169 3ede0b12\n") == 2);
  }
  printed("./docs_causal_lm --hex --compat");
}

TEST_CASE("device.programs: metrics are gathered on a device as on the CPU") {
  CHECK(count(printed("./docs_gather_for_metrics"), "0 gather_for_metrics tensor([4])\n") == 1);
}

TEST_CASE("device.programs: the device that was asked for is taken, or refused by name") {
  CHECK(run("device/kernel_rates --device cpu").code == 78);
  const Run result = shell("./docs_plain_loop --device cuda:1000 2>&1");
  CHECK(result.code == 64);
  CHECK(count(result.output, "--device must be one of cuda:0 to cuda:") == 1);
}

TEST_CASE("device.programs: mixed precision gives the CPU's bits on a device") {
  const std::string bf16 = printed("ACCELERATE_MIXED_PRECISION=bf16 ./docs_causal_lm --hex");
  const std::string fp16 = printed("ACCELERATE_MIXED_PRECISION=fp16 ./docs_causal_lm --hex");
  CHECK(bf16 != fp16);
}

TEST_CASE("device.programs: every split equals the reference model or the CPU on a device") {
  const Run result = on_device("./accumulation_invariance --quick");
  CHECK(count(result.output, "DIFFERS") == 0);
  CHECK(count(result.output, "= reference") == 3);
  CHECK(count(result.output, "= CPU") == 2);
  const std::size_t last = result.output.rfind('\n', result.output.size() - 2);
  MESSAGE(result.output.substr(last + 1));
}
