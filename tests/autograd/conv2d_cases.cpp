// Rows of convolutions.
#include "accrue/autograd/ops/conv2d.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/tests/support/bad_call.h"

#include <cmath>

namespace accrue::test {
namespace {

/// The sizes of a call, and where its elements lie.
struct Conv {
  Shape x, w, y;
  Conv2dOptions options;

  Conv(const Shape& image, const Shape& weight, const Conv2dOptions& o)
      : x(image), w(weight), options(o) {
    const auto size = [&](int d, std::int64_t stride, std::int64_t padding, std::int64_t dilation) {
      return (x[d] + 2 * padding - dilation * (w[d] - 1) - 1) / stride + 1;
    };
    y = {x[0],
         w[0],
         size(2, o.stride.h, o.padding.h, o.dilation.h),
         size(3, o.stride.w, o.padding.w, o.dilation.w)};
  }
  static std::int64_t at(
      const Shape& s, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return ((a * s[1] + b) * s[2] + c) * s[3] + d;
  }
  std::int64_t group_of(std::int64_t o) const { return o / (w[0] / options.groups); }
  std::int64_t input_row(std::int64_t i, std::int64_t tap) const {
    return i * options.stride.h - options.padding.h + tap * options.dilation.h;
  }
  std::int64_t input_column(std::int64_t j, std::int64_t tap) const {
    return j * options.stride.w - options.padding.w + tap * options.dilation.w;
  }
  /// The place in x of element (c, kh, kw) of output (n, o, i, j)'s patch; -1 in the padding.
  std::int64_t input(const Shape& out, const Shape& tap) const {
    const std::int64_t row = input_row(out[2], tap[1]), column = input_column(out[3], tap[2]);
    if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) return -1;
    return at(x, out[0], group_of(out[1]) * w[1] + tap[0], row, column);
  }
  template <class Body>
  void for_taps(const Body& body) const {
    for (std::int64_t e = 0; e < w[1] * w[2] * w[3]; ++e) body(e, index_of(e, {w[1], w[2], w[3]}));
  }
};

Array conv_value(const Arrays& x, const Conv2dOptions& options) {
  const Conv conv(x[0].shape, x[1].shape, options);
  const std::int64_t depth = conv.w[1] * conv.w[2] * conv.w[3];
  Array y = zeros(conv.y);
  for (std::int64_t p = 0; p < y.numel(); ++p) {
    const Shape out = index_of(p, conv.y);
    conv.for_taps([&](std::int64_t e, const Shape& tap) {
      const std::int64_t from = conv.input(out, tap);
      y[p] = std::fma(x[1][out[1] * depth + e], from < 0 ? 0.0f : x[0][from], y[p]);
    });
    if (x.size() > 2) y[p] += x[2][out[1]];
  }
  return y;
}

/// Per tap a chain over the group's outputs; taps add up ascending.
Array input_gradient(const Conv& conv, const Array& w, const Array& dy) {
  const std::int64_t outputs = conv.w[0] / conv.options.groups;
  Array dx = zeros(conv.x);
  for (std::int64_t n = 0; n < conv.x[0]; ++n) {
    for (std::int64_t group = 0; group < conv.options.groups; ++group) {
      conv.for_taps([&](std::int64_t, const Shape& tap) {
        for (std::int64_t p = 0; p < conv.y[2] * conv.y[3]; ++p) {
          const std::int64_t i = p / conv.y[3], j = p % conv.y[3];
          float chain = 0;
          for (std::int64_t k = 0; k < outputs; ++k) {
            const std::int64_t o = group * outputs + k;
            chain = std::fma(w[Conv::at(conv.w, o, tap[0], tap[1], tap[2])],
                             dy[Conv::at(conv.y, n, o, i, j)],
                             chain);
          }
          const std::int64_t to = conv.input({n, group * outputs, i, j}, tap);
          if (to >= 0) dx[to] += chain;
        }
      });
    }
  }
  return dx;
}

/// Chains over rows (sample, pixel) of dy that are not zero in all channels.
Arrays conv_gradients(const Arrays& x, const Array& dy, const Conv2dOptions& options) {
  const Conv conv(x[0].shape, x[1].shape, options);
  const std::int64_t depth = conv.w[1] * conv.w[2] * conv.w[3], outputs = conv.w[0];
  Arrays gradients = {outputs > 0 ? input_gradient(conv, x[1], dy) : zeros(conv.x),
                      zeros(conv.w),
                      zeros({outputs})};
  const std::int64_t pixels = conv.y[2] * conv.y[3];
  for (std::int64_t row = 0; row < conv.y[0] * pixels; ++row) {
    const std::int64_t n = row / pixels, i = row % pixels / conv.y[3], j = row % conv.y[3];
    const auto gradient = [&](std::int64_t o) { return dy[Conv::at(conv.y, n, o, i, j)]; };
    bool is_zero = true;
    for (std::int64_t o = 0; o < outputs; ++o) is_zero &= gradient(o) == 0;
    for (std::int64_t o = 0; o < outputs && !is_zero; ++o) {
      conv.for_taps([&](std::int64_t e, const Shape& tap) {
        const std::int64_t from = conv.input({n, o, i, j}, tap);
        float& element = gradients[1][o * depth + e];
        element = std::fma(gradient(o), from < 0 ? 0.0f : x[0][from], element);
      });
      gradients[2][o] += gradient(o);
    }
  }
  gradients.resize(x.size());
  return gradients;
}

OpCase conv_row(const char* name,
                const Conv2dOptions& options,
                std::vector<Role> roles,
                std::vector<std::vector<Shape>> shapes) {
  OpCase row;
  row.name = name;
  for (const Role role : roles) row.inputs.push_back({role});
  row.shapes = std::move(shapes);
  row.function = [=](std::span<const Variable> x) {
    return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Variable(), options);
  };
  row.forward = [=](const Arrays& x) { return conv_value(x, options); };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    return conv_gradients(x, dy, options);
  };
  return row;
}

Function with(const Conv2dOptions& options) {
  return [=](std::span<const Variable> x) { return conv2d(x[0], x[1], Variable(), options); };
}

std::vector<BadCall> shape_errors() {
  const Tensor x = Tensor::ones({2, 4, 5, 5}), w = Tensor::ones({6, 4, 3, 3});
  const auto weight = [](const char* got) {
    return text("[conv2d] weight must be [O, C / groups, KH, KW], got ", got);
  };
  const auto input = [](const char* got) {
    return text("[conv2d] input must be [N, C, H, W], got ", got, "; unsqueeze(0) a single image");
  };
  const auto bias = [](const char* got) {
    return text("[conv2d] bias must be [6] for weight [6, 4, 3, 3], got ", got);
  };
  const auto image =
      [](const char* kernel, const char* dilation, const char* padding, const char* got) {
        return text("[conv2d] the kernel ",
                    kernel,
                    " with dilation ",
                    dilation,
                    " must fit into the image with padding ",
                    padding,
                    ", got an image of ",
                    got,
                    "; use a smaller kernel or more padding");
      };
  return {throws<ShapeError>(weight("[6, 4, 3]"), {x, Tensor::ones({6, 4, 3})}),
          throws<ShapeError>(weight("[6, 4, 3, 3, 1]"), {x, Tensor::ones({6, 4, 3, 3, 1})}),
          throws<ShapeError>(weight("[]"), {x, Tensor()}),
          throws<ShapeError>(input("[4, 5, 5]"), {Tensor::ones({4, 5, 5}), w}),
          throws<ShapeError>(input("[]"), {Tensor(), w}),
          throws<ShapeError>("[conv2d] input must have groups * 4 channels for groups = 1 and "
                             "weight [6, 4, 3, 3], got "
                             "[2, 3, 5, 5]; check in_channels",
                             {Tensor::ones({2, 3, 5, 5}), w}),
          throws<ShapeError>("[conv2d] input must have groups * 4 channels for groups = 2 and "
                             "weight [6, 4, 3, 3], got "
                             "[2, 4, 5, 5]; check in_channels",
                             {x, w},
                             with({.groups = 2})),
          throws<ShapeError>(
              "[conv2d] the output channels must be a multiple of groups = 4, got weight "
              "[6, 4, 3, 3]",
              {x, w},
              with({.groups = 4})),
          throws<ShapeError>(bias("[4]"), {x, w, Tensor::ones({4})}),
          throws<ShapeError>(bias("[1, 6]"), {x, w, Tensor::ones({1, 6})}),
          throws<ShapeError>(image("(3, 3)", "(1, 1)", "(0, 0)", "(2, 5)"),
                             {Tensor::ones({2, 4, 2, 5}), w}),
          throws<ShapeError>(
              image("(3, 3)", "(1, 3)", "(0, 0)", "(5, 5)"), {x, w}, with({.dilation = {1, 3}})),
          throws<ShapeError>(image("(3, 3)", "(1, 1)", "(1, 0)", "(0, 5)"),
                             {Tensor::ones({2, 4, 0, 5}), w},
                             with({.padding = {1, 0}}))};
}

std::vector<BadCall> option_errors() {
  const Tensor x = Tensor::ones({2, 4, 5, 5}), w = Tensor::ones({6, 4, 3, 3});
  const auto range = [](const char* what, const char* got) {
    return text("[conv2d] ", what, ", 2^31), got ", got, "; check the layer's options");
  };
  return {
      throws<ValueError>("[conv2d] groups must be at least 1, got 0", {x, w}, with({.groups = 0})),
      throws<ValueError>(
          range("stride must lie in [1", "(0, 1)"), {x, w}, with({.stride = {0, 1}})),
      throws<ValueError>(range("stride must lie in [1", "(1, 2147483648)"),
                         {x, w},
                         with({.stride = {1, std::int64_t{1} << 31}})),
      throws<ValueError>(
          range("padding must lie in [0", "(-1, -1)"), {x, w}, with({.padding = -1})),
      throws<ValueError>(range("dilation must lie in [1", "(0, 0)"), {x, w}, with({.dilation = 0})),
      throws<ValueError>(range("the kernel size must lie in [1", "(3, 0)"),
                         {x, Tensor::ones({6, 4, 3, 0})})};
}

std::vector<BadCall> type_and_window_errors() {
  const Tensor x = Tensor::ones({2, 4, 5, 5}), w = Tensor::ones({6, 4, 3, 3}),
               b = Tensor::ones({6});
  const auto dtypes = [](const char* got) {
    return text(
        "[conv2d] input, weight and bias must have one dtype, got ", got, "; convert with to()");
  };
  const char* not_leaf =
      "[conv2d] weight and bias must be parameters in a window, got the result of an operation; "
      "use "
      "invariant = false";
  return {
      throws<DTypeError>(dtypes("float64, float32 and float32"), {x.to(DType::float64), w}),
      throws<DTypeError>(dtypes("float32, float32 and float64"), {x, w, b.to(DType::float64)}),
      throws<DTypeError>("[conv2d] needs float32 or float64, got int64; convert with to()",
                         {x.to(DType::int64), w.to(DType::int64)}),
      throws_in_window(
          "[conv2d] the input of a parameter must be sample-major in a window (dimension 0 counts "
          "samples), got shape [2, 4, 5, 5] without a known sample dimension; keep the batch "
          "dimension first or use invariant = false",
          {x, w},
          [](auto v) { return conv2d(Variable(v[0].value()), v[1]); }),
      throws_in_window(
          "[conv2d] a convolution along the sample dimension mixes samples, so its bits would "
          "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false",
          {batch({4, 2, 5, 5}, 1), Tensor::ones({6, 2, 3, 3})}),
      throws_in_window(
          not_leaf, {batch({2, 4, 5, 5}), w}, [](auto v) { return conv2d(v[0], neg(v[1])); }),
      throws_in_window(not_leaf, {batch({2, 4, 5, 5}), w, b}, [](auto v) {
        return conv2d(v[0], v[1], neg(v[2]));
      })};
}

}  // namespace

std::vector<OpCase> conv2d_cases() {
  constexpr Role kSamples = Role::samples, kParameter = Role::parameter, kOther = Role::other;
  const std::vector<Role> weight = {kSamples, kParameter};
  const std::vector<Role> all = {kSamples, kParameter, kParameter};
  std::vector<OpCase> rows = {
      conv_row("conv2d",
               {},
               weight,
               {{{2, 1, 3, 3}, {2, 1, 2, 2}},
                {{3, 2, 1, 4}, {1, 2, 1, 1}},
                {{2, 3, 9, 11}, {5, 3, 3, 2}}}),
      conv_row("conv2d with bias and padding",
               {.padding = 1},
               all,
               {{{2, 2, 3, 2}, {2, 2, 3, 3}, {2}},
                {{0, 1, 3, 3}, {2, 1, 3, 3}, {2}},
                {{2, 0, 3, 3}, {2, 0, 3, 3}, {2}},
                {{2, 1, 3, 3}, {0, 1, 3, 3}, {0}},
                {{2, 3, 8, 7}, {18, 3, 3, 3}, {18}}}),
      conv_row("conv2d with every option",
               {.stride = {2, 3}, .padding = {2, 1}, .dilation = {1, 2}, .groups = 2},
               all,
               {{{1, 2, 3, 5}, {2, 1, 2, 2}, {2}}, {{2, 4, 6, 9}, {6, 2, 3, 3}, {6}}}),
      conv_row("conv2d whose outer taps see only padding",
               {.padding = {4, 3}, .dilation = {3, 2}},
               all,
               {{{2, 1, 1, 1}, {2, 1, 3, 1}, {2}}, {{2, 2, 1, 2}, {3, 2, 3, 3}, {3}}}),
      conv_row("conv2d per channel",
               {.padding = {0, 1}, .groups = 3},
               weight,
               {{{2, 3, 2, 3}, {3, 1, 2, 3}}}),
      conv_row("conv2d with a weight that an operation made",
               {.stride = 2},
               {kSamples, kOther, kOther},
               {{{2, 2, 3, 3}, {1, 2, 2, 2}, {1}}})};
  for (const auto& errors : {shape_errors(), option_errors(), type_and_window_errors()}) {
    rows[0].errors.insert(rows[0].errors.end(), errors.begin(), errors.end());
  }
  return rows;
}

}  // namespace accrue::test
