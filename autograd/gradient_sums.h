// GradientSums: what plain backward passes of an open window add up, outside grad().
#pragma once

#include "accrue/autograd/node.h"

#include <vector>

namespace accrue {

class Leaf;
class Variable;

/// Sums of gradients that become gradients together, by one division. A leaf belongs to one of them
/// at a time. Threads: belongs to one thread.
class GradientSums {
 public:
  GradientSums();
  ~GradientSums();
  GradientSums(const GradientSums&) = delete;
  GradientSums& operator=(const GradientSums&) = delete;

  /// Leaves get their sums, divided by `divisor`, as gradients; hooks run. Whatever throws, the
  /// sums are gone.
  void finish(double divisor);
  /// The sum of a parameter; undefined if there is none.
  Tensor of(const Variable& parameter) const;
  /// What has become of a sum elsewhere is the parameter's gradient; hooks run.
  static void publish(const Variable& parameter, const Tensor& gradient);
  void drop();
  /// Whether finish() runs hooks.
  bool has_hooks() const;

 private:
  friend class Leaf;

  std::vector<Ref<Leaf>> leaves_;
};

}  // namespace accrue
