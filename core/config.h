// Build facts as constants: the only file that reads feature macros.
#pragma once

namespace accrue {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// ACCRUE_THREAD_SANITIZER: what the race detector must not look into, itself built without it.
#if defined(__SANITIZE_THREAD__) || defined(ACCRUE_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace accrue
