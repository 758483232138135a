// The scalar reference model: the numerics contract read literally, with plain loops over one row
// at a time. It is the oracle of every hash.
//
// It shares with the library the formulas of exp and log alone, and the types of half precision.
// Padding, micro-batches, threads, tiles and the graph do not exist here, so none of them can have
// an influence.
#pragma once

#include <cstdint>
#include <vector>

namespace accrue::reference {

using Row = std::vector<float>;

/// Targets of this class count for nothing.
inline constexpr std::int64_t kIgnored = -100;

struct Sample {
  std::vector<Row> inputs = {};
  std::vector<Row> targets = {};           ///< one per row, for squared error
  std::vector<std::int64_t> classes = {};  ///< one per row, for cross-entropy
};

struct Parameter {
  std::int64_t rows = 0, cols = 0;
  Row values = {};
  Row momentum = {};  ///< empty before the first step
};

/// y = x w^T + bias, and then max(y, 0) if `relu`.
struct Layer {
  std::size_t weight = 0;  ///< position in Model::parameters
  int bias = -1;           ///< position, or -1
  bool relu = false;
};

enum class LossKind : std::uint8_t { mse, cross_entropy };

/// Layers may share parameters. Each use has its own accumulators (contract 5).
struct Model {
  std::vector<Parameter> parameters = {};  ///< in definition order
  std::vector<Layer> layers = {};
  LossKind loss = LossKind::mse;
};

/// What a wrong implementation might do. Each is one plausible line of code away.
enum class Fault : std::uint8_t {
  none,
  add_finished_product,  ///< each micro-batch's finished gradient is added to the sum
  scale_by_reciprocals,  ///< losses are scaled by 1/weight * 1/A, and nothing is divided
  mean_of_means,         ///< each micro-batch is divided by its own weight, and the sum by A
  swap_lanes,            ///< lanes 1 and 2 change places in the tree
  round_gradient,        ///< as add_finished_product, each rounded to half precision, as torch does
};

/// What operands and results of linear layers are rounded to, and their gradients, but those of
/// parameters (contract 20).
enum class Half : std::uint8_t { none, bfloat16, float16 };

struct Training {
  std::int64_t global_batch_size = 1;  ///< B
  int lanes = 8;                       ///< L
  int epochs = 1;
  double lr = 0.1, momentum = 0;
  double max_norm = 0;  ///< 0: no clipping
  Half half = Half::none;
  float loss_scale = 1;  ///< of gradients, until the window's end
  Fault fault = Fault::none;
  std::int64_t micro_batch_size = 1;  ///< b; only faults look at it
};

/// What a window left behind.
struct Step {
  float loss = 0;                   ///< mean over the window
  std::vector<Row> gradients = {};  ///< before clipping; one per parameter
  std::vector<Row> weights = {};    ///< after the step

  bool operator==(const Step&) const = default;
};

/// Trains `model` on the samples in order, with a short last window, by SGD after clipping.
std::vector<Step> train(Model& model, const std::vector<Sample>& samples, const Training& training);

/// Hash of all bits of all steps.
std::uint64_t hash_of(const std::vector<Step>& steps);

}  // namespace accrue::reference
