#include "accrue/tests/ptx/access.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace accrue::ptx {
namespace {

enum class Use : std::uint8_t { load, store };

std::string describe(Space space,
                     std::uint64_t address,
                     std::size_t bytes,
                     const LiveBlock& block) {
  const std::string access = text(bytes, " bytes at 0x", hex(address, 12));
  if (space == Space::shared) return access + " of shared memory, in none of its arrays";
  if (space == Space::parameters) return access + ", in no parameter";
  if (block.begin == nullptr) return access + ", before all memory of the device";
  const auto begin = std::bit_cast<std::uint64_t>(block.begin);
  return text(access, ", byte ", address - begin, " of a block of ", block.bytes);
}

/// The array of shared memory that holds an address, or else one that does not.
LiveBlock find_array(const Memory& memory, const std::byte* at, std::size_t bytes) {
  const auto holds = [&](const LiveBlock& array) { return array.holds(at, bytes); };
  const auto found = std::ranges::find_if(memory.arrays, holds);
  return found == memory.arrays.end() ? LiveBlock{} : *found;
}

/// Where an address lies that is not where the last one was. Parameters have generic addresses,
/// too.
LiveBlock find_block(
    const Warp& warp, const Instruction& it, const std::byte* at, std::size_t bytes, Use use) {
  const Memory& memory = *warp.memory;
  if (it.space == Space::shared) return find_array(memory, at, bytes);
  const bool may_be_parameter =
      it.space == Space::parameters || (it.space == Space::generic && use == Use::load);
  if (may_be_parameter && memory.parameters.holds(at, bytes)) return memory.parameters;
  return it.space == Space::parameters ? LiveBlock{} : block_before(at);
}

std::byte* reach(const Warp& warp, const Instruction& it, int lane, std::size_t bytes, Use use) {
  const bool is_shared = it.space == Space::shared;
  const std::uint64_t base = is_shared ? warp.lanes<std::uint32_t>(it.operand[0])[lane]
                                       : warp.lanes<std::uint64_t>(it.operand[0])[lane];
  const std::uint64_t address = base + static_cast<std::uint64_t>(it.offset);
  if (address % bytes != 0) {
    throw LaneFault{lane, text("is misaligned: ", bytes, " bytes at 0x", hex(address, 12))};
  }
  auto* const at = is_shared ? warp.memory->shared + address : std::bit_cast<std::byte*>(address);
  if (it.seen.holds(at, bytes)) return at;
  const LiveBlock block = find_block(warp, it, at, bytes, use);
  if (!block.holds(at, bytes)) {
    throw LaneFault{lane, "is out of bounds: " + describe(it.space, address, bytes, block)};
  }
  it.seen = block;
  return at;
}

template <class T>
void load(Warp& warp, const Instruction& it) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto count = static_cast<std::size_t>(it.elements);
  for_each_active(warp, [&](int lane) {
    const std::byte* const at = reach(warp, it, lane, count * sizeof(T), Use::load);
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, at + i * sizeof(T), sizeof(T));
      const auto bits = static_cast<std::uint64_t>(Wide{value});
      if (it.is_wide) {
        warp.lanes<std::uint64_t>(it.operand[i + 1])[lane] = bits;
      } else {
        warp.lanes<std::uint32_t>(it.operand[i + 1])[lane] = static_cast<std::uint32_t>(bits);
      }
    }
  });
}

template <class T>
void store(Warp& warp, const Instruction& it) {
  const auto count = static_cast<std::size_t>(it.elements);
  for_each_active(warp, [&](int lane) {
    std::byte* const at = reach(warp, it, lane, count * sizeof(T), Use::store);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value =
          static_cast<T>(it.is_wide ? warp.lanes<std::uint64_t>(it.operand[i + 1])[lane]
                                    : warp.lanes<std::uint32_t>(it.operand[i + 1])[lane]);
      std::memcpy(at + i * sizeof(T), &value, sizeof(T));
    }
  });
}

/// Operands: address, result, value.
template <class T, class F>
void update(Warp& warp, const Instruction& it) {
  for_each_active(warp, [&](int lane) {
    std::byte* const at = reach(warp, it, lane, sizeof(T), Use::store);
    T before;
    std::memcpy(&before, at, sizeof(T));
    const T after = F{}(before, static_cast<T>(warp.lanes<T>(it.operand[2])[lane]));
    std::memcpy(at, &after, sizeof(T));
    warp.lanes<T>(it.operand[1])[lane] = static_cast<Lane<T>>(before);
  });
}

struct Type {
  const char* name;
  Execute load, store;
};

template <class T>
constexpr Type type(const char* name) {
  return {name, load<T>, store<std::make_unsigned_t<T>>};
}

constexpr Type kTypes[] = {type<std::uint8_t>(".u8"),
                           type<std::int8_t>(".s8"),
                           type<std::uint16_t>(".u16"),
                           type<std::int16_t>(".s16"),
                           type<std::uint32_t>(".u32"),
                           type<std::int32_t>(".s32"),
                           type<std::uint32_t>(".f32"),
                           type<std::uint64_t>(".u64"),
                           type<std::int64_t>(".s64"),
                           type<std::uint64_t>(".f64")};

bool take(std::string_view& opcode, std::string_view part) {
  if (!opcode.starts_with(part)) return false;
  opcode.remove_prefix(part.size());
  return true;
}

bool find_atomic(std::string_view operation, Instruction& it) {
  if (operation == ".max.s32") {
    it.execute = update<std::int32_t,
                        decltype([](std::int32_t a, std::int32_t b) { return a > b ? a : b; })>;
  } else if (operation == ".add.u32") {
    it.execute =
        update<std::uint32_t, decltype([](std::uint32_t a, std::uint32_t b) { return a + b; })>;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool find_access(std::string_view opcode, Instruction& it) {
  const bool is_load = take(opcode, "ld"), is_store = !is_load && take(opcode, "st");
  const bool is_atomic = !is_load && !is_store && take(opcode, "atom");
  if (!is_load && !is_store && !is_atomic) return false;
  it.space = take(opcode, ".shared")             ? Space::shared
             : take(opcode, ".global")           ? Space::global
             : is_load && take(opcode, ".param") ? Space::parameters
                                                 : Space::generic;
  if (is_atomic) return find_atomic(opcode, it);
  take(opcode, ".cs");
  it.elements = take(opcode, ".v2") ? 2 : take(opcode, ".v4") ? 4 : 1;
  for (const Type& type : kTypes) {
    if (opcode == type.name) it.execute = is_load ? type.load : type.store;
  }
  return it.execute != nullptr;
}

}  // namespace accrue::ptx
