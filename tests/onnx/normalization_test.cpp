// ONNX's LayerNormalization cases, over one or more of the last dimensions.
#include "accrue/autograd/ops/layer_norm.h"
#include "accrue/tests/onnx/cases.h"
#include "accrue/tests/support/doctest.h"

namespace accrue {
namespace {

std::string run(const tests::OnnxCase& given) {
  if (given.name.find("_expanded") != std::string::npos)
    return "the data of another case, computed by a graph of smaller operations";
  const Tensor& x = given.inputs[0];
  const auto axis = static_cast<int>(given.nodes[0].number("axis", -1));
  Shape normalized;
  for (int dim = axis < 0 ? axis + x.rank() : axis; dim < x.rank(); ++dim)
    normalized.push_back(x.size(dim));
  const Variable y = layer_norm(Variable(x),
                                normalized,
                                Variable(given.inputs[1]),
                                Variable(given.inputs[2]),
                                given.nodes[0].number("epsilon", 1e-5));
  tests::check_close(y.value(), given.outputs[0]);
  return "";
}

TEST_CASE("onnx.normalization: layer normalisation") {
  CHECK(tests::run_onnx_cases({"test_layer_normalization"}, run) >= 19);
}

}  // namespace
}  // namespace accrue
