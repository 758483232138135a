// fold: combines one contribution per rank in the order of the rank tree.
#pragma once

#include "accrue/dist/call.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace accrue::dist {

/// Combines `parts`, each of `count` elements, by the aligned binary tree over their numbers, left
/// op right; the result is left in parts[0]. NaN wins max and min; integers wrap.
void fold(std::span<std::byte* const> parts, std::int64_t count, DType dtype, ReduceOp op);

/// Errors: DTypeError where `fold` has no meaning: bfloat16, float16, sums of bool.
void check_foldable(DType dtype, ReduceOp op, const char* operation);

}  // namespace accrue::dist
