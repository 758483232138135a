// Lanes: the fixed blocks of window positions that are the leaves of every reduction tree.
#pragma once

#include <cstdint>

namespace accrue {

/// L lanes over a window of nominal size B: lane l holds positions [floor(l B / L),
/// floor((l + 1) B / L)), also in a short window, whose last lanes are cut or empty (contract 2).
struct Lanes {
  std::int64_t nominal_size = 0;  ///< B, samples
  int count = 1;                  ///< L, a power of two

  /// First position of lane `lane` in [0, L].
  std::int64_t begin(int lane) const {
    return static_cast<std::int64_t>(static_cast<__int128>(lane) * nominal_size / count);
  }
  /// The lane that holds `position` in [0, B).
  int lane_of(std::int64_t position) const {
    // The largest l with floor(l B / L) <= p, that is l B < (p + 1) L.
    const __int128 bound = static_cast<__int128>(position + 1) * count;
    return static_cast<int>((bound - 1) / nominal_size);
  }
  bool operator==(const Lanes&) const = default;
};

}  // namespace accrue
