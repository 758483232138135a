// Build facts as constants: the only file that reads feature macros.
#pragma once

namespace accrue {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace accrue
