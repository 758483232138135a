// check_same_lines: refuses ranks that describe what they must share in different words.
#pragma once

#include "accrue/dist/process_group.h"

namespace accrue::dist {

/// Collective: all ranks must pass the same `lines`.
///
/// Errors:  MismatchError, the same on all ranks: "[operation] must, got <the first line that
///          differs> on rank 0 and <the line there> on rank r; advice".
void check_same_lines(ProcessGroup& group,
                      const std::string& lines,
                      const char* operation,
                      const char* must,
                      const char* advice);

}  // namespace accrue::dist
