// Data sets whose samples tell their index, and the batches of one pass, for tests of loaders.
#pragma once

#include "accrue/data/data_loader.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/tests/support/device.h"

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace accrue::data::testing {

using Indices = std::vector<std::int64_t>;

/// n samples: input [i, 10 i], label -i.
inline TensorDataset counting(std::int64_t n) {
  std::vector<float> inputs;
  Indices labels;
  for (std::int64_t i = 0; i < n; ++i) {
    inputs.insert(inputs.end(), {static_cast<float>(i), static_cast<float>(10 * i)});
    labels.push_back(-i);
  }
  return TensorDataset({test::There::from(inputs, {n, 2}), test::There::from(labels, {n})});
}

/// Six samples; one cannot be read and the last has another shape.
struct BrokenAt : Dataset {
  std::int64_t broken;
  explicit BrokenAt(std::int64_t i) : broken(i) {}
  std::int64_t size() const override { return 6; }
  Sample get(std::int64_t index) const override {
    if (index == broken) throw std::runtime_error("disk on fire");
    return {{test::There::zeros({index == 5 ? 3 : 2})}};
  }
};

template <class Range>
std::vector<Indices> pass(Range&& loader) {
  std::vector<Indices> batches;
  for (const Batch& batch : loader) batches.push_back(batch.indices);
  return batches;
}

}  // namespace accrue::data::testing
