#include "accrue/train/model_broadcast.h"

#include "accrue/dist/same_lines.h"

#include <string>

namespace accrue::train {
namespace {

/// One line for each parameter, then for each buffer.
std::string layout_of(const nn::Module& model) {
  std::string layout;
  for (const auto& [name, parameter] : model.named_parameters())
    layout += text(name,
                   ' ',
                   parameter.shape(),
                   ' ',
                   parameter.dtype(),
                   parameter.requires_grad() ? "\n" : " frozen\n");
  for (const auto& [name, buffer] : model.named_buffers())
    layout += text("buffer ", name, ' ', buffer.shape(), ' ', buffer.dtype(), '\n');
  return layout;
}

}  // namespace

void broadcast_model(dist::ProcessGroup& group, const nn::Module& model) {
  dist::check_same_lines(group,
                         layout_of(model),
                         "prepare",
                         "all ranks must have the same model",
                         "build the model alike everywhere");
  for (Variable parameter : model.parameters()) group.broadcast(parameter.mutable_value());
  for (auto& [name, buffer] : model.named_buffers()) group.broadcast(buffer);
}

}  // namespace accrue::train
