// sort_rows: the numbers of rows, sorted by a key and then by number. No order of threads shows.
//
// A stable counting sort of the keys' bytes, lowest first. In a pass each block counts the bytes of
// 256 rows; a scan of the counts, by byte and then by block, says where a block's rows go; in a
// block a row goes behind those of its byte that come before it.
#pragma once

#include "accrue/kernels/cuda/platform.h"

#include <utility>

namespace accrue::kernels::cuda {

inline constexpr int kSortThreads = 256, kDigits = 256, kDigitBits = 8;
static_assert(kSortThreads == kDigits);

struct SortedRow {
  std::int64_t key = 0, row = 0;
};

ACCRUE_DEVICE int digit_of(std::int64_t key, int shift) {
  return static_cast<int>(key >> shift & (kDigits - 1));
}

/// counts[digit, block]: how many of the block's rows have the digit.
ACCRUE_KERNEL(kSortThreads)
void count_digits(const SortedRow* rows, std::int64_t count, int shift, std::int64_t* counts) {
  ACCRUE_SHARED(int, found, kDigits);
  const std::int64_t i = std::int64_t{block_x()} * kSortThreads + thread_index();
  found[thread_index()] = 0;
  sync_block();
  if (i < count) atomic_add(found + digit_of(rows[i].key, shift), 1);
  sync_block();
  counts[std::int64_t{thread_index()} * num_blocks_x() + block_x()] = found[thread_index()];
}

/// Each element becomes the sum of those before it. One block, whose threads take a part each.
ACCRUE_KERNEL(kSortThreads) void sum_before(std::int64_t* values, std::int64_t count) {
  ACCRUE_SHARED(std::int64_t, sums, kSortThreads);
  const std::int64_t part = (count + kSortThreads - 1) / kSortThreads;
  const std::int64_t begin = part * thread_index();
  const std::int64_t end = begin + part < count ? begin + part : count;
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += values[i];
  sums[thread_index()] = sum;
  sync_block();
  std::int64_t before = 0;
  for (int t = 0; t < thread_index(); ++t) before += sums[t];
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t value = values[i];
    values[i] = before;
    before += value;
  }
}

/// Writes each row behind the rows that come before it; `places` are the sums before the counts.
ACCRUE_KERNEL(kSortThreads)
void place_rows(const SortedRow* rows,
                std::int64_t count,
                int shift,
                const std::int64_t* places,
                SortedRow* sorted) {
  ACCRUE_SHARED(int, digits, kSortThreads);
  const std::int64_t i = std::int64_t{block_x()} * kSortThreads + thread_index();
  const SortedRow row = i < count ? rows[i] : SortedRow{};
  const int digit = digit_of(row.key, shift);
  digits[thread_index()] = digit;
  sync_block();
  if (i >= count) return;
  std::int64_t place = places[std::int64_t{digit} * num_blocks_x() + block_x()];
  for (int t = 0; t < thread_index(); ++t) place += digits[t] == digit;
  sorted[place] = row;
}

/// Sorts `count` rows with keys in [0, limit]. Returns where they are then: `rows` or `space`,
/// which holds as many.
inline SortedRow* sort_rows(
    SortedRow* rows, SortedRow* space, std::int64_t count, std::int64_t limit, Stream stream) {
  if (count == 0) return rows;
  const std::int64_t blocks = (count + kSortThreads - 1) / kSortThreads;
  Workspace counts(static_cast<std::size_t>(kDigits * blocks) * sizeof(std::int64_t), stream);
  const Launch all{
      .name = "sort_rows", .grid_x = blocks, .threads = kSortThreads, .stream = stream};
  Launch one = all;
  one.grid_x = 1;
  for (int shift = 0; limit >> shift != 0; shift += kDigitBits) {
    std::int64_t* const places = counts.as<std::int64_t>();
    launch(all, count_digits, rows, count, shift, places);
    launch(one, sum_before, places, kDigits * blocks);
    launch(all, place_rows, rows, count, shift, places, space);
    std::swap(rows, space);
  }
  return rows;
}

}  // namespace accrue::kernels::cuda
