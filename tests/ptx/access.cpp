#include "accrue/tests/ptx/access.h"

#include "accrue/core/bits.h"
#include "accrue/core/error.h"

#include <bit>
#include <cstring>

namespace accrue::ptx {
namespace {

enum class Use : std::uint8_t { load, store };

std::string describe(std::uint64_t address, std::size_t bytes, const LiveBlock& block) {
  const std::string access = text(bytes, " bytes at 0x", hex(address, 12));
  if (block.begin == nullptr) return access + ", before all blocks";
  const auto begin = std::bit_cast<std::uint64_t>(block.begin);
  return text(access, ", byte ", address - begin, " of a block of ", block.bytes);
}

/// A host address, which lies in a live block or, of a load, in the parameters.
std::byte* reach_host(const Warp& warp,
                      const Instruction& it,
                      int lane,
                      std::uint64_t address,
                      std::size_t bytes,
                      Use use) {
  auto* const at = std::bit_cast<std::byte*>(address);
  if (it.seen.holds(at, bytes)) return at;
  const LiveBlock parameters{warp.memory->parameters, warp.memory->parameter_bytes};
  if (use == Use::load && parameters.holds(at, bytes)) {
    it.seen = parameters;
    return at;
  }
  const LiveBlock block = block_before(at);
  if (!block.holds(at, bytes)) {
    throw LaneFault{lane, "is out of bounds: " + describe(address, bytes, block)};
  }
  it.seen = block;
  return at;
}

std::byte* reach_shared(const Warp& warp, int lane, std::uint64_t address, std::size_t bytes) {
  const LiveBlock shared{warp.memory->shared, warp.memory->shared_bytes};
  std::byte* const at = warp.memory->shared + address;
  if (!shared.holds(at, bytes)) {
    throw LaneFault{lane,
                    text("is out of bounds: ",
                         bytes,
                         " bytes at ",
                         address,
                         " of ",
                         shared.bytes,
                         " bytes of shared memory")};
  }
  return at;
}

std::byte* reach(const Warp& warp, const Instruction& it, int lane, std::size_t bytes, Use use) {
  const std::uint64_t base = it.space == Space::host
                                 ? warp.lanes<std::uint64_t>(it.operand[0])[lane]
                                 : warp.lanes<std::uint32_t>(it.operand[0])[lane];
  const std::uint64_t address = base + static_cast<std::uint64_t>(it.offset);
  if (address % bytes != 0) {
    throw LaneFault{lane, text("is misaligned: ", bytes, " bytes at 0x", hex(address, 12))};
  }
  return it.space == Space::host ? reach_host(warp, it, lane, address, bytes, use)
                                 : reach_shared(warp, lane, address, bytes);
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
  it.space = take(opcode, ".shared") ? Space::shared : Space::host;
  if (it.space == Space::host) take(opcode, ".global") || (is_load && take(opcode, ".param"));
  if (is_atomic) return find_atomic(opcode, it);
  take(opcode, ".cs");
  it.elements = take(opcode, ".v2") ? 2 : take(opcode, ".v4") ? 4 : 1;
  for (const Type& type : kTypes) {
    if (opcode == type.name) it.execute = is_load ? type.load : type.store;
  }
  return it.execute != nullptr;
}

}  // namespace accrue::ptx
