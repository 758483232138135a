// The choice of the CPU kernels' version: CPU detection, environment, override.
#include "accrue/kernels/cpu/isa.h"

#include "accrue/core/error.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace accrue::kernels {
namespace {

bool can_run_avx2() {
#ifdef ACCRUE_HAS_AVX2
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

Isa checked(Isa isa, const char* operation) {
  ACCRUE_CHECK(isa == Isa::portable || can_run_avx2(),
               ValueError,
               operation,
               "this build and CPU must offer AVX2 and FMA, got isa ",
               name_of(isa),
               "; use portable, which gives the same bits");
  return isa;
}

Isa initial_isa() {
  const char* value = std::getenv("ACCRUE_ISA");
  if (value == nullptr) return best_isa();
  if (std::string_view(value) == name_of(Isa::portable)) return Isa::portable;
  ACCRUE_CHECK(std::string_view(value) == name_of(Isa::avx2),
               ValueError,
               "current_isa",
               "ACCRUE_ISA must be portable or avx2, got '",
               value,
               "'; correct or unset it");
  return checked(Isa::avx2, "current_isa");
}

std::atomic<Isa>& chosen_isa() {
  static std::atomic<Isa> isa = initial_isa();
  return isa;
}

}  // namespace

Isa best_isa() { return can_run_avx2() ? Isa::avx2 : Isa::portable; }

Isa current_isa() { return chosen_isa().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { chosen_isa().store(checked(isa, "set_isa"), std::memory_order_relaxed); }

const char* name_of(Isa isa) { return isa == Isa::avx2 ? "avx2" : "portable"; }

}  // namespace accrue::kernels
