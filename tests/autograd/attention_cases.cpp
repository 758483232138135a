// Rows of scaled dot-product attention.
#include "accrue/autograd/ops/attention.h"
#include "accrue/kernels/scalar/exp.h"
#include "accrue/tests/support/bad_call.h"
#include "accrue/tests/support/literal_sum.h"

#include <cmath>
#include <limits>

namespace accrue::test {
namespace {

/// One index of the leading dimensions, read literally.
struct Head {
  const float *q, *k, *v;
  std::int64_t num_queries, num_keys, depth, width;
  bool causal;
  float scale;

  std::int64_t keys_of(std::int64_t i) const { return causal ? i + 1 : num_keys; }

  std::vector<float> weights(std::int64_t i) const {
    std::vector<float> w(static_cast<std::size_t>(keys_of(i)));
    float max = -std::numeric_limits<float>::infinity();
    for (std::size_t j = 0; j < w.size(); ++j) {
      for (std::int64_t d = 0; d < depth; ++d) {
        w[j] = std::fma(q[i * depth + d], k[static_cast<std::int64_t>(j) * depth + d], w[j]);
      }
      w[j] *= scale;
      if (w[j] > max || std::isnan(w[j])) max = w[j];
    }
    max += 0;
    for (float& x : w) x = kernels::scalar::exp(x - max);
    const float sum = literal_sum<float>(
        keys_of(i), [&](std::int64_t j) { return w[static_cast<std::size_t>(j)]; });
    for (float& x : w) x /= sum;
    return w;
  }

  void forward(float* y) const {
    for (std::int64_t i = 0; i < num_queries; ++i) {
      const std::vector<float> w = weights(i);
      for (std::int64_t e = 0; e < width; ++e) {
        float& out = y[i * width + e] = 0;
        for (std::int64_t j = 0; j < keys_of(i); ++j) {
          out = std::fma(w[static_cast<std::size_t>(j)], v[j * width + e], out);
        }
      }
    }
  }

  /// The gradients of the scores before they were scaled.
  std::vector<float> scores(std::int64_t i, const std::vector<float>& w, const float* dy) const {
    std::vector<float> t(w.size());
    for (std::size_t j = 0; j < t.size(); ++j) {
      for (std::int64_t e = 0; e < width; ++e) {
        t[j] = std::fma(dy[i * width + e], v[static_cast<std::int64_t>(j) * width + e], t[j]);
      }
    }
    const float sum = literal_accumulate<float>(keys_of(i), [&](float acc, std::int64_t j) {
      return std::fma(t[static_cast<std::size_t>(j)], w[static_cast<std::size_t>(j)], acc);
    });
    for (std::size_t j = 0; j < t.size(); ++j) t[j] = w[j] * (t[j] - sum) * scale;
    return t;
  }

  void backward(const float* dy, float* dq, float* dk, float* dv) const {
    for (std::int64_t i = 0; i < num_queries; ++i) {
      const std::vector<float> w = weights(i), t = scores(i, w, dy);
      for (std::int64_t j = 0; j < keys_of(i); ++j) {
        const auto at = static_cast<std::size_t>(j);
        for (std::int64_t d = 0; d < depth; ++d) {
          dq[i * depth + d] = std::fma(t[at], k[j * depth + d], dq[i * depth + d]);
          dk[j * depth + d] = std::fma(t[at], q[i * depth + d], dk[j * depth + d]);
        }
        for (std::int64_t e = 0; e < width; ++e) {
          dv[j * width + e] = std::fma(w[at], dy[i * width + e], dv[j * width + e]);
        }
      }
    }
  }
};

/// Calls body(head, number) for each index of the leading dimensions.
template <class Body>
void for_heads(const Arrays& x, bool causal, const Body& body) {
  const int rank = x[0].shape.rank();
  const std::int64_t t = x[0].shape[rank - 2], d = x[0].shape.back();
  const std::int64_t s = x[1].shape[rank - 2], e = x[2].shape.back();
  const double depth = static_cast<double>(std::max<std::int64_t>(d, 1));
  const float scale = static_cast<float>(1 / std::sqrt(depth));
  for (std::int64_t h = 0; h < product(x[0].shape, 0, rank - 2); ++h) {
    const float* const k = x[1].values.data() + h * s * d;
    const float* const v = x[2].values.data() + h * s * e;
    body(Head{x[0].values.data() + h * t * d, k, v, t, s, d, e, causal, scale}, h);
  }
}

OpCase row(const char* name,
           Role role,
           bool causal,
           std::vector<std::vector<Shape>> shapes,
           std::vector<BadCall> errors = {}) {
  OpCase result;
  result.name = name;
  result.inputs = {{role}, {role}, {role}};
  result.shapes = std::move(shapes);
  result.function = [=](auto x) { return scaled_dot_product_attention(x[0], x[1], x[2], causal); };
  result.forward = [=](const Arrays& x) {
    Shape shape = x[0].shape;
    shape[shape.rank() - 1] = x[2].shape.back();
    Array y = zeros(shape);
    for_heads(x, causal, [&](const Head& head, std::int64_t h) {
      head.forward(y.values.data() + h * head.num_queries * head.width);
    });
    return y;
  };
  result.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    Arrays dx = {zeros(x[0].shape), zeros(x[1].shape), zeros(x[2].shape)};
    for_heads(x, causal, [&](const Head& head, std::int64_t h) {
      head.backward(dy.values.data() + h * head.num_queries * head.width,
                    dx[0].values.data() + h * head.num_queries * head.depth,
                    dx[1].values.data() + h * head.num_keys * head.depth,
                    dx[2].values.data() + h * head.num_keys * head.width);
    });
    return dx;
  };
  result.errors = std::move(errors);
  return result;
}

std::vector<BadCall> attention_errors() {
  const Tensor q = Tensor::ones({2, 3, 4}), v = Tensor::ones({2, 3, 5});
  const auto shapes = [](const char* a, const char* b, const char* c) {
    return text(
        "[scaled_dot_product_attention] query, key and value must be [..., T, D], [..., S, D] and "
        "[..., S, E], got ",
        a,
        ", ",
        b,
        " and ",
        c,
        "; expand() leading dimensions that differ");
  };
  const auto dtypes = [](const char* got) {
    return text("[scaled_dot_product_attention] query, key and value must have one dtype, got ",
                got,
                "; convert with to()");
  };
  const auto scaled = [](double scale) {
    return [=](auto x) { return scaled_dot_product_attention(x[0], x[1], x[2], false, scale); };
  };
  const Tensor q64 = q.to(DType::float64), v64 = v.to(DType::float64);
  const char* mixes =
      "[scaled_dot_product_attention] attention across samples mixes samples, so its bits would "
      "depend on the micro-batch; reduce with Loss::from_rows or use invariant = false";
  return {
      throws<ShapeError>(shapes("[4]", "[2, 3, 4]", "[2, 3, 5]"), {Tensor::ones({4}), q, v}),
      throws<ShapeError>(shapes("[3, 4]", "[2, 3, 4]", "[2, 3, 5]"), {Tensor::ones({3, 4}), q, v}),
      throws<ShapeError>(shapes("[1, 3, 4]", "[2, 3, 4]", "[2, 3, 5]"),
                         {Tensor::ones({1, 3, 4}), q, v}),
      throws<ShapeError>(shapes("[2, 3, 5]", "[2, 3, 4]", "[2, 3, 5]"), {v, q, v}),
      throws<ShapeError>(shapes("[2, 3, 4]", "[2, 3, 4]", "[2, 2, 5]"),
                         {q, q, Tensor::ones({2, 2, 5})}),
      throws<ShapeError>(shapes("[2, 3, 4]", "[2, 3, 4]", "[3, 3, 5]"),
                         {q, q, Tensor::ones({3, 3, 5})}),
      throws<ShapeError>(shapes("[]", "[2, 3, 4]", "[2, 3, 5]"), {Tensor(), q, v}),
      throws<ShapeError>(shapes("[2, 3, 4]", "[2, 3, 4]", "[]"), {q, q, Tensor()}),
      throws<ShapeError>(
          "[scaled_dot_product_attention] causal attention needs as many queries as "
          "keys, got 2 and 3",
          {Tensor::ones({2, 2, 4}), q, v},
          [](auto x) { return scaled_dot_product_attention(x[0], x[1], x[2], true); }),
      throws<DTypeError>(dtypes("float64, float32 and float32"), {q64, q, v}),
      throws<DTypeError>(dtypes("float32, float64 and float32"), {q, q64, v}),
      throws<DTypeError>(dtypes("float32, float32 and float64"), {q, q, v64}),
      throws<DTypeError>("[scaled_dot_product_attention] needs float32 or float64, got int64; "
                         "convert with to()",
                         {q.to(DType::int64), q.to(DType::int64), v.to(DType::int64)}),
      throws<ValueError>(
          "[scaled_dot_product_attention] scale must be finite, got nan", {q, q, v}, scaled(NAN)),
      throws<ValueError>("[scaled_dot_product_attention] scale must be finite, got inf",
                         {q, q, v},
                         scaled(HUGE_VAL)),
      throws_in_window(mixes, {batch({2, 3, 4}), q, v}),
      throws_in_window(mixes, {batch({3, 2, 4}, 1), batch({3, 2, 4}, 1), batch({3, 2, 5}, 1)}),
      throws_in_window(mixes, {batch({3, 4}), batch({3, 4}), batch({3, 5})})};
}

}  // namespace

std::vector<OpCase> attention_cases() {
  return {row("attention",
              Role::samples,
              false,
              {{{2, 2, 3}, {2, 3, 3}, {2, 3, 2}},
               {{2, 2, 2, 2}, {2, 2, 2, 2}, {2, 2, 2, 1}},
               {{0, 2, 3}, {0, 2, 3}, {0, 2, 3}},
               {{2, 2, 0}, {2, 3, 0}, {2, 3, 2}},
               {{2, 40, 17}, {2, 35, 17}, {2, 35, 33}}},
              attention_errors()),
          row("causal attention",
              Role::samples,
              true,
              {{{2, 3, 2}, {2, 3, 2}, {2, 3, 2}},
               {{2, 2, 1, 2}, {2, 2, 1, 2}, {2, 2, 1, 2}},
               {{2, 70, 9}, {2, 70, 9}, {2, 70, 40}}}),
          row("attention of one matrix",
              Role::other,
              true,
              {{{3, 2}, {3, 2}, {3, 2}}, {{33, 5}, {33, 5}, {33, 3}}}),
          row("attention to nothing",
              Role::other,
              false,
              {{{2, 3}, {0, 3}, {0, 2}}, {{0, 3}, {2, 3}, {2, 2}}})};
}

}  // namespace accrue::test
