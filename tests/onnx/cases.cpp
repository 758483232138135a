#include "accrue/tests/onnx/cases.h"

#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace accrue::tests {
namespace {

constexpr const char* kFolder = "/usr/share/libonnx-testdata/data/node";

std::vector<std::filesystem::path> folders_of(const std::vector<std::string>& prefixes) {
  if (!std::filesystem::exists(kFolder)) {
    std::printf("skipped: there is no %s; install libonnx-testdata\n", kFolder);
    std::exit(77);
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    const auto starts = [&](const std::string& prefix) { return name.rfind(prefix, 0) == 0; };
    if (std::any_of(prefixes.begin(), prefixes.end(), starts)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

void check_close(const Tensor& value, const Tensor& expected) {
  REQUIRE(value.shape() == expected.shape());
  const auto a = value.to(DType::float64).to_vector<double>();
  const auto b = expected.to(DType::float64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    CHECK(std::abs(a[i] - b[i]) <= 1e-7 + 1e-3 * std::abs(b[i]));
  }
}

int run_onnx_cases(const std::vector<std::string>& prefixes,
                   const std::function<std::string(const OnnxCase&)>& run) {
  int num_run = 0;
  std::map<std::string, std::string> left_out;  // names by reason
  for (const std::filesystem::path& folder : folders_of(prefixes)) {
    OnnxCase test = read_onnx_case(folder);
    for (Tensor& input : test.inputs) input = test::there(input);
    CAPTURE(test.name);
    const std::string reason = run(test);
    if (reason.empty()) ++num_run;
    if (!reason.empty()) left_out[reason] += ' ' + test.name;
  }
  MESSAGE("ran ", num_run, " cases of ONNX");
  for (const auto& [reason, names] : left_out) MESSAGE("not applicable, ", reason, ":", names);
  return num_run;
}

}  // namespace accrue::tests
