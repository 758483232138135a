// Rows that are read several times: each is kept in shared memory where it fits.
#pragma once

#include "accrue/kernels/cuda/quad.cuh"
#include "accrue/kernels/cuda/row_team.cuh"

namespace accrue::kernels::cuda {

/// A team that reads its row from global memory once, four elements at a time.
template <int kWarps>
struct KeptRowTeam : RowTeam<kWarps> {
  using Base = RowTeam<kWarps>;
  static constexpr int kBlockThreads = Base::kRowsPerBlock * Base::kThreads;

  /// Floats that a row of n elements takes: it keeps its alignment.
  static ACCRUE_HD std::int64_t pitch(std::int64_t n) { return (n + 3 + 3) / 4 * 4; }

  /// `rows` are pitch(n) floats of the block for each of its rows.
  ACCRUE_DEVICE KeptRowTeam(float* shared, float* rows) : Base(shared), rows_(rows) {}

  /// A copy of the n elements at x.
  ACCRUE_DEVICE const float* keep(const float* x, std::int64_t n) const {
    const int place = thread_index() / Base::kThreads;
    float* const kept = rows_ + place * pitch(n) + (4 - elements_to_aligned(x)) % 4;
    Base::template visit<4>(
        n,
        elements_to_aligned(x),
        [=](std::int64_t c) { store4(kept + c, load4(x + c)); },
        [=](std::int64_t c) { kept[c] = x[c]; });
    if constexpr (kWarps == 1) {
      sync_warp();
    } else {
      sync_block();
    }
    return kept;
  }

 private:
  float* rows_;
};

/// row_kernel() with rows in the dynamic shared memory.
template <int kWarps, class Body>
ACCRUE_KERNEL(KeptRowTeam<kWarps>::kBlockThreads)
void kept_row_kernel(ACCRUE_PARAMETER Body body, std::int64_t rows) {
  ACCRUE_SHARED(float, shared, 2 * kWarps);
  KeptRowTeam<kWarps> team(shared, dynamic_shared<float>());
  if (team.row() < rows) body(team, team.row());
}

/// launch_rows() for a body that reads a row through team.keep(row, columns).
///
/// A warp takes a row of at most 1,024 elements. Longer ones take a block: of 256 threads, several
/// of which share a multiprocessor, up to 48 KB; of 1,024 threads up to all of its shared memory.
template <class Body>
void launch_kept_rows(
    const char* name, std::int64_t rows, std::int64_t columns, const Body& body, Stream stream) {
  constexpr std::size_t kFew = 48 * 1024, kOfTeam = 2 * kWarpSize * sizeof(float);
  if (rows == 0) return;
  const auto start = [&](auto team, auto kernel) {
    using Team = typename decltype(team)::type;
    const std::int64_t floats = Team::kRowsPerBlock * Team::pitch(columns);
    launch({.name = name,
            .grid_x = (rows + Team::kRowsPerBlock - 1) / Team::kRowsPerBlock,
            .threads = Team::kBlockThreads,
            .dynamic_shared = static_cast<std::size_t>(floats) * sizeof(float),
            .stream = stream},
           kernel,
           body,
           rows);
  };
  const auto bytes = static_cast<std::size_t>(KeptRowTeam<8>::pitch(columns)) * sizeof(float);
  if (columns <= kSumBlock) {
    start(std::type_identity<KeptRowTeam<1>>{}, kept_row_kernel<1, Body>);
  } else if (bytes + kOfTeam <= kFew) {
    start(std::type_identity<KeptRowTeam<8>>{}, kept_row_kernel<8, Body>);
  } else if (bytes + kOfTeam <= max_shared_bytes()) {
    start(std::type_identity<KeptRowTeam<32>>{}, kept_row_kernel<32, Body>);
  } else {
    launch_long_rows(name, rows, columns, body, stream);
  }
}

}  // namespace accrue::kernels::cuda
