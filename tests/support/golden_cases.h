// golden_cases(): Accelerate's cases of one kind.
#pragma once

#include "accrue/tests/support/golden.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace accrue::tests {

/// The cases of batch_sampler_shard_cases.json whose `kind` this is, in file order.
inline nlohmann::json golden_cases(const std::string& kind) {
  std::ifstream file(golden_path("batch_sampler_shard_cases.json"));
  const auto golden = nlohmann::json::parse(file);
  auto result = nlohmann::json::array();
  for (const auto& entry : golden["cases"]) {
    if (entry["kind"] == kind) result.push_back(entry);
  }
  return result;
}

}  // namespace accrue::tests
