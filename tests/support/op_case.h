// OpCase: one row per operation. The sweeps read the rows; a new operation needs nothing else.
#pragma once

#include "accrue/autograd/variable.h"
#include "accrue/tests/support/array.h"
#include "accrue/tests/support/layouts.h"
#include "accrue/tests/support/quick.h"

#include <functional>
#include <random>
#include <string>
#include <typeindex>
#include <vector>

namespace accrue::test {

enum class Role : std::uint8_t {
  samples,    ///< dimension 0 counts samples: entry i of the result depends on entry i alone
  parameter,  ///< a leaf; its gradient is a chain over the samples
  other,      ///< the result of an operation, without samples
};

/// Which values an input takes.
enum class Domain : std::uint8_t {
  real,
  positive,
  nonzero,             ///< at least 0.25 away from 0: divisors, and inputs of relu for differences
  distinct,            ///< 1/8 or more apart, also from those of the next input: for maxima
  classes,             ///< int64 in [0, C), where C is the last size of input 0
  classes_or_ignored,  ///< one in four is -100
  rows,                ///< int64 in [0, R), where R is the first size of input 0
};

struct Input {
  Role role = Role::other;
  Domain domain = Domain::real;
};

using Function = std::function<Variable(std::span<const Variable>)>;

/// A call that must throw `type` with exactly `message`. In a window, inputs that know their
/// samples are the batch; all other floating point inputs are leaves.
struct BadCall {
  std::type_index type = typeid(Error);
  std::string message;
  std::vector<Tensor> inputs;
  Function call = {};  ///< of the row if empty
  bool in_window = false;
};

struct OpCase {
  std::string name;
  std::vector<Input> inputs;
  std::vector<std::vector<Shape>> shapes;  ///< sets of shapes of the inputs
  Function function;
  /// The same result by plain loops, and its gradients with respect to all inputs. A parameter's
  /// gradient is one chain from +0 that no close ends.
  std::function<Array(const Arrays& inputs)> forward;
  std::function<Arrays(const Arrays& inputs, const Array& y, const Array& dy)> backward;
  std::vector<BadCall> errors = {};
  bool is_derivative = true;  ///< false where a gradient is left out on purpose

  bool has(Role role) const;
};

/// All rows, or those whose name holds the environment's ACCRUE_OP. Each table is a file of
/// tests/autograd.
std::vector<OpCase> op_cases();
std::vector<OpCase> unary_cases();
std::vector<OpCase> binary_cases();
std::vector<OpCase> compare_cases();
std::vector<OpCase> conv2d_cases();
std::vector<OpCase> extremum_cases();
std::vector<OpCase> index_cases();
std::vector<OpCase> linear_cases();
std::vector<OpCase> linear_cross_entropy_cases();
std::vector<OpCase> dropout_cases();
std::vector<OpCase> embedding_cases();
std::vector<OpCase> layer_norm_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> pool2d_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> loss_cases();
std::vector<OpCase> view_cases();
/// Wrong calls of views, a row per operation.
std::vector<OpCase> view_error_cases();

/// True if `input` of this shape carries samples.
inline bool carries_samples(const Input& input, const Shape& shape) {
  return input.role == Role::samples && shape.rank() > 0;
}

/// Random values of the input's domain. With `special` some are infinite, NaN, zeros, subnormal.
Tensor draw(const OpCase& op,
            const std::vector<Shape>& shapes,
            std::size_t input,
            DType dtype,
            std::mt19937_64& random,
            bool special = false);
/// draw() of all inputs.
std::vector<Tensor> draw_all(const OpCase& op,
                             const std::vector<Shape>& shapes,
                             DType dtype,
                             std::mt19937_64& random,
                             bool special = false);
/// A gradient of a result; one row in four is zero.
Tensor draw_gradient(const Shape& shape,
                     DType dtype,
                     std::mt19937_64& random,
                     bool special = false);

/// The values of `x` in another layout; between interleaved classes lies a class that is none.
Tensor laid_out(const Tensor& x, Layout layout);

/// What the row's function takes: leaves for parameters, results of operations for all others.
/// Samples know that they are.
std::vector<Variable> variables_of(const OpCase& op, const std::vector<Tensor>& tensors);

Arrays arrays_of(const std::vector<Tensor>& tensors);

/// True when shape and bits agree; NaNs are equal.
bool same_bits(const Tensor& got, const Array& wanted);

}  // namespace accrue::test
