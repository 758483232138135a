// Writing to an input or a result between forward and backward is an error where backward needs the
// old values, and changes nothing where it does not. It is never silent.
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/op_case.h"

using namespace accrue;
using namespace accrue::test;

namespace {

struct Counts {
  int errors = 0, unchanged = 0;
};

bool can_write(const Tensor& x) {
  if (x.numel() == 0) return false;
  for (int d = 0; d < x.rank(); ++d) {
    if (x.strides()[d] == 0 && x.size(d) > 1) return false;
  }
  return true;
}

/// One pass with a write to input `which`, or to the result behind the last input.
void write_between(const OpCase& op,
                   const std::vector<Tensor>& inputs,
                   std::size_t which,
                   const Tensor& dy,
                   Counts& counts) {
  const Arrays arrays = arrays_of(inputs);
  const Arrays wanted = op.backward(arrays, op.forward(arrays), array_of(dy));
  const std::vector<Variable> x = variables_of(op, inputs);
  const Variable y = op.function(x);
  Variable target = which < x.size() ? x[which] : y;
  if (!can_write(target.value())) return;
  target.mutable_value().fill(1);
  try {
    y.backward(dy);
  } catch (const StateError& error) {
    const std::string message = error.what();
    CHECK(
        message.find("] a tensor saved for backward must not be written before it, got version") !=
        std::string::npos);
    for (const Variable& input : x) CHECK((!input.is_leaf() || !input.grad().defined()));
    ++counts.errors;
    return;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (is_floating(inputs[i].dtype())) CHECK(same_bits(x[i].grad(), wanted[i]));
  }
  ++counts.unchanged;
}

}  // namespace

TEST_CASE("sweeps.saved: a write between forward and backward is an error or without effect") {
  std::mt19937_64 random(5);
  Counts counts;
  for (const OpCase& op : op_cases()) {
    CAPTURE(op.name);
    for (const std::vector<Shape>& shapes : op.shapes) {
      for (const Layout layout : kWritableLayouts) {
        for (std::size_t which = 0; which <= shapes.size(); ++which) {
          CAPTURE(which);
          std::vector<Tensor> inputs;
          for (const Tensor& x : draw_all(op, shapes, DType::float32, random)) {
            inputs.push_back(laid_out(x, layout));
          }
          const Shape shape = op.forward(arrays_of(inputs)).shape;
          write_between(op, inputs, which, draw_gradient(shape, DType::float32, random), counts);
        }
      }
    }
  }
  CHECK(counts.errors > 0);
  CHECK(counts.unchanged > 0);
  MESSAGE("writes between forward and backward: " << counts.errors << " errors, "
                                                  << counts.unchanged << " without effect");
}
