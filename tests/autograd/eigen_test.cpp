// Eigen as an independent oracle in double: linear, attention, softmax, layer_norm, random shapes.
#include "accrue/autograd/autograd.h"
#include "accrue/tests/support/doctest.h"

#include <Eigen/Core>
#include <cmath>
#include <random>

using namespace accrue;

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::mt19937 random_bits(5);

std::int64_t random_size() { return 1 + static_cast<std::int64_t>(random_bits() % 40); }

Variable random_leaf(const Shape& shape) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(product(shape, 0, shape.rank())));
  for (double& value : values) value = normal(random_bits);
  return Variable::leaf(Tensor::from(values, shape));
}

/// The last dimension across, the others down.
Matrix matrix(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  const std::int64_t columns = x.size(-1);
  return Eigen::Map<const Matrix>(values.data(), x.numel() / columns, columns);
}

void check_close(const Tensor& ours, const Matrix& theirs) {
  const Matrix difference = matrix(ours) - theirs;
  CHECK(difference.cwiseAbs().maxCoeff() <= 1e-12 * (1 + theirs.cwiseAbs().maxCoeff()));
}

Matrix softmax_of(const Matrix& x) {
  const Matrix e = (x.colwise() - x.rowwise().maxCoeff()).array().exp();
  return e.array().colwise() / e.rowwise().sum().array();
}

}  // namespace

TEST_CASE("autograd.eigen: products, softmax and layer_norm agree with Eigen on random shapes") {
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t rows = random_size(), depth = random_size(), columns = random_size();
    CAPTURE(rows);
    CAPTURE(depth);
    CAPTURE(columns);
    const Variable x = random_leaf({rows, depth}), w = random_leaf({columns, depth});
    const Variable b = random_leaf({columns}), k = random_leaf({1, columns, depth});
    const Variable v = random_leaf({1, columns, rows}), dy = random_leaf({rows, columns});
    const Matrix x_ = matrix(x.value()), w_ = matrix(w.value()), dy_ = matrix(dy.value());

    const Variable y = linear(x, w, b);
    check_close(y.value(), (x_ * w_.transpose()).rowwise() + matrix(b.value()).row(0));
    y.backward(dy.value());
    check_close(x.grad(), dy_ * w_);
    check_close(w.grad(), dy_.transpose() * x_);
    check_close(b.grad(), dy_.colwise().sum());
    check_close(matmul(x, transpose(w, 0, 1)).value(), x_ * w_.transpose());

    const Matrix scores =
        x_ * matrix(k.value()).transpose() / std::sqrt(static_cast<double>(depth));
    check_close(scaled_dot_product_attention(reshape(x, {1, rows, depth}), k, v).value(),
                softmax_of(scores) * matrix(v.value()));
    check_close(softmax(x).value(), softmax_of(x_));
    check_close(log_softmax(x).value(), softmax_of(x_).array().log());

    const Matrix centred = x_.colwise() - x_.rowwise().mean();
    const Matrix variance = centred.array().square().rowwise().mean() + 1e-5;
    check_close(layer_norm(x, {depth}).value(),
                centred.array().colwise() / variance.array().col(0).sqrt());
  }
  MESSAGE(kRounds, " random shapes");
}
