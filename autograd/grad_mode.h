// Grad mode: whether operations of this thread are recorded.
#pragma once

#include <utility>

namespace accrue {

/// True unless a NoGrad guard lives on this thread.
bool grad_enabled();

/// Stops recording on this thread while it lives. Guards nest.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

}  // namespace accrue
