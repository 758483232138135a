// Planted bugs of edges, index overflow, missing and wrong values, and launch limits.
#include "accrue/core/sum_order.h"
#include "accrue/kernels/cuda/platform.h"
#include "accrue/tests/simt/planted_bugs.h"
#include "accrue/tests/support/literal_sum.h"
#include "accrue/tests/support/simt_check.h"

namespace accrue::test {
namespace {

using namespace kernels::cuda;

constexpr int kThreads = 64;

std::vector<float> fractions(int count) {
  std::vector<float> values;
  for (int i = 1; i <= count; ++i)
    values.push_back(static_cast<float>(i * 7919 % 101) / (i % 3 == 0 ? 3e-6f : 3));
  return values;
}

DeviceFloats unwritten(int count) {
  return DeviceFloats(DeviceFloats::unwritten(static_cast<std::size_t>(count)));
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void write_edge(const float* x, float* y, int count) {
  const int i = block_x() * kThreads + thread_index();
  if (i < count) y[i] = x[i];
  if (kBug && i == count) y[i] = 0;
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void read_edge(const float* x, float* y, int count) {
  const int i = block_x() * kThreads + thread_index();
  if (i < count) y[i] = x[!kBug && i + 1 == count ? i : i + 1];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void shared_edge(const float* x, float* y, int count) {
  ACCRUE_SHARED(float, tile, kThreads);
  const int t = thread_index();
  if (t < count) tile[t + (kBug ? 1 : 0)] = x[t];
  if (kBug && t == 0) tile[0] = x[0];
  sync_block();
  if (t < count) y[t] = tile[t];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void shared_read_edge(const float* x, float* y, int count) {
  ACCRUE_SHARED(float, tile, kThreads);
  const int t = thread_index();
  tile[t] = x[t];
  sync_block();
  if (t < count) y[t] = tile[t] + 0 * tile[kBug || t + 1 < kThreads ? t + 1 : t];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void vector_access(const float* x, float* y, int count) {
  const int i = 4 * thread_index();
  if (i + 4 <= count) store4(y + i, load4(x + (kBug ? i + 1 : i)));
}

/// Writes the last row of `rows` rows of 65,536 floats.
template <bool kBug>
ACCRUE_KERNEL(kThreads)
void last_row(float* y, int rows) {
  const int columns = 1 << 16, c = thread_index();
  if constexpr (kBug) {
    y[(rows - 1) * columns + c] = 1;
  } else {
    y[static_cast<std::int64_t>(rows - 1) * columns + c] = 1;
  }
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void uninitialised_shared(const float* x, float* y, int) {
  ACCRUE_SHARED(float, total, kThreads);
  const int t = thread_index();
  if constexpr (!kBug) total[t] = 0;
  total[t] += x[t];
  y[t] = total[t];
}

template <bool kBug>
ACCRUE_KERNEL(kThreads)
void unwritten_output(const float* x, float* y, int count) {
  const int i = block_x() * kThreads + thread_index();
  if (i < count - (kBug ? 1 : 0)) y[i] = x[i];
}

/// A warp's sum in the order of core/sum_order.h; the bug folds neighbours first.
template <bool kBug>
ACCRUE_KERNEL(32)
void leaf_order(const float* x, float* y, int) {
  float sum = 0.0f + x[thread_index()];
  for (int width = 16; width > 0; width /= 2) sum += shuffle_xor(sum, kBug ? 16 / width : width);
  if (thread_index() == 0) y[0] = sum + 0.0f;
}

template <int kFloats>
ACCRUE_KERNEL(kThreads)
void much_shared(const float* x, float* y, int) {
  ACCRUE_SHARED(float, tile, kFloats);
  tile[thread_index()] = x[thread_index()];
  y[thread_index()] = tile[thread_index()];
}

using Kernel = void (*)(const float*, float*, int);

/// Copies `count` inputs; the outputs must be `expected` unless that is empty.
std::string examine_copy(const char* name, Kernel kernel, int count, std::vector<float> expected) {
  DeviceFloats x(fractions(count)), y = unwritten(count);
  return examine({{"y", &y, std::move(expected)}}, [&] {
    const int blocks = (count + kThreads - 1) / kThreads;
    launch(
        {.name = name, .grid_x = blocks, .threads = kThreads}, kernel, x.data(), y.data(), count);
  });
}

std::string examine_last_row(bool has_bug) {
  constexpr int kRows = (1 << 15) + 2;  // their 2^31 + 2^17 floats are never in memory
  const simt::GuardedMemory y(std::size_t{kRows} << 18, 0, simt::GuardedMemory::kWideFence);
  return examine({}, [&] {
    launch({.name = "last_row", .threads = kThreads},
           has_bug ? last_row<true> : last_row<false>,
           reinterpret_cast<float*>(y.data()),
           kRows);
  });
}

std::string examine_leaf_order(bool has_bug) {
  DeviceFloats x(fractions(32)), y = unwritten(1);
  const std::vector<float> values = x.values();
  const float sum =
      literal_sum<float>(32, [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
  return examine({{"y", &y, {sum}}}, [&] {
    launch({.name = "leaf_order", .threads = 32},
           has_bug ? leaf_order<true> : leaf_order<false>,
           x.data(),
           y.data(),
           32);
  });
}

std::string examine_limit(Launch how) {
  DeviceFloats x(fractions(64)), y(fractions(64));
  how.name = "write_edge";
  return examine({{"y", &y}}, [&] { launch(how, write_edge<false>, x.data(), y.data(), 64); });
}

}  // namespace

#define ACCRUE_EXAMINE(kernel, count, ...)                                                      \
  [](bool has_bug) {                                                                            \
    return examine_copy(#kernel, has_bug ? kernel<true> : kernel<false>, count, {__VA_ARGS__}); \
  }

std::vector<PlantedBug> bugs_of_memory() {
  const auto fault = [](const char* name, auto examine, const char* report) {
    return PlantedBug{name, examine, report, report, report};
  };
  const auto too_many_threads = [](bool has_bug) {
    return examine_limit({.threads = has_bug ? 1056 : 64});
  };
  const auto too_many_blocks = [](bool has_bug) {
    return examine_limit({.grid_y = has_bug ? 65536 : 1, .threads = 64});
  };
  const auto too_much_shared = [](bool has_bug) {
    return examine_copy("much_shared", has_bug ? much_shared<12289> : much_shared<12288>, 64, {});
  };
  const auto too_much_dynamic = [](bool has_bug) {
    constexpr std::size_t kMost = 227 * 1024;
    return examine_limit({.threads = 64, .dynamic_shared = has_bug ? kMost + 1 : kMost});
  };
  constexpr const char *kPoisoned = "AddressSanitizer", *kSignal = "died of signal 11";
  constexpr const char *kBeside = "memory beside y was written",
                       *kUninitialised = "y[0] is ffffffff";
  constexpr const char* kShared = "wrote outside the shared array tile";
  return {
      {"edge of an output", ACCRUE_EXAMINE(write_edge, 99), kBeside, kPoisoned, kBeside},
      {"edge of an input", ACCRUE_EXAMINE(read_edge, 100), kSignal, kPoisoned, kSignal},
      {"edge of shared memory", ACCRUE_EXAMINE(shared_edge, 64), kShared, kPoisoned, "data race"},
      {"edge of shared memory, read",
       ACCRUE_EXAMINE(shared_read_edge, 64),
       nullptr,
       kPoisoned,
       nullptr},
      {"index of 32 bits", examine_last_row, kSignal, "signed integer overflow", kSignal},
      fault("misaligned vector", ACCRUE_EXAMINE(vector_access, 64), "aligned to 16 bytes"),
      fault("uninitialised shared memory",
            ACCRUE_EXAMINE(uninitialised_shared, 64, fractions(64)),
            kUninitialised),
      fault("unwritten output", ACCRUE_EXAMINE(unwritten_output, 99), "y[98] was not written"),
      fault("wrong order of leaves", examine_leaf_order, "expected"),
      fault(
          "too many threads", too_many_threads, "Configuration: a block has at most 1024 threads"),
      fault("too many blocks", too_many_blocks, "cudaErrorInvalidConfiguration: grid.y"),
      fault("too much shared memory", too_much_shared, "at most 49152 bytes declared"),
      fault("too much dynamic shared memory", too_much_dynamic, "cudaErrorInvalidValue"),
  };
}

}  // namespace accrue::test
