// Cases of elementwise functions: of one operand, of two, comparisons and choices.
#include "accrue/bench/device/kernel_cases.h"
#include "accrue/core/error.h"
#include "accrue/kernels/compare.h"
#include "accrue/kernels/elementwise.h"

#include <functional>

namespace accrue::bench {
namespace {

using kernels::BinaryOp;
using kernels::CompareOp;
using kernels::UnaryOp;

/// Numbers far enough from 0 for functions that saturate, and what they treat apart.
Tensor operand(const Sizes& s, Device device, std::uint64_t seed) {
  return with_edges(numbers({s[0]}, device, seed, -8, 8), seed % 2 == 0);
}

/// A range to clamp to; the first is a slope and an exponent, too.
constexpr kernels::UnaryParameters kParameters = {-1.5, 2.5};

Work unary(UnaryOp op, const Sizes& s, Device device) {
  const Tensor x = operand(s, device, 1);
  Tensor y = unwritten({s[0]}, device);
  return {[=]() mutable { launch(device, kernels::UnaryForward{op, x, y, kParameters}); }, {y}};
}

Work unary_backward(UnaryOp op, const Sizes& s, Device device) {
  const Tensor x = operand(s, device, 1), dy = operand(s, device, 2);
  Tensor y, dx = unwritten({s[0]}, device);
  if (kernels::backward_reads_y(op)) {
    y = unwritten({s[0]}, device);
    launch(device, kernels::UnaryForward{op, x, y, kParameters});
  }
  return {[=]() mutable {
            launch(device, kernels::UnaryBackward{op, x, y, dy, dx, kParameters});
          },
          {dx}};
}

Work binary(BinaryOp op, const Sizes& s, Device device) {
  const Tensor a = operand(s, device, 1), b = operand(s, device, 2);
  Tensor y = unwritten({s[0]}, device);
  return {[=]() mutable { launch(device, kernels::BinaryForward{op, a, b, y}); }, {y}};
}

Work binary_with_number(BinaryOp op, const Sizes& s, Device device) {
  const Tensor a = operand(s, device, 1);
  Tensor y = unwritten({s[0]}, device);
  return {[=]() mutable { launch(device, kernels::ScalarForward{op, a, -1.7, y}); }, {y}};
}

/// Operands that are no dense vectors: one is transposed, one repeats a row.
Work add_views(const Sizes& s, Device device) {
  const Tensor a = numbers({s[1], s[0]}, device, 1).transpose(0, 1),
               b = numbers({s[1]}, device, 2).expand({s[0], s[1]});
  Tensor y = unwritten({s[0], s[1]}, device);
  return {[=]() mutable { launch(device, kernels::BinaryForward{BinaryOp::add, a, b, y}); }, {y}};
}

Work larger_backward(const Sizes& s, Device device) {
  const Tensor a = operand(s, device, 1), b = operand(s, device, 2), dy = operand(s, device, 3);
  Tensor dx = unwritten({s[0]}, device);
  return {[=]() mutable { launch(device, kernels::LargerBackward{a, b, dy, dx}); }, {dx}};
}

Work add_scaled(const Sizes& s, Device device) {
  const Tensor x = operand(s, device, 1);
  Tensor y = operand(s, device, 2);
  return {[=]() mutable { launch(device, kernels::AddScaled{-1.7, x, y}); }, {y}};
}

/// Floats, and integers that are often equal.
Work compare(CompareOp op, const Sizes& s, Device device) {
  const Tensor a = operand(s, device, 1), b = operand(s, device, 2),
               i = indices(s[0], 4, device, 1), j = indices(s[0], 4, device, 2);
  Tensor y = unwritten({s[0]}, device, DType::boolean), z = unwritten({s[0]}, device, y.dtype());
  return {[=]() mutable {
            launch(device, kernels::Compare{op, a, b, y});
            launch(device, kernels::Compare{op, i, j, z});
          },
          {y, z}};
}

Work where(const Sizes& s, Device device) {
  const Tensor condition = indices(s[0], 2, Device::cpu()).to(DType::boolean).to(device),
               a = operand(s, device, 1), b = operand(s, device, 2),
               i = indices(s[0], 100, device, 1), j = indices(s[0], 100, device, 2);
  Tensor y = unwritten({s[0]}, device), z = unwritten({s[0]}, device, i.dtype());
  return {[=]() mutable {
            launch(device, kernels::Where{condition, a, b, y});
            launch(device, kernels::Where{condition, i, j, z});
          },
          {y, z}};
}

const std::vector<Sizes> kMany = {{1 << 28}};
const Sizes kRagged = {1031};

/// All functions of one operand. The rates of the longest formula and of exp say enough of the
/// others.
void append_unary(std::vector<KernelCase>& cases) {
  constexpr UnaryOp kOps[] = {
#define ACCRUE_UNARY_OP(name, Formula) UnaryOp::name,
#include "accrue/kernels/unary_ops.def"
  };
  const auto append = [&](const char* suffix, auto count, auto make, UnaryOp op, bool has_rate) {
    cases.push_back({text(name_of(op), suffix),
                     Counted::bytes,
                     has_rate ? kMany : std::vector<Sizes>{},
                     kRagged,
                     count,
                     std::bind_front(make, op)});
  };
  for (const UnaryOp op : kOps) {
    append("", passes<2>, unary, op, op == UnaryOp::gelu || op == UnaryOp::exp);
    append("_backward", passes<3>, unary_backward, op, op == UnaryOp::gelu);
  }
}

void append_binary(std::vector<KernelCase>& cases) {
  using enum BinaryOp;
  for (const BinaryOp op : {sub, mul, div, maximum, minimum})
    cases.push_back(bits_alone(name_of(op), kRagged, std::bind_front(binary, op)));
  for (const BinaryOp op : {add, sub, mul, div, maximum, minimum}) {
    cases.push_back(
        bits_alone(text(name_of(op), "_number"), kRagged, std::bind_front(binary_with_number, op)));
  }
}

void append_comparisons(std::vector<KernelCase>& cases) {
  using enum CompareOp;
  for (const CompareOp op : {eq, ne, lt, le, gt, ge})
    cases.push_back(bits_alone(name_of(op), kRagged, std::bind_front(compare, op)));
}

}  // namespace

std::vector<KernelCase> function_cases() {
  std::vector<KernelCase> cases = {
      {"add", Counted::bytes, kMany, kRagged, passes<3>, std::bind_front(binary, BinaryOp::add)},
      bits_alone("add_views", {37, 70}, add_views),
      bits_alone("add_scaled", kRagged, add_scaled),
      bits_alone("larger_backward", kRagged, larger_backward),
      bits_alone("where", kRagged, where),
  };
  append_unary(cases);
  append_binary(cases);
  append_comparisons(cases);
  return cases;
}

}  // namespace accrue::bench
