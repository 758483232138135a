#include "accrue/nn/sequential.h"

#include "accrue/core/error.h"

namespace accrue::nn {

Layer& Sequential::append(std::unique_ptr<Layer> layer) {
  ACCRUE_CHECK(layer != nullptr, ValueError, "sequential", "a layer is needed, got null");
  layers_.reserve(layers_.size() + 1);
  register_module(std::to_string(layers_.size()), *layer);
  return *layers_.emplace_back(std::move(layer));
}

Layer& Sequential::operator[](int position) {
  ACCRUE_CHECK(position >= 0 && position < size(),
               IndexError,
               "sequential",
               "position must lie in [0, ",
               size(),
               "), got ",
               position);
  return *layers_[static_cast<std::size_t>(position)];
}

Variable Sequential::forward(const Variable& x) {
  Variable y = x;
  for (const auto& layer : layers_) y = layer->forward(y);
  return y;
}

}  // namespace accrue::nn
