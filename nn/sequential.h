// Sequential: layers one after the other.
#pragma once

#include "accrue/nn/layer.h"

#include <concepts>
#include <memory>

namespace accrue::nn {

/// Owns layers and applies them in order. Their names are their positions: `0.weight`.
///
///     nn::Sequential net;
///     net.add<nn::Linear>(784, 256);
///     net.add<nn::ReLU>();
///     net.add<nn::Linear>(256, 10);
class Sequential final : public Layer {
 public:
  Sequential() = default;
  template <std::derived_from<Layer>... Layers>
  explicit Sequential(std::unique_ptr<Layers>... layers) {
    (append(std::move(layers)), ...);
  }

  /// Makes a layer from constructor arguments and adds it at the end.
  template <std::derived_from<Layer> T, class... Args>
  T& add(Args&&... args) {
    auto layer = std::make_unique<T>(std::forward<Args>(args)...);
    T& result = *layer;
    append(std::move(layer));
    return result;
  }
  /// Errors: ValueError for a null pointer or a layer that holds this one.
  Layer& append(std::unique_ptr<Layer> layer);

  int size() const { return static_cast<int>(layers_.size()); }
  /// Errors: IndexError.
  Layer& operator[](int position);

  Variable forward(const Variable& x) override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace accrue::nn
