// The entry of every test program. A run whose filters match no test case fails.
#define DOCTEST_CONFIG_IMPLEMENT
#include "accrue/tests/support/cpu_only.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <cstdio>
#include <string>
#include <string_view>

using accrue::test::device_under_test;
using accrue::test::kCpuOnly;

namespace {

unsigned num_matched = 0;

struct CountMatches : doctest::IReporter {
  explicit CountMatches(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    num_matched = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (device_under_test().is_cpu()) return;
    for (const auto& [cases, reason] : kCpuOnly) {
      if (std::string_view(test.m_name).starts_with(cases))
        std::printf("not on a device, since it %s: %s\n", reason, test.m_name);
    }
  }
};
REGISTER_LISTENER("count_matches", 0, CountMatches);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  for (const auto& [cases, reason] : kCpuOnly) {
    if (!device_under_test().is_cpu())
      context.addFilter("test-case-exclude", (std::string(cases) + "*").c_str());
  }
  const int status = context.run();
  if (context.shouldExit()) return status;
  if (num_matched > 0) return status;
  std::fputs("no test case matches the filters\n", stderr);
  return 1;
}
