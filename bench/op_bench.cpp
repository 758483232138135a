// Every operation at three sizes against libtorch: forward, and forward with backward.
#include "accrue/accrue.h"
#include "accrue/bench/op_peer.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/bench/support/report.h"
#include "accrue/kernels/cpu/isa.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace accrue::bench {
namespace {

constexpr double kLeast = 0.5, kLeastMean = 1.0;
constexpr int kSizes = 3;

// ---- operands ----

using Shapes = std::array<Shape, kSizes>;

/// What an operand holds and its shape at each size. Parameters are normal too, and leaves.
struct Operand {
  enum Content { normal, parameter, positive, index, condition } content;
  Shapes shapes;
  std::array<std::int64_t, kSizes> limit = {};  ///< of an index, exclusive

  Tensor tensor(std::size_t size, std::uint64_t seed) const {
    Generator generator(seed);
    const Shape& shape = shapes[size];
    if (content == index) {
      Tensor x = Tensor::empty(shape, DType::int64);
      generator.randint(
          {x.mutable_data<std::int64_t>(), static_cast<std::size_t>(x.numel())}, 0, limit[size]);
      return x;
    }
    Tensor x = Tensor::empty(shape);
    const std::span numbers(x.mutable_data<float>(), static_cast<std::size_t>(x.numel()));
    if (content == normal || content == parameter) {
      generator.normal(numbers);
      return x;
    }
    generator.uniform(numbers, 0.1, 3.1);
    return content == positive ? x : gt(x, 1.6);
  }
};

const Shapes kMatrix = {{{32, 32}, {256, 512}, {2048, 2048}}};
const Shapes kRow = {{{32}, {512}, {2048}}};
const Shapes kColumn = {{{32, 1}, {256, 1}, {2048, 1}}};
const Shapes kRows = {{{32}, {256}, {2048}}};
const Shapes kSquare = {{{32, 32}, {256, 256}, {1024, 1024}}};
const Shapes kSquareRow = {{{32}, {256}, {1024}}};
const Shapes kBatch = {{{4, 16, 16}, {16, 64, 64}, {64, 256, 256}}};
const Shapes kHeads = {{{1, 2, 16, 32}, {2, 4, 128, 64}, {4, 8, 512, 64}}};
const Shapes kImages = {{{2, 4, 12, 12}, {8, 16, 32, 32}, {16, 32, 56, 56}}};
const Shapes kFilters = {{{8, 4, 3, 3}, {32, 16, 3, 3}, {64, 32, 3, 3}}};
const Shapes kChannels = {{{8}, {32}, {64}}};
const Shapes kCube = {{{1, 32, 32}, {1, 64, 64}, {1, 256, 512}}};

Operand normal(const Shapes& shapes) { return {Operand::normal, shapes}; }
Operand parameter(const Shapes& shapes) { return {Operand::parameter, shapes}; }
Operand positive(const Shapes& shapes) { return {Operand::positive, shapes}; }
Operand condition(const Shapes& shapes) { return {Operand::condition, shapes}; }
/// Indices of a dimension of the matrix.
Operand index(const Shapes& shapes, int dim) {
  return {Operand::index, shapes, {kMatrix[0][dim], kMatrix[1][dim], kMatrix[2][dim]}};
}

const Operand kTable = parameter({{{64, 16}, {1000, 128}, {32000, 128}}});
const Operand kTokens = {Operand::index, {{{64}, {512}, {8192}}}, {64, 1000, 32000}};

// ---- operations ----

using Operands = std::vector<Variable>;

/// The peer has one of the same name.
struct Op {
  std::string name;
  std::vector<Operand> operands;
  Variable (*call)(const Operands&);
  bool has_backward = true;
};

const std::vector<Op> kOps = {
    {"relu", {normal(kMatrix)}, [](auto& v) { return relu(v[0]); }},
    {"leaky_relu", {normal(kMatrix)}, [](auto& v) { return leaky_relu(v[0]); }},
    {"exp", {normal(kMatrix)}, [](auto& v) { return exp(v[0]); }},
    {"log", {positive(kMatrix)}, [](auto& v) { return log(v[0]); }},
    {"neg", {normal(kMatrix)}, [](auto& v) { return neg(v[0]); }},
    {"tanh", {normal(kMatrix)}, [](auto& v) { return tanh(v[0]); }},
    {"sigmoid", {normal(kMatrix)}, [](auto& v) { return sigmoid(v[0]); }},
    {"silu", {normal(kMatrix)}, [](auto& v) { return silu(v[0]); }},
    {"gelu", {normal(kMatrix)}, [](auto& v) { return gelu(v[0]); }},
    {"gelu_tanh", {normal(kMatrix)}, [](auto& v) { return gelu_tanh(v[0]); }},
    {"sqrt", {positive(kMatrix)}, [](auto& v) { return sqrt(v[0]); }},
    {"abs", {normal(kMatrix)}, [](auto& v) { return abs(v[0]); }},
    {"clamp", {normal(kMatrix)}, [](auto& v) { return clamp(v[0], -1, 1); }},
    {"pow 3", {normal(kMatrix)}, [](auto& v) { return pow(v[0], 3); }},
    {"pow 1.7", {positive(kMatrix)}, [](auto& v) { return pow(v[0], 1.7); }},
    {"add", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return v[0] + v[1]; }},
    {"add row", {normal(kMatrix), parameter(kRow)}, [](auto& v) { return v[0] + v[1]; }},
    {"add number", {normal(kMatrix)}, [](auto& v) { return v[0] + 0.5; }},
    {"sub", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return v[0] - v[1]; }},
    {"mul", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return v[0] * v[1]; }},
    {"mul row", {normal(kMatrix), parameter(kRow)}, [](auto& v) { return v[0] * v[1]; }},
    {"mul column", {normal(kMatrix), normal(kColumn)}, [](auto& v) { return v[0] * v[1]; }},
    {"mul number", {normal(kMatrix)}, [](auto& v) { return v[0] * 0.5; }},
    {"div", {normal(kMatrix), positive(kMatrix)}, [](auto& v) { return v[0] / v[1]; }},
    {"maximum", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return maximum(v[0], v[1]); }},
    {"minimum", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return minimum(v[0], v[1]); }},
    {"eq",
     {normal(kMatrix), normal(kMatrix)},
     [](auto& v) { return Variable(eq(v[0], v[1])); },
     false},
    {"lt number", {normal(kMatrix)}, [](auto& v) { return Variable(lt(v[0], 0.5)); }, false},
    {"where",
     {condition(kMatrix), normal(kMatrix), normal(kMatrix)},
     [](auto& v) { return where(v[0].value(), v[1], v[2]); }},
    {"dropout", {normal(kMatrix)}, [](auto& v) { return dropout(v[0], 0.1); }},
    {"embedding", {kTable, kTokens}, [](auto& v) { return embedding(v[0], v[1].value()); }},
    {"max dim 0", {normal(kMatrix)}, [](auto& v) { return max(v[0], 0).values; }},
    {"max dim 1", {normal(kMatrix)}, [](auto& v) { return max(v[0], 1).values; }},
    {"min dim 1", {normal(kMatrix)}, [](auto& v) { return min(v[0], 1).values; }},
    {"argmax dim 0", {normal(kMatrix)}, [](auto& v) { return Variable(argmax(v[0], 0)); }, false},
    {"argmin dim 1", {normal(kMatrix)}, [](auto& v) { return Variable(argmin(v[0], 1)); }, false},
    {"index_select dim 0",
     {normal(kMatrix), index(kRows, 0)},
     [](auto& v) { return index_select(v[0], 0, v[1].value()); }},
    {"index_select dim 1",
     {normal(kMatrix), index(kRow, 1)},
     [](auto& v) { return index_select(v[0], 1, v[1].value()); }},
    {"gather dim 0",
     {normal(kMatrix), index(kMatrix, 0)},
     [](auto& v) { return gather(v[0], 0, v[1].value()); }},
    {"gather dim 1",
     {normal(kMatrix), index(kMatrix, 1)},
     [](auto& v) { return gather(v[0], 1, v[1].value()); }},
    {"layer_norm",
     {normal(kMatrix), parameter(kRow), parameter(kRow)},
     [](auto& v) { return layer_norm(v[0], {v[0].size(-1)}, v[1], v[2]); }},
    {"rms_norm",
     {normal(kMatrix), parameter(kRow)},
     [](auto& v) { return rms_norm(v[0], {v[0].size(-1)}, v[1], 1e-5); }},
    {"linear",
     {normal(kSquare), parameter(kSquare), parameter(kSquareRow)},
     [](auto& v) { return linear(v[0], v[1], v[2]); }},
    {"matmul", {normal(kSquare), normal(kSquare)}, [](auto& v) { return matmul(v[0], v[1]); }},
    {"matmul batched",
     {normal(kBatch), normal(kBatch)},
     [](auto& v) { return matmul(v[0], v[1]); }},
    {"conv2d",
     {normal(kImages), parameter(kFilters), parameter(kChannels)},
     [](auto& v) { return conv2d(v[0], v[1], v[2], {.padding = 1}); }},
    {"max_pool2d", {normal(kImages)}, [](auto& v) { return max_pool2d(v[0], 2); }},
    {"avg_pool2d", {normal(kImages)}, [](auto& v) { return avg_pool2d(v[0], 2); }},
    {"attention",
     {normal(kHeads), normal(kHeads), normal(kHeads)},
     [](auto& v) { return scaled_dot_product_attention(v[0], v[1], v[2]); }},
    {"attention causal",
     {normal(kHeads), normal(kHeads), normal(kHeads)},
     [](auto& v) { return scaled_dot_product_attention(v[0], v[1], v[2], true); }},
    {"sum", {normal(kMatrix)}, [](auto& v) { return sum(v[0]); }},
    {"sum dim 0", {normal(kMatrix)}, [](auto& v) { return sum(v[0], {0}); }},
    {"sum dim 1", {normal(kMatrix)}, [](auto& v) { return sum(v[0], {1}); }},
    {"mean", {normal(kMatrix)}, [](auto& v) { return mean(v[0]); }},
    {"mean dim 1", {normal(kMatrix)}, [](auto& v) { return mean(v[0], {1}); }},
    {"norm", {normal(kMatrix)}, [](auto& v) { return norm(v[0]); }},
    {"norm dim 0", {normal(kMatrix)}, [](auto& v) { return norm(v[0], {0}); }},
    {"norm dim 1", {normal(kMatrix)}, [](auto& v) { return norm(v[0], {1}); }},
    {"softmax dim 0", {normal(kMatrix)}, [](auto& v) { return softmax(v[0], 0); }},
    {"softmax dim 1", {normal(kMatrix)}, [](auto& v) { return softmax(v[0], 1); }},
    {"log_softmax", {normal(kMatrix)}, [](auto& v) { return log_softmax(v[0], 1); }},
    {"cross_entropy",
     {normal(kMatrix), index(kRows, 1)},
     [](auto& v) { return cross_entropy(v[0], v[1].value()); }},
    {"mse", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return mse_loss(v[0], v[1]); }},
    {"cat dim 0", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return cat(v, 0); }},
    {"cat dim 1", {normal(kMatrix), normal(kMatrix)}, [](auto& v) { return cat(v, 1); }},
    {"reshape",
     {normal(kMatrix)},
     [](auto& v) {
       return reshape(v[0], {-1, 16});
     }},
    {"flatten a transpose",
     {normal(kMatrix)},
     [](auto& v) { return flatten(transpose(v[0], 0, 1)); }},
    {"flatten a permutation",
     {normal(kHeads)},
     [](auto& v) {
       return flatten(permute(v[0], {0, 2, 1, 3}));
     }},
    {"flatten an expansion",
     {normal(kCube)},
     [](auto& v) {
       return flatten(expand(v[0], {32, -1, -1}));
     }},
    {"flatten a narrow",
     {normal(kMatrix)},
     [](auto& v) { return flatten(narrow(v[0], 1, 8, 16)); }},
    {"flatten a slice",
     {normal(kMatrix)},
     [](auto& v) { return flatten(slice(v[0], 1, 0, 1 << 20, 2)); }},
    {"flatten a select", {normal(kMatrix)}, [](auto& v) { return flatten(select(v[0], 1, 3)); }},
};

/// Ends the graph where an activation begins.
struct Source final : Node {
  const char* name() const override { return "source"; }
  std::span<const Edge> edges() const override { return {}; }
  void backward(Backward&) override {}
};

OpRun our_op(const Op& op, const std::vector<Tensor>& operands, const Tensor& gradient) {
  Operands plain, inputs, wanted;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    plain.emplace_back(operands[i]);
    const bool wants = gradient.defined() && operands[i].dtype() == DType::float32;
    if (!wants) {
      inputs.push_back(plain.back());
      continue;
    }
    const Tensor value = operands[i].clone();
    inputs.push_back(op.operands[i].content == Operand::parameter
                         ? Variable::leaf(value)
                         : Variable(value, Ref<Node>(new Source)));
    wanted.push_back(inputs.back());
  }
  const auto call = [=, call = op.call] {
    const Variable y = call(inputs);
    std::vector<Tensor> results;
    if (!wanted.empty()) results = grad(y, wanted, gradient, {.retain_graph = true});
    results.insert(results.begin(), y.value());
    return results;
  };
  const auto results = [=] {
    manual_seed(1);
    std::vector<Tensor> tensors = call();
    tensors[0] = tensors[0].to(DType::float32);
    return tensors;
  };
  return {[=, call = op.call] { call(plain); }, [=] { call(); }, results};
}

// ---- the comparison ----

/// Whether both compute the same function: all elements agree to about three digits.
bool agree(const std::vector<Tensor>& ours, const std::vector<Tensor>& peers) {
  if (ours.size() != peers.size()) return false;
  for (std::size_t k = 0; k < ours.size(); ++k) {
    if (ours[k].shape() != peers[k].shape()) return false;
    const std::vector<float> a = ours[k].to_vector<float>(), b = peers[k].to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(std::abs(a[i] - b[i]) <= 2e-3f * (1 + std::abs(b[i])))) return false;
    }
  }
  return true;
}

struct Effort {
  int pairs;
  double seconds;  ///< of a turn
};

/// Adds the cases of one size; returns the ratios of forward and of forward with backward.
std::array<double, 2> compare(Report& report, const Op& op, std::size_t size, Effort effort) {
  std::vector<Tensor> operands;
  Operands plain;
  for (const Operand& operand : op.operands) {
    operands.push_back(operand.tensor(size, operands.size() + 1));
    plain.emplace_back(operands.back());
  }
  Tensor gradient;
  if (op.has_backward) gradient = normal({op.call(plain).shape()}).tensor(0, 99);
  const OpRun ours = our_op(op, operands, gradient), peers = peer_op(op.name, operands, gradient);
  const std::string name = op.name + " " + operands[0].shape().str();
  if (!agree(ours.results(), peers.results()))
    throw ProgramEnd{kInternal, name + " differs from the peer's"};

  const auto turns = [&](const std::string& what, const auto& our_call, const auto& peer_call) {
    const Pair pair = time_in_turns(
        repeated(our_call, effort.seconds), repeated(peer_call, effort.seconds), effort.pairs);
    report.compare(what, pair);
    return pair.ratio;
  };
  const double forward = turns(name, ours.forward, peers.forward);
  return {forward, op.has_backward ? turns(name + " + backward", ours.both, peers.both) : forward};
}

/// Adds all cases of the operation and the claim about it, over the sizes.
void compare(Report& report, const Op& op, Effort effort) {
  double forward = 1, both = 1;
  for (std::size_t size = 0; size < kSizes; ++size) {
    const auto ratios = compare(report, op, size, effort);
    forward *= std::pow(ratios[0], 1.0 / kSizes);
    both *= std::pow(ratios[1], 1.0 / kSizes);
  }
  report.require(
      fmt::format("{}: {:.2f}x, + backward {:.2f}x, >= {:.2f}x", op.name, forward, both, kLeast),
      forward >= kLeast && both >= kLeast);
}

int run(int argc, char** argv) {
  std::string json;
  std::int64_t threads = 1, pairs = 9;
  std::size_t only = 0;
  bool quick = false;
  std::vector<std::string> names = {"all"};
  for (const Op& op : kOps) names.push_back(op.name);
  Options options("Measures every operation against libtorch.");
  options.file("json", json, "write the figures there");
  options.choice("only", only, names, "measure this operation");
  options.integer("threads", threads, "of both sides", 1, 1024);
  options.integer("pairs", pairs, "turns of each side; medians count", 1, 1000);
  options.flag("quick", quick, "3 short turns: for a first look");
  options.parse(argc, argv);

  Report report;
  kernels::set_num_threads(static_cast<int>(threads));
  report.machine("peer", "libtorch " + start_op_peer(static_cast<int>(threads)));
  report.machine("threads", std::to_string(threads));
  report.machine("kernels", name_of(kernels::current_isa()));
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    if (only != 0 && only != i + 1) continue;
    compare(report, kOps[i], quick ? Effort{3, 1e-3} : Effort{static_cast<int>(pairs), 5e-3});
  }
  const double mean = report.geomean();
  if (only == 0)
    report.require(fmt::format("geometric mean {:.2f}x >= {:.2f}x", mean, kLeastMean),
                   mean >= kLeastMean);
  report.write(json);
  return report.holds() ? kDone : kClaimFailed;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  accrue::bench::require_environment(argv, "OMP_WAIT_POLICY", "passive");
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
