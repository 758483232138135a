#include "accrue/tests/ptx/meeting.h"

#include <algorithm>
#include <map>

namespace accrue::ptx {
namespace {

enum class Shuffle : std::uint8_t { index, butterfly, down, up };

/// Operands: result, whether the source lay in the segment, value, lane or distance, clamp and
/// segment mask, lanes.
template <Shuffle kind>
void shuffle(Warp& warp, const Instruction& it) {
  std::array<std::uint32_t, kLanes> values, results{}, found{};
  std::copy_n(warp.lanes<std::uint32_t>(it.operand[2]), kLanes, values.begin());
  for_each_active(warp, [&](int lane) {
    const int argument = static_cast<int>(warp.lanes<std::uint32_t>(it.operand[3])[lane] & 31);
    const std::uint32_t limits = warp.lanes<std::uint32_t>(it.operand[4])[lane];
    const int clamp = static_cast<int>(limits & 31), segment = static_cast<int>(limits >> 8 & 31);
    const int first = lane & segment, last = first | (clamp & ~segment);
    const int source = kind == Shuffle::index       ? first | (argument & ~segment)
                       : kind == Shuffle::butterfly ? lane ^ argument
                       : kind == Shuffle::down      ? lane + argument
                                                    : lane - argument;
    const bool is_inside = kind == Shuffle::up ? source >= last : source <= last;
    const int from = is_inside ? source : lane;
    if ((warp.active >> from & 1) == 0) {
      throw LaneFault{lane, "takes the value of a lane outside its mask: " + std::to_string(from)};
    }
    results[static_cast<std::size_t>(lane)] = values[static_cast<std::size_t>(from)];
    found[static_cast<std::size_t>(lane)] = is_inside ? 1 : 0;
  });
  for_each_active(warp, [&](int lane) {
    warp.lanes<std::uint32_t>(it.operand[0])[lane] = results[static_cast<std::size_t>(lane)];
    warp.lanes<std::uint32_t>(it.operand[1])[lane] = found[static_cast<std::size_t>(lane)];
  });
}

void vote_any(Warp& warp, const Instruction& it) {
  std::uint32_t any = 0;
  for_each_active(warp, [&](int lane) { any |= warp.lanes<bool>(it.operand[1])[lane]; });
  for_each_active(warp, [&](int lane) { warp.lanes<bool>(it.operand[0])[lane] = any; });
}

void only_meet(Warp&, const Instruction&) {}

}  // namespace

const Form* find_meeting(const std::string& opcode) {
  static const std::vector<int> narrow(6, 4);
  static const std::map<std::string, Form> forms = {
      {"shfl.sync.idx.b32", {shuffle<Shuffle::index>, narrow}},
      {"shfl.sync.bfly.b32", {shuffle<Shuffle::butterfly>, narrow}},
      {"shfl.sync.down.b32", {shuffle<Shuffle::down>, narrow}},
      {"shfl.sync.up.b32", {shuffle<Shuffle::up>, narrow}},
      {"vote.sync.any.pred", {vote_any, {4, 4, 4}}},
      {"bar.warp.sync", {only_meet, {4}}}};
  const auto found = forms.find(opcode);
  return found == forms.end() ? nullptr : &found->second;
}

}  // namespace accrue::ptx
