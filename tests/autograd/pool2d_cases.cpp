// Rows of pooling.
#include "accrue/autograd/ops/pool2d.h"
#include "accrue/tests/support/bad_call.h"

#include <cmath>

namespace accrue::test {
namespace {

/// One call's windows: sizes of the result by torch's rule, and the taps of a window.
struct Pool {
  Size2 size, stride, padding, dilation;
  Size2 in, out;
  std::int64_t planes;

  Pool(const Shape& x, Size2 kernel, Size2 step, Size2 pad, Size2 dilate, bool ceil_mode)
      : size(kernel),
        stride(step),
        padding(pad),
        dilation(dilate),
        in(x[x.rank() - 2], x.back()),
        planes(product(x, 0, x.rank() - 2)) {
    const auto count =
        [=](std::int64_t n, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d) {
          const double room =
              static_cast<double>(n + 2 * p - d * (k - 1) - 1) / static_cast<double>(s);
          auto result =
              static_cast<std::int64_t>(ceil_mode ? std::ceil(room) : std::floor(room)) + 1;
          if (ceil_mode && (result - 1) * s >= n + p) --result;
          return result;
        };
    out = {count(in.h, size.h, stride.h, padding.h, dilation.h),
           count(in.w, size.w, stride.w, padding.w, dilation.w)};
  }
  Shape result(Shape shape) const {
    shape[shape.rank() - 2] = out.h;
    shape[shape.rank() - 1] = out.w;
    return shape;
  }
  /// Calls body(window, element) for the windows in row-major order and their taps ascending.
  template <class Body>
  void for_elements(const Body& body) const {
    for (std::int64_t window = 0; window < planes * out.area(); ++window) {
      const std::int64_t plane = window / out.area();
      const std::int64_t i = window % out.area() / out.w, j = window % out.w;
      for (std::int64_t tap = 0; tap < size.area(); ++tap) {
        const std::int64_t row = i * stride.h - padding.h + tap / size.w * dilation.h;
        const std::int64_t column = j * stride.w - padding.w + tap % size.w * dilation.w;
        if (row < 0 || row >= in.h || column < 0 || column >= in.w) continue;
        body(window, (plane * in.h + row) * in.w + column);
      }
    }
  }
};

// ---- the largest element ----

Pool pool_of(const Shape& x, Size2 size, const MaxPool2dOptions& o) {
  return {x, size, o.stride == kKernelSize ? size : o.stride, o.padding, o.dilation, o.ceil_mode};
}

std::vector<std::int64_t> places(const Array& x, const Pool& pool) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(pool.planes * pool.out.area()), -1);
  pool.for_elements([&](std::int64_t window, std::int64_t element) {
    std::int64_t& best = result[static_cast<std::size_t>(window)];
    if (best < 0 || x[element] > x[best] || std::isnan(x[element])) best = element;
  });
  return result;
}

OpCase max_row(const char* name,
               Role role,
               Size2 size,
               const MaxPool2dOptions& options,
               const std::vector<Shape>& shapes) {
  OpCase row;
  row.name = name;
  row.inputs = {{role, Domain::distinct}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.function = [=](auto x) { return max_pool2d(x[0], size, options); };
  row.forward = [=](const Arrays& x) {
    const Pool pool = pool_of(x[0].shape, size, options);
    Array y{pool.result(x[0].shape), {}};
    for (const std::int64_t place : places(x[0], pool)) {
      y.values.push_back(place < 0 ? -HUGE_VALF : x[0][place]);
    }
    return y;
  };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    Array dx = zeros(x[0].shape);
    std::int64_t window = 0;
    for (const std::int64_t place : places(x[0], pool_of(x[0].shape, size, options))) {
      if (place >= 0) dx[place] += dy[window];
      ++window;
    }
    return Arrays{dx};
  };
  return row;
}

// ---- the mean ----

Pool pool_of(const Shape& x, Size2 size, const AvgPool2dOptions& o) {
  return {x, size, o.stride == kKernelSize ? size : o.stride, o.padding, 1, o.ceil_mode};
}

/// Elements of a window of one dimension that lie in the image or, if they count, in the padding.
std::int64_t counted(std::int64_t i,
                     std::int64_t size,
                     std::int64_t stride,
                     std::int64_t padding,
                     std::int64_t in,
                     bool all) {
  std::int64_t count = 0;
  for (std::int64_t tap = 0; tap < size; ++tap) {
    const std::int64_t at = i * stride - padding + tap;
    count += all ? at < in + padding : at >= 0 && at < in;
  }
  return count;
}

float divisor(const Pool& pool, std::int64_t window, const AvgPool2dOptions& o) {
  if (o.divisor_override) return static_cast<float>(*o.divisor_override);
  const std::int64_t i = window % pool.out.area() / pool.out.w, j = window % pool.out.w;
  const bool all = o.count_include_pad;
  return static_cast<float>(counted(i, pool.size.h, pool.stride.h, pool.padding.h, pool.in.h, all) *
                            counted(j, pool.size.w, pool.stride.w, pool.padding.w, pool.in.w, all));
}

/// Tap by tap.
Array average_gradient(const Array& dy,
                       const Shape& from,
                       const Pool& pool,
                       const AvgPool2dOptions& o) {
  Array dx = zeros(from);
  for (std::int64_t tap = 0; tap < pool.size.area(); ++tap) {
    for (std::int64_t window = 0; window < dy.numel(); ++window) {
      const std::int64_t plane = window / pool.out.area();
      const std::int64_t i = window % pool.out.area() / pool.out.w, j = window % pool.out.w;
      const std::int64_t row = i * pool.stride.h - pool.padding.h + tap / pool.size.w;
      const std::int64_t column = j * pool.stride.w - pool.padding.w + tap % pool.size.w;
      if (row < 0 || row >= pool.in.h || column < 0 || column >= pool.in.w) continue;
      dx[(plane * pool.in.h + row) * pool.in.w + column] += dy[window] / divisor(pool, window, o);
    }
  }
  return dx;
}

OpCase average_row(const char* name,
                   Role role,
                   Size2 size,
                   const AvgPool2dOptions& options,
                   const std::vector<Shape>& shapes) {
  OpCase row;
  row.name = name;
  row.inputs = {{role}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.function = [=](auto x) { return avg_pool2d(x[0], size, options); };
  row.forward = [=](const Arrays& x) {
    const Pool pool = pool_of(x[0].shape, size, options);
    Array y = zeros(pool.result(x[0].shape));
    pool.for_elements(
        [&](std::int64_t window, std::int64_t element) { y[window] += x[0][element]; });
    for (std::int64_t i = 0; i < y.numel(); ++i) y[i] /= divisor(pool, i, options);
    return y;
  };
  row.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    const Shape& from = x[0].shape;
    return Arrays{average_gradient(dy, from, pool_of(from, size, options), options)};
  };
  return row;
}

// ---- wrong calls ----

using Call =
    std::function<Variable(const Variable&, Size2, Size2, Size2)>;  // size, stride, padding

std::vector<BadCall> pool_errors(const std::string& name, const Call& call) {
  const auto message = [=](const std::string& rest) { return text("[", name, "] ", rest); };
  const auto range = [=](const char* what, const char* got) {
    return message(text(what, ", 2^31), got ", got, "; check the layer's options"));
  };
  const auto with = [=](Size2 size, Size2 stride, Size2 padding) {
    return [=](auto v) { return call(v[0], size, stride, padding); };
  };
  const Tensor x = Tensor::ones({1, 2, 4, 4});
  const std::string mixes = message(
      "pooling along the sample dimension mixes samples, so its bits would depend on the "
      "micro-batch; reduce with Loss::from_rows or use invariant = false");
  const auto half = [=](const char* size, const char* padding) {
    return message(text("padding must be at most half of the kernel size ",
                        size,
                        ", got ",
                        padding,
                        "; pad the image first"));
  };
  const auto fit = [=](const char* padding, const char* image) {
    return message(
        text("the kernel (3, 3) with dilation (1, 1) must fit into the image with padding ",
             padding,
             ", got an image of ",
             image,
             "; use a smaller kernel or more padding"));
  };
  return {throws<ShapeError>(message("input must be [..., H, W], got [4]; pass images"),
                             {Tensor::ones({4})},
                             with(2, 2, 0)),
          throws<ShapeError>(
              message("input must be [..., H, W], got []; pass images"), {Tensor()}, with(2, 2, 0)),
          throws<ShapeError>(fit("(0, 0)", "(2, 4)"), {Tensor::ones({2, 4})}, with(3, 1, 0)),
          throws<ShapeError>(fit("(1, 1)", "(4, 0)"), {Tensor::ones({4, 0})}, with(3, 1, 1)),
          throws<ValueError>(
              range("the kernel size must lie in [1", "(0, 2)"), {x}, with({0, 2}, 1, 0)),
          throws<ValueError>(range("stride must lie in [1", "(2, 0)"), {x}, with(2, {2, 0}, 0)),
          throws<ValueError>(range("padding must lie in [0", "(-1, 0)"), {x}, with(2, 2, {-1, 0})),
          throws<ValueError>(half("(3, 2)", "(0, 2)"), {x}, with({3, 2}, 1, {0, 2})),
          throws<DTypeError>(message("needs float32 or float64, got int64; convert with to()"),
                             {x.to(DType::int64)},
                             with(2, 2, 0)),
          throws_in_window(mixes, {batch({3, 2, 4}, 1)}, with(2, 2, 0)),
          throws_in_window(mixes, {batch({3, 3, 4, 2}, 3)}, with(2, 2, 0))};
}

void add_errors(std::vector<OpCase>& rows) {
  rows.front().errors =
      pool_errors("max_pool2d", [](const Variable& x, Size2 size, Size2 stride, Size2 padding) {
        return max_pool2d(x, size, {.stride = stride, .padding = padding});
      });
  rows.front().errors.push_back(throws<ValueError>(
      "[max_pool2d] dilation must lie in [1, 2^31), got (0, 0); check the layer's options",
      {Tensor::ones({4, 4})},
      [](auto v) { return max_pool2d(v[0], 2, {.dilation = 0}); }));
  rows.back().errors =
      pool_errors("avg_pool2d", [](const Variable& x, Size2 size, Size2 stride, Size2 padding) {
        return avg_pool2d(x, size, {.stride = stride, .padding = padding});
      });
  rows.back().errors.push_back(
      throws<ValueError>("[avg_pool2d] divisor_override must not be 0, got 0; leave it out to "
                         "divide by the window's size",
                         {Tensor::ones({4, 4})},
                         [](auto v) { return avg_pool2d(v[0], 2, {.divisor_override = 0}); }));
}

}  // namespace

std::vector<OpCase> pool2d_cases() {
  constexpr Role kSamples = Role::samples, kOther = Role::other;
  std::vector<OpCase> rows = {
      max_row("max_pool2d",
              kSamples,
              2,
              {},
              {{2, 1, 4, 4}, {2, 2, 3, 5}, {0, 1, 2, 2}, {3, 2, 2}, {2, 3, 18, 37}, {2, 1, 6, 14}}),
      max_row("max_pool2d of overlapping windows",
              kSamples,
              {3, 2},
              {.stride = 1, .padding = {1, 1}},
              {{2, 1, 3, 4}, {2, 2, 6, 21}}),
      max_row("max_pool2d with every option",
              kSamples,
              {2, 3},
              {.stride = {2, 3}, .padding = {1, 1}, .dilation = {4, 2}, .ceil_mode = true},
              {{2, 1, 3, 6}, {2, 2, 9, 33}}),
      max_row("max_pool2d of images narrower than the padding",
              kSamples,
              5,
              {.stride = 1, .padding = 2},
              {{2, 1, 3, 1}, {2, 2, 1, 2}}),
      max_row("max_pool2d of one image", kOther, 2, {.ceil_mode = true}, {{3, 5}, {1, 1}}),
      average_row("avg_pool2d of one image", kOther, 3, {.stride = 2, .ceil_mode = true}, {{4, 5}}),
      average_row("avg_pool2d of overlapping windows",
                  kSamples,
                  {3, 2},
                  {.stride = 1, .padding = {1, 1}, .count_include_pad = false},
                  {{2, 1, 3, 4}, {2, 2, 6, 21}}),
      average_row("avg_pool2d of images narrower than the padding",
                  kSamples,
                  5,
                  {.stride = 1, .padding = 2},
                  {{2, 1, 3, 1}, {2, 2, 1, 2}}),
      average_row("avg_pool2d with ceil_mode",
                  kSamples,
                  {2, 3},
                  {.stride = {2, 3}, .padding = {1, 1}, .ceil_mode = true},
                  {{2, 1, 3, 6}, {2, 2, 8, 33}}),
      average_row("avg_pool2d with a divisor",
                  kSamples,
                  2,
                  {.stride = 1, .divisor_override = -3},
                  {{2, 1, 3, 3}}),
      average_row("avg_pool2d",
                  kSamples,
                  2,
                  {},
                  {{2, 1, 4, 4}, {2, 2, 3, 5}, {0, 1, 2, 2}, {3, 2, 2}, {2, 3, 18, 37}})};
  add_errors(rows);
  return rows;
}

}  // namespace accrue::test
