// ONNX's optimizer cases: the averages and steps given there are loaded, one step is made.
//
// ONNX adds Adam's epsilon to the root before its bias correction, torch after it. All cases have
// T = 0, which in ONNX means no correction; a step counter far out has the same effect here.
// test_adam_multiple was made with an epsilon of 0.01, which its model leaves out.
#include "accrue/optim/optim.h"
#include "accrue/tests/onnx/cases.h"
#include "accrue/tests/support/doctest.h"

namespace accrue::optim {
namespace {

/// The inputs of a case: R, T, then X, G and one tensor per slot for each parameter, kind by kind.
class OptimizerCase {
 public:
  OptimizerCase(const tests::OnnxCase& given, std::vector<std::string> slots)
      : given_(given), slots_(std::move(slots)), count_((given.inputs.size() - 2) / kinds()) {
    for (std::size_t i = 0; i < count_; ++i) {
      parameters_.push_back(Variable::leaf(input(0, i).clone()));
      parameters_.back().set_grad(input(1, i));
    }
  }

  double number(const char* name, double otherwise = 0) const {
    return given_.nodes[0].number(name, otherwise);
  }
  double lr() const { return given_.inputs[0].to(DType::float64).item<double>(); }
  std::int64_t step() const { return given_.inputs[1].item<std::int64_t>(); }
  ParameterList parameters() const { return parameters_; }

  /// Loads the slots, steps once and compares parameters and slots.
  void check(Optimizer& optimizer, std::optional<std::int64_t> steps_before) const {
    OptimizerState state = {{"lr", Tensor::full({1}, lr(), DType::float64)}};
    for (std::size_t i = 0; i < count_; ++i) {
      const std::string name = '.' + std::to_string(i);
      for (std::size_t s = 0; s < slots_.size(); ++s)
        state.emplace_back(slots_[s] + name, input(2 + s, i));
      if (!steps_before) continue;
      Tensor steps = Tensor::zeros({}, DType::int64);
      *steps.mutable_data<std::int64_t>() = *steps_before;
      state.emplace_back("step" + name, steps);
    }
    optimizer.load_state(state);
    optimizer.step();
    for (std::size_t i = 0; i < count_; ++i) {
      tests::check_close(parameters_[i].value(), given_.outputs[i]);
      for (std::size_t s = 0; s < slots_.size(); ++s) {
        const std::string name = slots_[s] + '.' + std::to_string(i);
        for (const auto& [key, value] : optimizer.state())
          if (key == name) tests::check_close(value, given_.outputs[(s + 1) * count_ + i]);
      }
    }
  }

 private:
  std::size_t kinds() const { return 2 + slots_.size(); }
  const Tensor& input(std::size_t kind, std::size_t i) const {
    return given_.inputs[2 + kind * count_ + i];
  }

  const tests::OnnxCase& given_;
  std::vector<std::string> slots_;
  std::size_t count_;
  std::vector<Variable> parameters_;
};

TEST_CASE("onnx.optimizers: Adam") {
  const int num_run = tests::run_onnx_cases({"test_adam"}, [](const tests::OnnxCase& given) {
    const OptimizerCase test(given, {"exp_avg", "exp_avg_sq"});
    if (test.step() != 0) return "epsilon lies elsewhere in the bias correction";
    Adam adam(test.parameters(),
              {.beta1 = test.number("alpha"),
               .beta2 = test.number("beta"),
               .eps = test.number("epsilon", 0.01),
               .weight_decay = test.number("norm_coefficient")});
    test.check(adam, std::int64_t{1} << 53);
    return "";
  });
  CHECK(num_run >= 2);
}

TEST_CASE("onnx.optimizers: Adagrad") {
  const int num_run = tests::run_onnx_cases({"test_adagrad"}, [](const tests::OnnxCase& given) {
    const OptimizerCase test(given, {"sum"});
    Adagrad adagrad(test.parameters(),
                    {.lr_decay = test.number("decay_factor"),
                     .weight_decay = test.number("norm_coefficient"),
                     .eps = test.number("epsilon")});
    test.check(adagrad, test.step());
    return "";
  });
  CHECK(num_run >= 2);
}

TEST_CASE("onnx.optimizers: momentum, plain and Nesterov's") {
  const std::vector<std::string> prefixes = {"test_momentum", "test_nesterov_momentum"};
  const int num_run = tests::run_onnx_cases(prefixes, [](const tests::OnnxCase& given) {
    const OptimizerCase test(given, {"momentum"});
    SGD sgd(test.parameters(),
            {.momentum = test.number("alpha"),
             .dampening = test.step() == 0 ? 0 : 1 - test.number("beta"),
             .weight_decay = test.number("norm_coefficient"),
             .nesterov = given.nodes[0].words.at("mode") == "nesterov"});
    test.check(sgd, std::nullopt);
    return "";
  });
  CHECK(num_run >= 3);
}

}  // namespace
}  // namespace accrue::optim
