// ONNX's cross-entropy cases: weights, ignored labels, reductions, any number of dimensions.
#include "accrue/autograd/ops/losses.h"

#include "accrue/autograd/ops/softmax.h"
#include "accrue/tests/onnx/cases.h"
#include "accrue/tests/support/doctest.h"

namespace accrue {
namespace {

/// [N, C, D...] as rows [N * D..., C].
Tensor rows_of(const Tensor& scores) {
  std::vector<int> dims = {0};
  for (int dim = 2; dim < scores.rank(); ++dim) dims.push_back(dim);
  dims.push_back(1);
  return scores.permute(dims).reshape({-1, scores.size(1)});
}

Reduction reduction_of(const tests::OnnxNode& node) {
  const auto found = node.words.find("reduction");
  if (found == node.words.end() || found->second == "mean") return Reduction::mean;
  return found->second == "sum" ? Reduction::sum : Reduction::none;
}

std::string run(const tests::OnnxCase& given) {
  if (given.name.find("_expanded") != std::string::npos)
    return "the data of another case, computed by a graph of smaller operations";
  const tests::OnnxNode& node = given.nodes[0];
  const Tensor rows = rows_of(given.inputs[0]);
  const Tensor labels = given.inputs[1].to(DType::int64);
  CrossEntropyOptions options;
  if (given.inputs.size() > 2) options.class_weights = given.inputs[2];
  if (node.numbers.count("ignore_index") > 0)
    options.ignore_index = static_cast<std::int64_t>(node.number("ignore_index", 0));
  const Variable loss =
      cross_entropy(Variable(rows), labels.reshape({-1}), options, reduction_of(node));
  tests::check_close(loss.value().reshape(given.outputs[0].shape()), given.outputs[0]);
  if (given.outputs.size() > 1)
    tests::check_close(log_softmax(Variable(rows)).value(), rows_of(given.outputs[1]));
  return "";
}

TEST_CASE("onnx.losses: cross-entropy of logits") {
  CHECK(tests::run_onnx_cases({"test_sce"}, run) >= 34);
}

TEST_CASE("onnx.losses: negative log-likelihood of given log-probabilities") {
  const int num_run = tests::run_onnx_cases({"test_nllloss"}, [](const tests::OnnxCase&) {
    return "there is no loss of log-probabilities, only of logits";
  });
  CHECK(num_run == 0);
}

}  // namespace
}  // namespace accrue
