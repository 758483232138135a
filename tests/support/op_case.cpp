#include "accrue/tests/support/op_case.h"

#include "accrue/autograd/engine.h"
#include "accrue/tests/support/device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace accrue::test {
namespace {

struct IdentityNode final : OpNode<1> {
  const char* name() const override { return "identity"; }
  void backward(Backward& context) override { context.give(0, context.dy()); }
};

double draw_number(Domain domain, std::mt19937_64& random, bool special) {
  constexpr double kSpecial[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 1e-40, -1e-44, 3e38, 1e-20};
  if (special && random() % 6 == 0) return kSpecial[random() % std::size(kSpecial)];
  const double size = std::uniform_real_distribution<double>(0.25, 1.75)(random);
  if (domain == Domain::positive) return size;
  const double sign = random() % 2 == 0 ? 1 : -1;
  if (domain == Domain::nonzero) return sign * size;
  return size - 1 + sign * 0.5;
}

/// Multiples of 1/4 in random order, shifted by 1/8 for inputs of odd number.
std::vector<double> draw_distinct(std::int64_t count, std::size_t input, std::mt19937_64& random) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>(i - count / 2) / 4 + (input % 2 == 0 ? 0 : 0.125));
  }
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

Tensor draw_classes(const Shape& shape,
                    std::int64_t num_classes,
                    bool some_ignored,
                    std::mt19937_64& random) {
  Tensor result = Tensor::zeros(shape, DType::int64);
  std::int64_t* out = result.mutable_data<std::int64_t>();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    out[i] = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(num_classes));
    if (some_ignored && random() % 4 == 0) out[i] = -100;
  }
  return result;
}

/// The result of an operation that changes nothing; it keeps its gradient.
Variable inner(const Tensor& x) {
  if (!is_floating(x.dtype())) return Variable(x);
  Variable result = record<IdentityNode>(
      x, [](IdentityNode&) {}, Variable::leaf(x));
  result.retain_grad();
  return result;
}

}  // namespace

bool OpCase::has(Role role) const {
  return std::any_of(inputs.begin(), inputs.end(), [&](Input i) { return i.role == role; });
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  for (const auto& table : {unary_cases,
                            binary_cases,
                            compare_cases,
                            conv2d_cases,
                            extremum_cases,
                            index_cases,
                            linear_cases,
                            linear_cross_entropy_cases,
                            dropout_cases,
                            embedding_cases,
                            layer_norm_cases,
                            matmul_cases,
                            attention_cases,
                            pool2d_cases,
                            reduce_cases,
                            loss_cases,
                            view_cases,
                            view_error_cases}) {
    for (OpCase& row : table()) all.push_back(std::move(row));
  }
  if (const char* part = std::getenv("ACCRUE_OP")) {
    std::erase_if(all, [&](const OpCase& op) { return op.name.find(part) == std::string::npos; });
  }
  return all;
}

Tensor draw(const OpCase& op,
            const std::vector<Shape>& shapes,
            std::size_t input,
            DType dtype,
            std::mt19937_64& random,
            bool special) {
  const Domain domain = op.inputs[input].domain;
  const Shape& shape = shapes[input];
  if (domain == Domain::classes || domain == Domain::classes_or_ignored) {
    const bool some_ignored = domain == Domain::classes_or_ignored;
    return there(draw_classes(shape, shapes[0].back(), some_ignored, random));
  }
  if (domain == Domain::rows) return there(draw_classes(shape, shapes[0][0], false, random));
  Tensor result = Tensor::empty(shape, DType::float64);
  double* out = result.mutable_data<double>();
  std::vector<double> distinct;
  if (domain == Domain::distinct) distinct = draw_distinct(result.numel(), input, random);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    const bool is_distinct = !distinct.empty() && !(special && random() % 4 == 0);
    out[i] =
        is_distinct ? distinct[static_cast<std::size_t>(i)] : draw_number(domain, random, special);
  }
  return there(result.to(dtype));
}

std::vector<Tensor> draw_all(const OpCase& op,
                             const std::vector<Shape>& shapes,
                             DType dtype,
                             std::mt19937_64& random,
                             bool special) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    tensors.push_back(draw(op, shapes, i, dtype, random, special));
  }
  return tensors;
}

Tensor draw_gradient(const Shape& shape, DType dtype, std::mt19937_64& random, bool special) {
  Tensor result = Tensor::empty(shape, DType::float64);
  double* out = result.mutable_data<double>();
  const std::int64_t row_size = shape.rank() == 0 ? 1 : shape.back();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    out[i] = draw_number(Domain::real, random, special);
  }
  for (std::int64_t i = 0; i < result.numel(); i += row_size) {
    if (random() % 4 == 0) std::fill_n(out + i, row_size, random() % 2 == 0 ? 0.0 : -0.0);
  }
  return there(result.to(dtype));
}

Tensor laid_out(const Tensor& x, Layout layout) {
  if (is_floating(x.dtype()) || layout != Layout::interleaved) return with_layout(x, layout);
  Shape wide = x.shape();
  wide.push_back(2);
  Tensor result = Tensor::full(wide, -7, x.dtype(), x.device()).select(-1, 1);
  result.copy_from(x);
  return result;
}

std::vector<Variable> variables_of(const OpCase& op, const std::vector<Tensor>& tensors) {
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool has_samples = carries_samples(op.inputs[i], tensors[i].shape());
    const Tensor x = has_samples ? tensors[i].with_sample_axis({0, 1}) : tensors[i];
    variables.push_back(op.inputs[i].role == Role::parameter ? Variable::leaf(x) : inner(x));
  }
  return variables;
}

Arrays arrays_of(const std::vector<Tensor>& tensors) {
  Arrays arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(array_of(tensor));
  return arrays;
}

bool same_bits(const Tensor& got, const Array& wanted) {
  return equal_bits(got, tensor_of(wanted));
}

}  // namespace accrue::test
