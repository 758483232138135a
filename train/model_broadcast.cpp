#include "accrue/train/model_broadcast.h"

#include "accrue/core/error.h"

#include <sstream>
#include <string>
#include <vector>

namespace accrue::train {
namespace {

/// One line for each parameter, then for each buffer.
std::string layout_of(const nn::Module& model) {
  std::string layout;
  for (const auto& [name, parameter] : model.named_parameters())
    layout += text(name, ' ', parameter.shape(), ' ', parameter.dtype(), '\n');
  for (const auto& [name, buffer] : model.named_buffers())
    layout += text("buffer ", name, ' ', buffer.shape(), ' ', buffer.dtype(), '\n');
  return layout;
}

/// The first line of `layout` that `reference` does not have at its place, and that place's line.
struct Difference {
  std::string reference, other;
};

Difference first_difference(const std::string& reference, const std::string& layout) {
  std::istringstream a(reference), b(layout);
  Difference difference;
  do {
    if (!std::getline(a, difference.reference)) difference.reference = "nothing";
    if (!std::getline(b, difference.other)) difference.other = "nothing";
  } while (difference.reference == difference.other);
  return difference;
}

}  // namespace

void broadcast_model(dist::ProcessGroup& group, const nn::Module& model) {
  const std::vector<std::string> layouts = group.all_gather_bytes(layout_of(model));
  for (std::size_t rank = 1; rank < layouts.size(); ++rank) {
    if (layouts[rank] == layouts[0]) continue;
    const Difference difference = first_difference(layouts[0], layouts[rank]);
    throw MismatchError(text("[prepare] all ranks must have the same model, got ",
                             difference.reference,
                             " on rank 0 and ",
                             difference.other,
                             " on rank ",
                             rank,
                             "; build the model alike everywhere"));
  }
  for (Variable parameter : model.parameters()) group.broadcast(parameter.mutable_value());
  broadcast_buffers(group, model);
}

void broadcast_buffers(dist::ProcessGroup& group, const nn::Module& model) {
  for (auto& [name, buffer] : model.named_buffers()) group.broadcast(buffer);
}

}  // namespace accrue::train
