// caught_text: what other ranks are told of an exception that one rank throws.
#pragma once

#include <exception>
#include <string>

namespace accrue::dist {

/// The text of the exception being handled, also of one that has none. Call it in a catch (...).
inline std::string caught_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception without a text";
  }
}

}  // namespace accrue::dist
