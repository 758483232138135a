// Every operation's gradients against differences of its values in float64, in every layout of the
// inputs and of the incoming gradient.
#include "accrue/autograd/gradcheck.h"

#include "accrue/autograd/engine.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/op_case.h"

#include <map>
#include <string>

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t kMaxElements = 40;  // per input: a derivative costs four forward passes

/// Changes the layout of the value on the way forward, or of the gradient on the way back.
struct LayoutNode final : OpNode<1> {
  Layout of_gradient = Layout::contiguous;

  const char* name() const override { return "layout"; }
  void backward(Backward& context) override {
    context.give(0, laid_out(context.dy(), of_gradient));
  }
};

bool can_expand(const Variable& x) { return x.rank() > 0 && x.size(0) > 0; }

/// `x` in a layout. Expanded, it is its entry 0 again and again.
Variable value_in(const Variable& x, Layout layout) {
  if (!is_floating(x.dtype())) return Variable(laid_out(x.value(), layout));
  if (layout == Layout::expanded) {
    return can_expand(x) ? expand(narrow(x, 0, 0, 1), x.shape()) : x;
  }
  return record<LayoutNode>(
      laid_out(x.value(), layout), [](LayoutNode&) {}, x);
}

/// What makes the gradient of `y` arrive in a layout.
Variable with_gradient_in(const Variable& y, Layout layout) {
  if (layout == Layout::expanded) return can_expand(y) ? sum(y, {0}) : y;
  return record<LayoutNode>(
      y.value(), [&](LayoutNode& node) { node.of_gradient = layout; }, y);
}

struct Counts {
  int samples = 0, without_value = 0;
  std::int64_t derivatives = 0;
};

/// The layouts of up to three inputs, as digits of a number below 4^3.
Layout layout_of(std::size_t combination, std::size_t input) {
  return kLayouts[(combination >> (2 * input)) % 4];
}

/// The operation on leaves: layouts before it and behind it.
Function in_layouts(const OpCase& op,
                    const std::vector<Tensor>& drawn,
                    std::size_t combination,
                    Layout gradient_layout) {
  return [=, &op, &drawn](std::span<const Variable> leaves) {
    std::vector<Variable> x;
    std::size_t leaf = 0;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const bool is_leaf = is_floating(drawn[i].dtype());
      const Variable input = is_leaf ? leaves[leaf++] : Variable(drawn[i]);
      x.push_back(value_in(input, layout_of(combination, i)));
    }
    return with_gradient_in(op.function(x), gradient_layout);
  };
}

/// Why the row's operation does not run in float64, which few kernels of devices do; else nothing.
std::string why_not(const OpCase& op, const std::vector<Tensor>& inputs) {
  const std::vector<Variable> x(inputs.begin(), inputs.end());
  try {
    op.function(x);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return {};
}

/// False for a mean over nothing.
bool has_value(const Function& function, const std::vector<Tensor>& inputs) {
  const std::vector<Variable> x(inputs.begin(), inputs.end());
  const std::vector<double> y = function(x).value().to_vector<double>();
  return std::all_of(y.begin(), y.end(), [](double value) { return std::isfinite(value); });
}

void check_layouts(const OpCase& op,
                   const std::vector<Tensor>& drawn,
                   std::size_t draw,
                   Counts& counts) {
  std::vector<Tensor> floats;
  for (const Tensor& x : drawn) {
    if (is_floating(x.dtype())) floats.push_back(x);
  }
  const std::size_t num_combinations = std::size_t{1} << (2 * drawn.size());
  for (std::size_t combination = 0; combination < num_combinations; ++combination) {
    const Layout gradient_layout = kLayouts[(combination + draw) % 4];
    const Function function = in_layouts(op, drawn, combination, gradient_layout);
    if (!has_value(function, floats)) {
      ++counts.without_value;
      continue;
    }
    CAPTURE(combination);
    CAPTURE(static_cast<int>(gradient_layout));
    CHECK_NOTHROW(counts.derivatives += gradcheck(function, floats, {.rtol = 1e-8, .atol = 1e-10}));
    ++counts.samples;
  }
}

bool is_small(const std::vector<Shape>& shapes) {
  return std::all_of(
      shapes.begin(), shapes.end(), [](const Shape& s) { return numel(s) <= kMaxElements; });
}

}  // namespace

TEST_CASE("sweeps.gradcheck: gradients are the derivatives, rtol 1e-8 and atol 1e-10") {
  std::mt19937_64 random(2);
  Counts counts;
  int num_rows = 0;
  std::map<std::string, std::string> left_out;  // names of rows by reason
  for (const OpCase& op : op_cases()) {
    if (!op.is_derivative) continue;
    CAPTURE(op.name);
    num_rows += !op.shapes.empty();
    for (const std::vector<Shape>& shapes : op.shapes) {
      if (!is_small(shapes)) continue;
      CAPTURE(shapes[0]);
      const std::string reason = why_not(op, draw_all(op, shapes, DType::float64, random));
      if (!reason.empty()) {
        CHECK(!device_under_test().is_cpu());
        left_out[reason] += "\n  " + op.name;
        --num_rows;
        break;
      }
      // Four draws meet each combination of layouts with each layout of the gradient.
      for (std::size_t draw = 0; draw < (is_quick() ? 1 : 4); ++draw) {
        check_layouts(op, draw_all(op, shapes, DType::float64, random), draw, counts);
      }
    }
  }
  for (const auto& [reason, names] : left_out) MESSAGE(reason << names);
  MESSAGE("gradients are the derivatives: "
          << counts.samples << " samples of " << num_rows << " rows, " << counts.derivatives
          << " derivatives, rtol 1e-8, atol 1e-10 (" << counts.without_value
          << " means over nothing left out)");
}
