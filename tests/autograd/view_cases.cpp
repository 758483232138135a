// Rows of views: other shapes of the same elements.
#include "accrue/autograd/ops/views.h"
#include "accrue/tests/support/literal_sum.h"
#include "accrue/tests/support/op_case.h"

#include <cstdlib>

namespace accrue::test {
namespace {

/// Where an element of a view comes from.
struct Origin {
  std::size_t input = 0;
  std::int64_t element = 0;
};

/// The shape of a view and the origin of the element at an index.
struct Map {
  Shape shape;
  std::function<Origin(const Shape& index)> origin;
};

/// A view: the operation, and where its elements come from.
struct View {
  Function op;
  std::function<Map(const Arrays& x)> map;
  bool sums = false;  ///< takes elements more than once
};

Array gathered(const Map& map, const Arrays& x) {
  Array y = zeros(map.shape);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const Origin from = map.origin(index_of(i, y.shape));
    y[i] = x[from.input][from.element];
  }
  return y;
}

/// +0 where no element went.
Arrays scattered(const Map& map, const Arrays& x, const Array& dy, bool sums) {
  std::vector<std::vector<std::vector<float>>> terms;
  for (const Array& input : x) terms.emplace_back(input.values.size());
  for (std::int64_t i = 0; i < dy.numel(); ++i) {
    const Origin from = map.origin(index_of(i, dy.shape));
    terms[from.input][static_cast<std::size_t>(from.element)].push_back(dy[i]);
  }
  Arrays gradients;
  for (std::size_t k = 0; k < x.size(); ++k) {
    Array dx = zeros(x[k].shape);
    for (std::int64_t e = 0; e < dx.numel(); ++e) {
      const std::vector<float>& list = terms[k][static_cast<std::size_t>(e)];
      const auto count = static_cast<std::int64_t>(list.size());
      const auto term = [&](std::int64_t j) { return list[static_cast<std::size_t>(j)]; };
      dx[e] = sums ? literal_sum<float>(count, term) : count == 1 ? list[0] : 0;
    }
    gradients.push_back(dx);
  }
  return gradients;
}

OpCase row(const char* name,
           std::vector<Role> roles,
           std::vector<std::vector<Shape>> shapes,
           const View& view) {
  OpCase result;
  result.name = name;
  for (const Role role : roles) result.inputs.push_back({role});
  result.shapes = std::move(shapes);
  result.function = view.op;
  result.forward = [=](const Arrays& x) { return gathered(view.map(x), x); };
  result.backward = [=](const Arrays& x, const Array&, const Array& dy) {
    return scattered(view.map(x), x, dy, view.sums && dy.shape != x[0].shape);
  };
  return result;
}

// ---- the views ----

/// reshape(); -1 is what is left.
View reshaped(const Shape& to) {
  return {[=](auto x) { return reshape(x[0], to); },
          [=](const Arrays& x) {
            Shape shape = to;
            for (int d = 0; d < to.rank(); ++d) {
              if (to[d] < 0) shape[d] = x[0].numel() / std::abs(numel(to));
            }
            return Map{shape, [=](const Shape& i) { return Origin{0, element_at(i, shape)}; }};
          }};
}

/// Index d of the result is index order[d] of the operand.
View reordered(std::vector<int> order, Function op) {
  return {std::move(op), [=](const Arrays& x) {
            const Shape from = x[0].shape;
            const auto source_of = [=](int d) { return order[static_cast<std::size_t>(d)]; };
            Shape shape = from;
            for (int d = 0; d < from.rank(); ++d) shape[d] = from[source_of(d)];
            return Map{shape, [=](const Shape& index) {
                         Shape source = index;
                         for (int d = 0; d < from.rank(); ++d) source[source_of(d)] = index[d];
                         return Origin{0, element_at(source, from)};
                       }};
          }};
}

View permuted(std::vector<int> order) {
  return reordered(order, [=](auto x) { return permute(x[0], order); });
}

/// expand(); -1 keeps a size.
View expanded(const Shape& to) {
  return {
      [=](auto x) { return expand(x[0], to); },
      [=](const Arrays& x) {
        const Shape from = x[0].shape;
        Shape shape = to;
        for (int d = 0; d < to.rank(); ++d) {
          if (to[d] < 0) shape[d] = from[d];
        }
        return Map{shape, [=](const Shape& index) { return Origin{0, element_at(index, from)}; }};
      },
      true};
}

/// `count` entries start, start + step, ... of dimension `dim`.
View picked(int dim, std::int64_t start, std::int64_t count, std::int64_t step, Function op) {
  return {std::move(op), [=](const Arrays& x) {
            const Shape from = x[0].shape;
            Shape shape = from;
            shape[dim] = count;
            return Map{shape, [=](Shape index) {
                         index[dim] = start + index[dim] * step;
                         return Origin{0, element_at(index, from)};
                       }};
          }};
}

View narrowed(int dim, std::int64_t start, std::int64_t count) {
  return picked(dim, start, count, 1, [=](auto x) { return narrow(x[0], dim, start, count); });
}

/// select(); `argument` may count from the end.
View selected(int dim, std::int64_t at, std::int64_t argument) {
  return {[=](auto x) { return select(x[0], dim, argument); },
          [=](const Arrays& x) {
            const Shape from = x[0].shape;
            Shape shape = from;
            shape.erase(dim);
            return Map{shape, [=](Shape index) {
                         index.insert(dim, at);
                         return Origin{0, element_at(index, from)};
                       }};
          }};
}

View joined(int dim) {
  return {[=](auto x) { return cat(x, dim); },
          [=](const Arrays& x) {
            std::vector<Shape> from;
            for (const Array& input : x) from.push_back(input.shape);
            Shape shape = from[0];
            shape[dim] = 0;
            for (const Shape& part : from) shape[dim] += part[dim];
            return Map{shape, [=](Shape index) {
                         std::size_t k = 0;
                         for (; index[dim] >= from[k][dim]; ++k) index[dim] -= from[k][dim];
                         return Origin{k, element_at(index, from[k])};
                       }};
          }};
}

}  // namespace

std::vector<OpCase> view_cases() {
  const std::vector<Role> samples = {Role::samples}, two = {Role::samples, Role::samples};
  const std::vector<Role> other = {Role::other}, three(3, Role::other);
  const std::vector<std::vector<Shape>> solid = {{{4, 2, 3}}, {{0, 2, 3}}};
  const std::vector<std::vector<Shape>> flat = {{{4, 3}}, {{4}}, {{4, 0}}};
  const auto swap = [](auto x) { return transpose(x[0], 1, -1); };
  const auto swap_all = [](auto x) { return transpose(x[0], 0, -1); };
  const auto merge = [](auto x) { return flatten(x[0], 1, -1); };
  const auto every_second = [](auto x) { return slice(x[0], 1, 1, -1, 2); };
  const auto every_third = [](auto x) { return slice(x[0], 0, -6, 100, 3); };
  return {row("reshape of samples", samples, solid, reshaped({-1, 6})),
          row("reshape to rows", samples, solid, reshaped({-1, 3})),
          row("reshape to a vector", other, {{{2, 3}}, {{}}, {{0, 3}}, {{5}}}, reshaped({-1})),
          row("flatten", samples, solid, {merge, reshaped({-1, 6}).map}),
          row("permute of samples", samples, solid, permuted({0, 2, 1})),
          row("permute", other, {{{4, 2, 3}}, {{2, 0, 3}}}, permuted({2, 0, 1})),
          row("transpose of samples", samples, solid, reordered({0, 2, 1}, swap)),
          row("transpose", other, {{{4, 3}}, {{0, 3}}}, reordered({1, 0}, swap_all)),
          row("expand of samples",
              samples,
              {{{4, 1, 3}}, {{0, 1, 3}}, {{3, 1, 0}}},
              expanded({-1, 4, -1})),
          row("expand", other, {{{3}}, {{}}, {{1}}, {{2, 1}}}, expanded({2, 3})),
          row("expand to nothing", other, {{{1, 3}}, {{1, 1}}}, expanded({0, 3})),
          row("select of samples", samples, solid, selected(1, 1, -1)),
          row("select", other, flat, selected(0, 2, 2)),
          row("narrow of samples", samples, solid, narrowed(2, 1, 2)),
          row("narrow", other, flat, narrowed(0, 1, 3)),
          row("narrow to nothing", other, flat, narrowed(0, 4, 0)),
          row("slice of samples",
              samples,
              {{{4, 5}}, {{0, 5}}, {{2, 5, 2}}},
              picked(1, 1, 2, 2, every_second)),
          row("slice", other, {{{7}}, {{7, 2}}}, picked(0, 1, 2, 3, every_third)),
          row("cat of samples", two, {{{4, 3}, {4, 2}}, {{3, 0, 2}, {3, 2, 2}}}, joined(1)),
          row("cat", three, {{{2, 3}, {1, 3}, {0, 3}}, {{2}, {0}, {3}}}, joined(0))};
}

}  // namespace accrue::test
