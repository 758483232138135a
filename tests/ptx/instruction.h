// Instruction: a statement of PTX, ready to run for the 32 lanes of a warp at once.
#pragma once

#include "accrue/tests/ptx/live_blocks.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace accrue::ptx {

inline constexpr int kLanes = 32;

struct Warp;
struct Instruction;
using Execute = void (*)(Warp&, const Instruction&);

/// What an instruction does besides computing.
enum class Control : std::uint8_t { none, branch, exit, barrier, meeting };
enum class Space : std::uint8_t { generic, global, parameters, shared };

struct Instruction {
  static constexpr std::uint32_t kNone = 0xffffffffU;

  Execute execute = nullptr;
  Control control = Control::none;
  std::uint32_t guard = kNone;  ///< a predicate
  bool negates_guard = false;
  std::array<std::uint32_t, 6> operand{};  ///< where registers lie in the file of a warp, in bytes
  std::uint32_t target = 0;                ///< of a branch
  std::uint32_t members = 0;               ///< of a meeting: the register with the mask of lanes
  // Of an access; `operand` holds the address, then the elements.
  Space space = Space::generic;
  int elements = 1;
  bool is_wide = false;  ///< elements lie in registers of 8 bytes
  std::int64_t offset = 0;
  mutable LiveBlock seen{};  ///< where the last access was
  mutable bool has_run = false;
};

/// A register holds a value of 4 bytes for each lane, or of 8; predicates are 0 or 1.
template <class T>
using Lane = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// What the instructions of a launch reach apart from live blocks.
struct Memory {
  LiveBlock parameters;
  std::byte* shared = nullptr;
  std::vector<LiveBlock> arrays;  ///< in shared memory
};

/// The registers of 32 threads, and which of them take part in what runs now.
struct Warp {
  std::byte* file = nullptr;
  const Memory* memory = nullptr;
  std::uint32_t active = 0;
  alignas(64) std::array<std::int32_t, kLanes> mask{};  ///< -1 for active lanes, else 0

  template <class T>
  Lane<T>* lanes(std::uint32_t at) const {
    return reinterpret_cast<Lane<T>*>(file + at);
  }
};

/// Thrown by an instruction that a lane must not run so.
struct LaneFault {
  int lane;
  std::string what;
};

/// Calls body(lane) for each bit that is set.
template <class Body>
void for_each_lane(std::uint32_t lanes, const Body& body) {
  for (; lanes != 0; lanes &= lanes - 1) body(std::countr_zero(lanes));
}
template <class Body>
void for_each_active(const Warp& warp, const Body& body) {
  for_each_lane(warp.active, body);
}

}  // namespace accrue::ptx
