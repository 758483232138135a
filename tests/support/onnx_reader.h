// Reads test cases of ONNX: tensors and the one node of a model, from protobuf's wire format.
#pragma once

#include "accrue/core/tensor.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace accrue::tests {

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;  ///< names; an absent one is empty
  std::vector<std::string> outputs;
  std::map<std::string, double> numbers;     ///< attributes that are a float or an integer
  std::map<std::string, std::string> words;  ///< attributes that are a string

  double number(const std::string& name, double otherwise) const;
};

struct OnnxCase {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<Tensor> inputs;  ///< float32, float64, uint8, int32 or int64
  std::vector<Tensor> outputs;
};

/// The case in `folder`: model.onnx and test_data_set_0.
/// Errors: ValueError for files that are cut short, and for tensors of other types.
OnnxCase read_onnx_case(const std::filesystem::path& folder);

}  // namespace accrue::tests
