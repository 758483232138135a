// check_property: a rapidcheck property over a stated number of cases, the same in every run.
#pragma once

#include "accrue/tests/support/doctest.h"

#include <rapidcheck.h>

#include <sstream>
#include <string>

namespace accrue::test {

/// Runs `property` on `num_cases` random cases from a fixed seed and says so; a failing case is
/// shrunk and shown. Inside the property use `*rc::gen::...` and RC_ASSERT.
template <class Property>
void check_property(const std::string& sentence, int num_cases, Property&& property) {
  rc::detail::TestParams params;
  params.maxSuccess = num_cases;
  params.seed = 0x5eed;
  const auto result = rc::detail::checkTestable(
      std::forward<Property>(property), rc::detail::TestMetadata{sentence, sentence}, params);
  std::ostringstream report;
  rc::detail::printResultMessage(result, report);
  CHECK_MESSAGE(result.template is<rc::detail::SuccessResult>(), report.str());
  MESSAGE(sentence << ": " << num_cases << " random cases");
}

/// A random integer in [low, high], each as likely; shrinks toward low.
inline std::int64_t pick(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(low, high + 1));
}

}  // namespace accrue::test
