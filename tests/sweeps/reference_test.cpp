// Every operation against plain loops: equal bits forward and backward, in every layout.
#include "accrue/kernels/cpu/float_mode.h"
#include "accrue/tests/support/cpu_paths.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/op_case.h"

using namespace accrue;
using namespace accrue::test;

namespace {

struct Counts {
  int samples = 0, gradients = 0;
};

/// The layouts of the inputs: all the same, or each its own.
std::vector<Tensor> laid_out_all(const std::vector<Tensor>& tensors, std::size_t first, bool mix) {
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result.push_back(laid_out(tensors[i], kLayouts[(first + (mix ? i : 0)) % 4]));
  }
  return result;
}

/// One forward and backward pass, compared with the references.
void compare(const OpCase& op,
             const std::vector<Tensor>& inputs,
             const Tensor& dy,
             const Array& y,
             const Arrays& gradients,
             Counts& counts) {
  const std::vector<Variable> x = variables_of(op, inputs);
  const Variable result = op.function(x);
  CHECK(same_bits(result.value(), y));
  result.backward(dy);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!is_floating(inputs[i].dtype())) continue;
    CAPTURE(i);
    CHECK(same_bits(x[i].grad(), gradients[i]));
    ++counts.gradients;
  }
  ++counts.samples;
}

void sweep_layouts(const OpCase& op,
                   const std::vector<Shape>& shapes,
                   bool special,
                   std::mt19937_64& random,
                   Counts& counts) {
  const std::vector<Tensor> drawn = draw_all(op, shapes, DType::float32, random, special);
  for (std::size_t layout = 0; layout < 4; ++layout) {
    for (const bool mix : {false, true}) {
      if (mix && drawn.size() == 1) continue;
      const std::vector<Tensor> inputs = laid_out_all(drawn, layout, mix);
      const Arrays arrays = arrays_of(inputs);
      const Array y = op.forward(arrays);
      const Tensor gradient = draw_gradient(y.shape, DType::float32, random, special);
      for (const Layout gradient_layout : kLayouts) {
        const Tensor dy = laid_out(gradient, gradient_layout);
        const Arrays gradients = op.backward(arrays, y, array_of(dy));
        CAPTURE(layout);
        CAPTURE(static_cast<int>(gradient_layout));
        for (const kernels::Isa isa : isas_under_test()) {
          kernels::set_isa(isa);
          compare(op, inputs, dy, y, gradients, counts);
        }
      }
    }
  }
}

/// The result and the gradients of one pass in a thread's mode.
std::vector<Tensor> results_in_mode(const OpCase& op,
                                    const std::vector<Tensor>& inputs,
                                    const Tensor& dy,
                                    unsigned mode) {
  const unsigned before = kernels::float_mode();
  const std::vector<Variable> x = variables_of(op, inputs);
  kernels::set_float_mode(mode);
  const Variable y = op.function(x);
  y.backward(dy);
  kernels::set_float_mode(before);
  std::vector<Tensor> results = {y.value()};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (is_floating(inputs[i].dtype())) results.push_back(x[i].grad());
  }
  return results;
}

/// A gradient whose products are subnormal.
Tensor tiny_gradient(const Shape& shape, std::mt19937_64& random) {
  Tensor dy = draw_gradient(shape, DType::float32, random).to(Device::cpu());
  float* const data = dy.mutable_data<float>();
  for (std::int64_t i = 0; i < dy.numel(); ++i) data[i] *= 0x1p-130F;
  return there(dy);
}

}  // namespace

TEST_CASE("sweeps.reference: a thread that flushes subnormals or rounds upwards changes no bits") {
  std::mt19937_64 random(2);
  constexpr unsigned kFlushUpwards = kernels::kDefaultFloatMode | 0x8040 | 0x4000;
  int results = 0;
  for (const OpCase& op : op_cases()) {
    CAPTURE(op.name);
    for (const std::vector<Shape>& shapes : op.shapes) {
      const std::vector<Tensor> inputs = draw_all(op, shapes, DType::float32, random, true);
      const Tensor dy = tiny_gradient(op.forward(arrays_of(inputs)).shape, random);
      const auto wanted = results_in_mode(op, inputs, dy, kernels::kDefaultFloatMode);
      const auto got = results_in_mode(op, inputs, dy, kFlushUpwards);
      for (std::size_t i = 0; i < wanted.size(); ++i, ++results) {
        CAPTURE(i);
        CHECK(same_bits(got[i], array_of(wanted[i])));
      }
    }
  }
  MESSAGE("equal in another mode: " << results << " tensors");
}

TEST_CASE("sweeps.reference: every operation has the bits of plain loops, forward and backward") {
  std::mt19937_64 random(1);
  Counts counts;
  const std::vector<OpCase> rows = op_cases();
  const int repetitions = is_quick() ? 1 : 2;
  for (const OpCase& op : rows) {
    CAPTURE(op.name);
    for (const std::vector<Shape>& shapes : op.shapes) {
      CAPTURE(shapes[0]);
      for (int i = 0; i < repetitions; ++i) {
        sweep_layouts(op, shapes, false, random, counts);
        sweep_layouts(op, shapes, true, random, counts);
      }
    }
  }
  MESSAGE("forward and backward equal plain loops in every bit: "
          << counts.samples << " samples, " << counts.gradients << " gradients, of " << rows.size()
          << " rows");
}
