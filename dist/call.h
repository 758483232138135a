// Call: what a rank says about a collective before any data moves, so that all ranks can compare.
#pragma once

#include "accrue/core/dtype.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace accrue::dist {

enum class ReduceOp : std::uint8_t { sum, max, min };

enum class CallKind : std::uint8_t {
  barrier,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  all_gather_bytes,
  all_to_all_bytes,
  sum_nodes,
  ring_all_reduce,
  duplicate,
  end,
};

/// The 16 bytes that every collective exchanges first. Ranks whose calls differ all throw the same
/// MismatchError.
struct Call {
  std::uint32_t sequence = 0;  ///< of the group, counted from 1
  CallKind kind = CallKind::barrier;
  DType dtype = DType::uint8;
  std::uint16_t detail = 0;  ///< a ReduceOp or a root, as the kind says
  std::uint64_t count = 0;   ///< elements

  bool operator==(const Call&) const = default;
};
static_assert(sizeof(Call) == 16);

/// The operation's name: all_reduce.
const char* name_of(CallKind kind);
/// Call 7, all_reduce(sum) of 3 float32.
std::string describe(const Call& call);
/// The text of a DistributedError: `rank` left and will not come to `call`.
std::string gone(const Call& call, int rank, std::string_view reason);
/// The text of a TimeoutError: `ranks` did not come to `call`.
std::string late(const Call& call, double seconds, std::string_view ranks);
/// Throws unless all ranks made the same call. `calls[r]` is what rank r said.
///
/// Errors:  with the same text on all ranks: DistributedError naming a rank whose process ends,
///          else MismatchError naming what each rank called.
void check_same(std::span<const Call> calls);

}  // namespace accrue::dist
