#include "accrue/tests/ptx/arithmetic.h"

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace accrue::ptx {
namespace {

template <class T>
T get(Lane<T> bits) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
Lane<T> put(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<Lane<T>>(value);
  } else {
    return static_cast<Lane<T>>(value);
  }
}

/// Computes every lane, with whatever inactive ones hold, and keeps the active ones.
template <class F, class D, class... S>
void compute(Warp& warp, const Instruction& it) {
  const auto run = [&]<std::size_t... I>(std::index_sequence<I...>) {
    Lane<D>* const result = warp.lanes<D>(it.operand[0]);
    const std::tuple<const Lane<S>*...> sources{warp.lanes<S>(it.operand[I + 1])...};
    const std::int32_t* const mask = warp.mask.data();
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) {
      const Lane<D> value = put<D>(F{}(get<S>(std::get<I>(sources)[lane])...));
      result[lane] = mask[lane] != 0 ? value : result[lane];
    }
  };
  run(std::index_sequence_for<S...>{});
}

template <class T>
constexpr int kWidth = sizeof(Lane<T>);

/// The only NaN that GPUs compute is 0x7fffffff, in float32.
template <class T>
T canonical(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value == value ? value : std::bit_cast<float>(0x7fffffffU);
  } else {
    return value;
  }
}

/// By zero, or below the smallest number. PTX gives any value then, and inactive lanes may do it.
template <class T>
bool divides_wrongly(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && b == T(-1) && a == std::numeric_limits<T>::min());
}

class Table {
 public:
  Table() {
    integers<std::int16_t>("s16");
    integers<std::uint16_t>("u16");
    integers<std::int32_t>("s32");
    integers<std::uint32_t>("u32");
    integers<std::int64_t>("s64");
    integers<std::uint64_t>("u64");
    bits<std::uint16_t>("16");
    bits<std::uint32_t>("32");
    bits<std::uint64_t>("64");
    floats<float>("f32");
    floats<double>("f64");
    predicates();
    conversions();
  }

  const Form* find(const std::string& opcode) const {
    const auto found = forms_.find(opcode);
    return found == forms_.end() ? nullptr : &found->second;
  }

 private:
  template <class D, class... S, class F>
  void add(const std::string& opcode, F) {
    forms_[opcode] = {compute<F, D, S...>, {kWidth<D>, kWidth<S>...}};
  }

  template <class T>
  void integers(const std::string& type) {
    using U = std::make_unsigned_t<T>;
    add<T, T, T>("add." + type, [](T a, T b) { return static_cast<T>(U(a) + U(b)); });
    add<T, T, T>("sub." + type, [](T a, T b) { return static_cast<T>(U(a) - U(b)); });
    add<T, T, T>("mul.lo." + type, [](T a, T b) {
      return static_cast<T>(std::uint64_t{U(a)} * std::uint64_t{U(b)});
    });
    add<T, T, T>("div." + type,
                 [](T a, T b) { return divides_wrongly(a, b) ? T(-1) : static_cast<T>(a / b); });
    add<T, T, T>("rem." + type,
                 [](T a, T b) { return divides_wrongly(a, b) ? T(-1) : static_cast<T>(a % b); });
    add<T, T>("neg." + type, [](T a) { return static_cast<T>(U(0) - U(a)); });
    add<T, T, T>("min." + type, [](T a, T b) { return a < b ? a : b; });
    add<T, T, T>("max." + type, [](T a, T b) { return a > b ? a : b; });
    add<T, T, std::uint32_t>("shr." + type, [](T a, std::uint32_t n) {
      constexpr std::uint32_t kMost = 8 * sizeof(T) - 1;
      return n > kMost ? static_cast<T>(a >> kMost >> (std::is_signed_v<T> ? 0 : 1))
                       : static_cast<T>(a >> n);
    });
    if constexpr (sizeof(T) == 4) {
      using W = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      add<W, T, T>("mul.wide." + type, [](T a, T b) { return W{a} * W{b}; });
    }
    compares<T>(type);
    moves<T>(type);
  }

  template <class T>
  void bits(const std::string& size) {
    const std::string type = "b" + size;
    add<T, T, T>("and." + type, [](T a, T b) { return static_cast<T>(a & b); });
    add<T, T, T>("or." + type, [](T a, T b) { return static_cast<T>(a | b); });
    add<T, T, T>("xor." + type, [](T a, T b) { return static_cast<T>(a ^ b); });
    add<T, T>("not." + type, [](T a) { return static_cast<T>(~a); });
    add<T, T, std::uint32_t>("shl." + type, [](T a, std::uint32_t n) {
      return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(std::uint64_t{a} << n);
    });
    add<bool, T, T>("setp.eq." + type, [](T a, T b) { return a == b; });
    add<bool, T, T>("setp.ne." + type, [](T a, T b) { return a != b; });
    moves<T>(type);
  }

  template <class T>
  void moves(const std::string& type) {
    using U = Lane<T>;
    add<U, U>("mov." + type, [](U a) { return a; });
    add<U, U, U, bool>("selp." + type, [](U a, U b, bool first) { return first ? a : b; });
  }

  /// For floats the ordered comparisons, which a NaN fails.
  template <class T>
  void compares(const std::string& type) {
    add<bool, T, T>("setp.eq." + type, [](T a, T b) { return a == b; });
    add<bool, T, T>("setp.ne." + type, [](T a, T b) { return a < b || a > b; });
    add<bool, T, T>("setp.lt." + type, [](T a, T b) { return a < b; });
    add<bool, T, T>("setp.le." + type, [](T a, T b) { return a <= b; });
    add<bool, T, T>("setp.gt." + type, [](T a, T b) { return a > b; });
    add<bool, T, T>("setp.ge." + type, [](T a, T b) { return a >= b; });
  }

  template <class T>
  void floats(const std::string& type) {
    const std::string rn = ".rn." + type;
    add<T, T, T>("add" + rn, [](T a, T b) { return canonical(a + b); });
    add<T, T, T>("sub" + rn, [](T a, T b) { return canonical(a - b); });
    add<T, T, T>("mul" + rn, [](T a, T b) { return canonical(a * b); });
    add<T, T, T>("div" + rn, [](T a, T b) { return canonical(a / b); });
    add<T, T, T, T>("fma" + rn, [](T a, T b, T c) { return canonical(std::fma(a, b, c)); });
    add<T, T>("rcp" + rn, [](T a) { return canonical(T(1) / a); });
    add<T, T>("sqrt" + rn, [](T a) { return canonical(std::sqrt(a)); });
    add<T, T>("neg." + type, [](T a) { return -a; });
    add<T, T>("abs." + type, [](T a) { return std::fabs(a); });
    add<T, T, T>("copysign." + type, [](T sign, T a) { return std::copysign(a, sign); });
    compares<T>(type);
    add<bool, T, T>("setp.equ." + type, [](T a, T b) { return !(a < b) && !(a > b); });
    add<bool, T, T>("setp.neu." + type, [](T a, T b) { return a != b; });
    add<bool, T, T>("setp.ltu." + type, [](T a, T b) { return !(a >= b); });
    add<bool, T, T>("setp.leu." + type, [](T a, T b) { return !(a > b); });
    add<bool, T, T>("setp.gtu." + type, [](T a, T b) { return !(a <= b); });
    add<bool, T, T>("setp.geu." + type, [](T a, T b) { return !(a < b); });
    add<bool, T, T>("setp.num." + type, [](T a, T b) { return a == a && b == b; });
    add<bool, T, T>("setp.nan." + type, [](T a, T b) { return a != a || b != b; });
    moves<T>(type);
  }

  void predicates() {
    add<bool, bool, bool>("and.pred", [](bool a, bool b) { return a && b; });
    add<bool, bool, bool>("or.pred", [](bool a, bool b) { return a || b; });
    add<bool, bool, bool>("xor.pred", [](bool a, bool b) { return a != b; });
    add<bool, bool>("not.pred", [](bool a) { return !a; });
    add<bool, bool>("mov.pred", [](bool a) { return a; });
  }

  template <class D, class S>
  void converts(const std::string& opcode) {
    add<D, S>(opcode, [](S a) { return canonical(static_cast<D>(a)); });
  }

  /// To the nearest integer towards zero; beyond the range the end of it, for NaN 0.
  template <class D, class S>
  void truncates(const std::string& opcode) {
    add<D, S>(opcode, [](S a) {
      constexpr S kEnd = S(std::uint64_t{1} << (8 * sizeof(D) - 1));
      if (a != a) return sizeof(D) == 8 ? std::numeric_limits<D>::min() : D(0);
      if (a >= kEnd) return std::numeric_limits<D>::max();
      return a < -kEnd ? std::numeric_limits<D>::min() : static_cast<D>(a);
    });
  }

  void conversions();

  std::unordered_map<std::string, Form> forms_;
};

void Table::conversions() {
  using std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, std::uint16_t;
  converts<uint32_t, uint64_t>("cvt.u32.u64");
  converts<uint64_t, uint32_t>("cvt.u64.u32");
  converts<int64_t, int32_t>("cvt.s64.s32");
  converts<uint16_t, uint32_t>("cvt.u16.u32");
  converts<uint16_t, uint64_t>("cvt.u16.u64");
  converts<uint32_t, uint16_t>("cvt.u32.u16");
  converts<int32_t, std::int8_t>("cvt.s32.s8");
  converts<double, float>("cvt.f64.f32");
  converts<float, double>("cvt.rn.f32.f64");
  converts<float, uint16_t>("cvt.rn.f32.u16");
  converts<float, int32_t>("cvt.rn.f32.s32");
  converts<float, uint32_t>("cvt.rn.f32.u32");
  converts<float, int64_t>("cvt.rn.f32.s64");
  converts<double, int32_t>("cvt.rn.f64.s32");
  converts<double, int64_t>("cvt.rn.f64.s64");
  truncates<int32_t, float>("cvt.rzi.s32.f32");
  truncates<int64_t, double>("cvt.rzi.s64.f64");
  add<float, float>("cvt.rmi.f32.f32", [](float a) { return canonical(std::floor(a)); });
  add<float, float>("cvt.rni.f32.f32", [](float a) { return canonical(std::nearbyint(a)); });
  add<double, double>("cvt.rzi.f64.f64", [](double a) { return std::trunc(a); });
  add<uint64_t, uint64_t>("cvta.to.global.u64", [](uint64_t a) { return a; });
  add<uint64_t, uint64_t>("cvta.param.u64", [](uint64_t a) { return a; });
  add<uint64_t, uint32_t, uint32_t>(
      "pack", [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; });
  using U = uint32_t;
  add<U, U, U, U, U>("bfi.b32", [](U from, U to, U position, U length) {
    const uint64_t ones = ((uint64_t{1} << (length & 63)) - 1) << (position & 63);
    const auto mask = static_cast<U>(ones);
    return (to & ~mask) | (static_cast<U>(uint64_t{from} << (position & 63)) & mask);
  });
  forms_["unpack"] = {[](Warp& warp, const Instruction& it) {
                        for_each_active(warp, [&](int lane) {
                          const uint64_t bits = warp.lanes<uint64_t>(it.operand[2])[lane];
                          warp.lanes<U>(it.operand[0])[lane] = static_cast<U>(bits);
                          warp.lanes<U>(it.operand[1])[lane] = static_cast<U>(bits >> 32);
                        });
                      },
                      {4, 4, 8}};
}

}  // namespace

const Form* find_form(const std::string& opcode) {
  static const Table the_table;
  return the_table.find(opcode);
}

}  // namespace accrue::ptx
