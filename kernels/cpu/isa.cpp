// The choice of the CPU kernels' version: CPU detection, environment, override.
#include "accrue/kernels/cpu/isa.h"

#include "accrue/core/error.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace accrue::kernels {
namespace {

constexpr Isa kAllIsas[] = {Isa::portable, Isa::avx2, Isa::avx512};

bool can_run(Isa isa) {
#ifdef ACCRUE_HAS_AVX2
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  return isa == Isa::portable || (avx2 && (isa == Isa::avx2 || avx512));
#else
  return isa == Isa::portable;
#endif
}

Isa checked(Isa isa, const char* operation) {
  ACCRUE_CHECK(can_run(isa),
               ValueError,
               operation,
               "this build and CPU must offer the isa, got ",
               name_of(isa),
               "; use ",
               name_of(best_isa()),
               ", which gives the same bits");
  return isa;
}

Isa initial_isa() {
  const char* value = std::getenv("ACCRUE_ISA");
  if (value == nullptr) return best_isa();
  for (const Isa isa : kAllIsas)
    if (std::string_view(value) == name_of(isa)) return checked(isa, "current_isa");
  throw ValueError(text("[current_isa] ACCRUE_ISA must be portable, avx2 or avx512, got '",
                        value,
                        "'; correct or unset it"));
}

std::atomic<Isa>& chosen_isa() {
  static std::atomic<Isa> isa = initial_isa();
  return isa;
}

}  // namespace

Isa best_isa() {
  Isa best = Isa::portable;
  for (const Isa isa : kAllIsas)
    if (can_run(isa)) best = isa;
  return best;
}

Isa current_isa() { return chosen_isa().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { chosen_isa().store(checked(isa, "set_isa"), std::memory_order_relaxed); }

const char* name_of(Isa isa) {
  constexpr const char* kNames[] = {"portable", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

}  // namespace accrue::kernels
