#include "accrue/train/window_reduction.h"

#include "accrue/autograd/variable.h"
#include "accrue/dist/sum_nodes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace accrue::train {
namespace {

using Nodes = std::vector<TreeNode>;

/// Numbers as they travel.
struct Message {
  std::vector<std::int64_t> numbers = {};
  std::size_t next = 0;

  std::int64_t read() { return numbers.at(next++); }
};

std::string_view bytes_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.numbers.data()),
          message.numbers.size() * sizeof(std::int64_t)};
}

Message message_of(const std::string& bytes) {
  Message message{std::vector<std::int64_t>(bytes.size() / sizeof(std::int64_t))};
  std::memcpy(message.numbers.data(), bytes.data(), bytes.size());
  return message;
}

void write(Message& message, const LossWeight& weight) {
  message.numbers.push_back(weight.count());
  message.numbers.push_back(std::ssize(weight.class_counts()));
  for (const std::int64_t count : weight.class_counts()) message.numbers.push_back(count);
  for (const double w : weight.class_weights())
    message.numbers.push_back(std::bit_cast<std::int64_t>(w));
}

LossWeight read_weight(Message& message) {
  const std::int64_t count = message.read();
  const auto num_classes = static_cast<std::size_t>(message.read());
  if (num_classes == 0) return LossWeight(count);
  std::vector<std::int64_t> counts(num_classes);
  std::vector<double> weights(num_classes);
  for (std::int64_t& c : counts) c = message.read();
  for (double& w : weights) w = std::bit_cast<double>(message.read());
  return LossWeight(counts, weights);
}

/// What a rank tells the others before sums move.
struct Header {
  LossWeight weight;
  std::vector<std::int64_t> num_uses;  ///< of each parameter
};

/// Weights added, uses of the rank that has most.
Header exchange(dist::ProcessGroup& group, const Header& mine) {
  Message message;
  write(message, mine.weight);
  for (const std::int64_t uses : mine.num_uses) message.numbers.push_back(uses);
  Header total{.weight = {}, .num_uses = std::vector<std::int64_t>(mine.num_uses.size())};
  for (const std::string& bytes : group.all_gather_bytes(bytes_of(message))) {
    Message theirs = message_of(bytes);
    total.weight.add(read_weight(theirs));
    for (std::int64_t& uses : total.num_uses) uses = std::max(uses, theirs.read());
  }
  return total;
}

}  // namespace

WindowTotals reduce_window(dist::ProcessGroup& group,
                           std::span<const Variable> parameters,
                           LoaderPass& pass) {
  const std::vector<std::vector<Nodes>> nodes = pass.window.close(parameters);
  Header mine{.weight = pass.weight, .num_uses = {}};
  for (const std::vector<Nodes>& uses : nodes) mine.num_uses.push_back(std::ssize(uses));
  const Header all = exchange(group, mine);
  const Nodes loss_nodes = pass.loss.close();
  if (all.weight.value() == 0) {
    pass.window.drop();
    return {};
  }

  std::vector<dist::NodeSum> sums = {{loss_nodes, Tensor::empty({1})}};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::int64_t use = 0; use < all.num_uses[i]; ++use) {
      const bool is_mine = use < mine.num_uses[i];
      sums.push_back({is_mine ? nodes[i][static_cast<std::size_t>(use)] : Nodes(),
                      Tensor::empty(parameters[i].shape(), parameters[i].dtype())});
    }
  }
  dist::sum_nodes(group, pass.plan.lanes().count, sums);

  std::vector<std::vector<Tensor>> roots;
  std::size_t next = 1;
  for (const std::int64_t uses : all.num_uses) {
    roots.emplace_back();
    for (std::int64_t use = 0; use < uses; ++use) roots.back().push_back(sums[next++].sum);
  }
  const double weight = all.weight.value();
  pass.window.publish(parameters, roots, weight);
  return {weight, static_cast<double>(sums[0].sum.item<float>())};
}

}  // namespace accrue::train
