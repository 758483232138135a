// ONNX's Gemm and MatMul cases.
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/matmul.h"
#include "accrue/tests/onnx/cases.h"
#include "accrue/tests/support/doctest.h"

namespace accrue {
namespace {

/// alpha a b + beta c, a and b transposed where the node says so.
Variable gemm(const tests::OnnxCase& given) {
  const tests::OnnxNode& node = given.nodes[0];
  const auto operand = [&](std::size_t i, const char* transposed) {
    const Tensor& x = given.inputs[i];
    return Variable(node.number(transposed, 0) != 0 ? x.transpose(0, 1) : x);
  };
  const Variable product = matmul(operand(0, "transA"), operand(1, "transB"));
  const Variable scaled = product * node.number("alpha", 1);
  if (given.inputs.size() < 3) return scaled;
  return scaled + Variable(given.inputs[2]) * node.number("beta", 1);
}

TEST_CASE("onnx.products: Gemm as a matrix product, scaled and added") {
  const int num_run = tests::run_onnx_cases({"test_gemm"}, [](const tests::OnnxCase& given) {
    tests::check_close(gemm(given).value(), given.outputs[0]);
    return "";
  });
  CHECK(num_run >= 11);
}

TEST_CASE("onnx.products: Gemm as a linear layer") {
  const int num_run = tests::run_onnx_cases({"test_gemm"}, [](const tests::OnnxCase& given) {
    const tests::OnnxNode& node = given.nodes[0];
    if (node.number("alpha", 1) != 1 || node.number("beta", 1) != 1)
      return "a linear layer does not scale";
    const Tensor& x = given.inputs[0];
    const Tensor& w = given.inputs[1];
    const bool has_bias = given.inputs.size() > 2;
    if (has_bias && given.inputs[2].numel() != given.outputs[0].size(1))
      return "a bias has one element per output";
    const Tensor bias = has_bias ? given.inputs[2].reshape({-1}) : Tensor();
    const Variable y = linear(Variable(node.number("transA", 0) != 0 ? x.transpose(0, 1) : x),
                              Variable(node.number("transB", 0) != 0 ? w : w.transpose(0, 1)),
                              has_bias ? Variable(bias) : Variable());
    tests::check_close(y.value(), given.outputs[0]);
    return "";
  });
  CHECK(num_run >= 4);
}

TEST_CASE("onnx.products: MatMul") {
  const int num_run = tests::run_onnx_cases({"test_matmul"}, [](const tests::OnnxCase& given) {
    if (given.nodes[0].op != "MatMul") return "there are no products of integers";
    const Variable y = matmul(Variable(given.inputs[0]), Variable(given.inputs[1]));
    tests::check_close(y.value(), given.outputs[0]);
    return "";
  });
  CHECK(num_run >= 3);
}

}  // namespace
}  // namespace accrue
