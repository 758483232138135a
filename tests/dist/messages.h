// What exceptions on thread ranks said.
#pragma once

#include "accrue/dist/threads.h"

#include <exception>
#include <string>
#include <vector>

namespace accrue::test {

/// The text of the exception that `body` throws; empty without one.
template <class Type = std::exception, class Body>
std::string message(const Body& body) {
  try {
    body();
  } catch (const Type& error) {
    return error.what();
  }
  return "";
}

/// message() of each rank.
template <class Type, class Body>
std::vector<std::string> messages(int size,
                                  const Body& body,
                                  const dist::GroupOptions& options = {}) {
  std::vector<std::string> said(static_cast<std::size_t>(size));
  dist::run_ranks(
      size,
      [&](dist::ProcessGroup& group) {
        said[static_cast<std::size_t>(group.rank())] = message<Type>([&] { body(group); });
      },
      options);
  return said;
}

}  // namespace accrue::test
