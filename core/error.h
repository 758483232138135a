// Typed errors and the check macro. The library reports every fault by throwing one of these types.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace accrue {

/// Base of every exception the library throws. The text reads
/// `[operation] what must hold, got value; what to do`.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ShapeError : Error {  ///< Sizes, ranks or strides do not fit together.
  using Error::Error;
};
struct DTypeError : Error {  ///< An element type is not accepted here.
  using Error::Error;
};
struct DeviceError : Error {  ///< Operands live on different or absent devices.
  using Error::Error;
};
struct IndexError : Error {  ///< A dimension, position or class label is out of range.
  using Error::Error;
};
struct ValueError : Error {  ///< A scalar argument is outside its domain.
  using Error::Error;
};
struct StateError : Error {  ///< The call is not legal at this moment (order of calls, stale data).
  using Error::Error;
};
struct OutOfMemoryError : Error {  ///< An allocation was refused; the process can go on.
  using Error::Error;
};
struct DistributedError : Error {  ///< A rank has left; its group is of no more use.
  using Error::Error;
};
struct TimeoutError : DistributedError {  ///< A rank did not come to a collective in time.
  using DistributedError::DistributedError;
};
struct MismatchError : DistributedError {  ///< Ranks called different collectives.
  using DistributedError::DistributedError;
};

/// Concatenates streamable values, whatever the global locale; used to build error messages.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return std::move(out).str();
}

/// Throws Type with the text of `parts`; kept out of line so that checks cost one branch.
template <class Type, class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const Parts&... parts) {
  throw Type(text(parts...));
}

}  // namespace accrue

/// Throws `Type("[operation] message")` unless `condition` holds. The message parts are evaluated
/// only on failure: ACCRUE_CHECK(n >= 0, ShapeError, "zeros", "sizes must be >= 0, got ", n).
#define ACCRUE_CHECK(condition, Type, operation, ...)                    \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::accrue::fail<::accrue::Type>("[", operation, "] ", __VA_ARGS__); \
  } while (false)
