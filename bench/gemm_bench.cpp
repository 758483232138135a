// The linear layer's products against OpenBLAS: speed, price of lanes, bits.
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/core/bits.h"
#include "accrue/core/generator.h"
#include "accrue/core/tensor.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/linear.h"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue::bench {
namespace {

using kernels::LaneInstruction;
using kernels::LaneProgram;
using kernels::Matrix;

/// x [N, I], w [O, I], y and dy [N, O].
struct Size {
  std::int64_t n, i, o;

  double products() const {
    return static_cast<double>(n) * static_cast<double>(i) * static_cast<double>(o);
  }
};

const std::vector<Size> kSizes = {{96, 96, 96},
                                  {64, 784, 256},
                                  {384, 384, 384},
                                  {768, 768, 768},
                                  {1536, 1536, 1536},
                                  {4096, 768, 3072}};

constexpr double kSmall = 2e7;  // products, of the two smallest sizes

/// The program that splits `rows` into lanes and merges them by the aligned tree.
std::vector<LaneInstruction> lane_program(std::int64_t rows, std::int64_t lanes) {
  std::vector<LaneInstruction> program;
  int depth = 0;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    program.push_back(LaneInstruction::zero());
    program.push_back(LaneInstruction::chain(rows * lane / lanes, rows * (lane + 1) / lanes));
    program.push_back(LaneInstruction::close());
    for (std::int64_t done = lane + 1; done % 2 == 0; done /= 2)
      program.push_back(LaneInstruction::merge(depth--));
    program.push_back(LaneInstruction::store(lane + 1 < lanes ? ++depth : 0));
  }
  return program;
}

Tensor random_tensor(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Tensor tensor = Tensor::empty({rows, cols});
  Generator(seed).uniform(std::span(tensor.mutable_data<float>(), std::size_t(rows * cols)), -1, 1);
  return tensor;
}

/// One layer's operands and the four products, ours and OpenBLAS's.
class Layer {
 public:
  explicit Layer(const Size& size)
      : size_(size),
        x_(random_tensor(size.n, size.i, 1)),
        w_(random_tensor(size.o, size.i, 2)),
        dy_(random_tensor(size.n, size.o, 3)),
        y_(Tensor::empty({size.n, size.o})),
        dx_(Tensor::empty({size.n, size.i})),
        dw_(Tensor::empty({size.o, size.i})),
        one_lane_(lane_program(size.n, 1)),
        eight_lanes_(lane_program(size.n, 8)) {}

  void forward() { launch_cpu(kernels::LinearForward<float>{x(), w(), nullptr, view(y_)}); }
  void input_grad() { launch_cpu(kernels::LinearInputGrad<float>{dy(), w(), view(dx_)}); }
  void weight_grad(std::int64_t lanes) {
    float* const buffers[] = {dw_.mutable_data<float>()};
    launch_cpu(kernels::LinearWeightGrad<float>{
        dy(), x(), {lanes == 1 ? one_lane_ : eight_lanes_, 1, 3}, buffers});
  }

  void peer_forward() { sgemm(CblasNoTrans, CblasTrans, x_, w_, y_, size_.i); }
  void peer_input_grad() { sgemm(CblasNoTrans, CblasNoTrans, dy_, w_, dx_, size_.o); }
  void peer_weight_grad() { sgemm(CblasTrans, CblasNoTrans, dy_, x_, dw_, size_.n); }

  /// Whether ours equal plain fma loops. Of large products the loops take every few elements.
  bool forward_is_exact() {
    forward();
    return is_exact(view(y_), x(), w().transposed(), 1);
  }
  bool input_grad_is_exact() {
    input_grad();
    return is_exact(view(dx_), dy(), w(), 1);
  }
  bool weight_grad_is_exact(std::int64_t lanes) {
    weight_grad(lanes);
    return is_exact(view(dw_), dy().transposed(), x(), lanes);
  }

 private:
  static Matrix<float> view(Tensor& t) {
    return kernels::row_major(t.mutable_data<float>(), t.size(0), t.size(1));
  }
  static Matrix<const float> view(const Tensor& t) {
    return kernels::row_major(t.data<float>(), t.size(0), t.size(1));
  }
  Matrix<const float> x() const { return view(x_); }
  Matrix<const float> w() const { return view(w_); }
  Matrix<const float> dy() const { return view(dy_); }

  static void sgemm(CBLAS_TRANSPOSE trans_a,
                    CBLAS_TRANSPOSE trans_b,
                    const Tensor& a,
                    const Tensor& b,
                    Tensor& c,
                    std::int64_t depth) {
    const auto number = [](std::int64_t x) { return static_cast<blasint>(x); };
    cblas_sgemm(CblasRowMajor,
                trans_a,
                trans_b,
                number(c.size(0)),
                number(c.size(1)),
                number(depth),
                1,
                a.data<float>(),
                number(a.size(1)),
                b.data<float>(),
                number(b.size(1)),
                0,
                c.mutable_data<float>(),
                number(c.size(1)));
  }

  /// The sum over the leaves [begin, end) of `lanes` equal lanes, split at the middle.
  static float tree(Matrix<const float> a,
                    Matrix<const float> b,
                    std::int64_t row,
                    std::int64_t col,
                    const std::pair<std::int64_t, std::int64_t>& leaves,
                    std::int64_t lanes) {
    const auto [begin, end] = leaves;
    if (end - begin > 1) {
      const std::int64_t middle = (begin + end) / 2;
      return tree(a, b, row, col, {begin, middle}, lanes) +
             tree(a, b, row, col, {middle, end}, lanes);
    }
    float acc = 0;
    for (std::int64_t k = a.cols * begin / lanes; k < a.cols * end / lanes; ++k)
      acc = std::fma(a(row, k), b(k, col), acc);
    return acc + 0.0f;
  }

  bool is_exact(Matrix<float> c,
                Matrix<const float> a,
                Matrix<const float> b,
                std::int64_t lanes) const {
    constexpr double kMostProducts = 2e7;
    const auto step = 1 + static_cast<std::int64_t>(size_.products() / kMostProducts);
    for (std::int64_t at = 0; at < c.rows * c.cols; at += step) {
      const std::int64_t row = at / c.cols, col = at % c.cols;
      if (bits_of(c(row, col)) != bits_of(tree(a, b, row, col, {0, lanes}, lanes))) return false;
    }
    return true;
  }

  Size size_;
  Tensor x_, w_, dy_, y_, dx_, dw_;
  std::vector<kernels::LaneInstruction> one_lane_, eight_lanes_;
};

class Comparison {
 public:
  Comparison(Report& report, int pairs) : report_(report), pairs_(pairs) {}

  void run(const Size& size, int threads) {
    kernels::set_num_threads(threads);
    openblas_set_num_threads(threads);
    Layer layer(size);
    const std::string where = fmt::format(
        "{} x {} x {}, {} thread{}", size.n, size.i, size.o, threads, threads > 1 ? "s" : "");
    const auto one_lane = [&] { layer.weight_grad(1); };
    const auto eight_lanes = [&] { layer.weight_grad(8); };
    // Short lanes live by foreseen branches, which a neighbour on the core unsettles for seconds:
    // of small sizes the least of some medians, spread over time, is what the lanes cost.
    double lanes = std::numeric_limits<double>::infinity();
    int rounds = 0;
    const auto time_lanes = [&] {
      const Pair pair =
          time_in_turns(repeated(eight_lanes, 0.005), repeated(one_lane, 0.005), pairs_);
      lanes = std::min(lanes, 1 / pair.ratio);
      ++rounds;
    };
    const auto compare = [&](const char* what, auto ours, auto peer) {
      report_.compare(fmt::format("{} {}", what, where),
                      time_in_turns(rested(repeated(ours), threads), repeated(peer), pairs_),
                      0.8);
      if (size.products() < kSmall) time_lanes();
    };
    compare(
        "forward", [&] { layer.forward(); }, [&] { layer.peer_forward(); });
    compare(
        "input", [&] { layer.input_grad(); }, [&] { layer.peer_input_grad(); });
    compare("weight", one_lane, [&] { layer.peer_weight_grad(); });
    compare("lanes 8", eight_lanes, [&] { layer.peer_weight_grad(); });
    time_lanes();
    report_.limit(fmt::format("lanes 8 over lanes 1, least of {} medians {}", rounds, where),
                  lanes,
                  1.15,
                  "x");
    report_.require("bits differ from plain fma loops " + where,
                    layer.forward_is_exact() && layer.input_grad_is_exact() &&
                        layer.weight_grad_is_exact(1) && layer.weight_grad_is_exact(8));
  }

 private:
  Report& report_;
  int pairs_;
};

int run(int argc, char** argv) {
  std::string json;
  std::int64_t pairs = 15;
  bool quick = false;
  Options options("Measures the linear layer's products against OpenBLAS.");
  options.file("json", json, "write the figures there");
  options.integer("pairs", pairs, "turns of each side; medians count", 15, 1000);
  options.flag("quick", quick, "only the two smallest sizes");
  options.parse(argc, argv);

  Report report;
  report.machine("peer", fmt::format("OpenBLAS, core {}", openblas_get_corename()));
  report.machine("kernels", name_of(kernels::current_isa()));
  Comparison comparison(report, static_cast<int>(pairs));
  for (const int threads : {1, 2}) {
    for (const Size& size : kSizes) {
      if (!quick || size.products() < kSmall) comparison.run(size, threads);
    }
  }
  report.limit(
      "geometric mean, as time of ours over the peer's", 1 / report.geomean(), 1 / 0.95, "");
  report.write(json);
  return report.holds() ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  accrue::bench::require_environment(argv, "OPENBLAS_CORETYPE", nullptr);
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
