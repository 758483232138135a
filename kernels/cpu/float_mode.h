// DefaultFloats: the floating-point mode that kernels compute in, whatever the calling thread set.
#pragma once

namespace accrue::kernels {

inline constexpr unsigned kDefaultFloatMode = 0x1f80;  ///< no traps, to nearest, no FTZ, no DAZ

/// This thread's mode: rounding, traps, what becomes of subnormals. Elsewhere than on x86 it is
/// left alone.
inline unsigned float_mode() {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~0x3FU;  // without the record of what happened
#else
  return kDefaultFloatMode;
#endif
}

inline void set_float_mode([[maybe_unused]] unsigned mode) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(mode);
#endif
}

/// While it lives, this thread rounds to nearest and keeps subnormals (contract 12). A library that
/// was compiled with -ffast-math switches that off for its whole thread, and threads started there
/// inherit it.
class DefaultFloats {
 public:
  DefaultFloats() : saved_(float_mode()) {
    if (saved_ != kDefaultFloatMode) set_float_mode(kDefaultFloatMode);
  }
  ~DefaultFloats() {
    if (saved_ != kDefaultFloatMode) set_float_mode(saved_);
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  unsigned saved_;
};

}  // namespace accrue::kernels
