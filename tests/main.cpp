// The entry of every test program. A run whose filters match no test case fails, so does one on a
// device that computes on the CPU without a reason.
#define DOCTEST_CONFIG_IMPLEMENT
#include "accrue/tests/support/cpu_only.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/device_use.h"
#include "accrue/tests/support/doctest.h"

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

using accrue::test::device_under_test;
using accrue::test::kCpuOnly;

namespace {

unsigned num_matched = 0, num_left_out = 0, num_on_cpu = 0;
std::string_view end_of_file;  ///< of the test file that is asked for; empty for all

struct CountMatches : doctest::IReporter {
  explicit CountMatches(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    num_matched = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData& test) override { use.begin(test.m_name); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override { num_on_cpu += !use.end(); }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (device_under_test().is_cpu()) return;
    if (!std::string_view(test.m_file.c_str()).ends_with(end_of_file)) return;
    for (const auto& [cases, reason] : kCpuOnly) {
      if (!std::string_view(test.m_name).starts_with(cases)) continue;
      std::printf("not on a device, since it %s: %s\n", reason, test.m_name);
      ++num_left_out;
    }
  }

  accrue::test::DeviceUse use;
};
REGISTER_LISTENER("count_matches", 0, CountMatches);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc))) {
    constexpr std::string_view kOption = "--source-file=*";
    if (argument.starts_with(kOption)) end_of_file = argument.substr(kOption.size());
  }
  for (const auto& [cases, reason] : kCpuOnly) {
    if (!device_under_test().is_cpu())
      context.addFilter("test-case-exclude", (std::string(cases) + "*").c_str());
  }
  const int status = context.run();
  if (context.shouldExit()) return status;
  if (num_on_cpu > 0) return 1;
  if (num_matched + num_left_out > 0) return status;
  std::fputs("no test case matches the filters\n", stderr);
  return 1;
}
