// The caching allocator: reuse, counting, running out of memory, threads.
#include "accrue/core/allocator.h"

#include "accrue/core/config.h"
#include "accrue/core/error.h"
#include "accrue/tests/support/doctest.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

using accrue::cpu_allocate;
using accrue::cpu_free;
using accrue::cpu_memory_stats;
using accrue::OutOfMemoryError;

namespace {

constexpr std::int64_t kMebi = std::int64_t{1} << 20;

std::int64_t allocated() { return cpu_memory_stats().allocated_bytes; }
std::int64_t cached() { return cpu_memory_stats().cached_bytes; }

std::int64_t virtual_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// Limits the address space of this process until the end of the scope.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("core.allocator: a freed block serves the next request of its size class") {
  if (accrue::kAddressSanitizer) return;  // which looks for uses after free, so nothing is kept
  accrue::empty_cpu_cache();
  void* first = cpu_allocate(1000);
  cpu_free(first, 1000);
  CHECK(cached() == 1024);
  void* second = cpu_allocate(970);
  CHECK(second == first);
  CHECK(cached() == 0);
  void* third = cpu_allocate(970);
  CHECK(third != second);
  cpu_free(second, 970);
  cpu_free(third, 970);
  CHECK(cached() == 2048);
  accrue::empty_cpu_cache();
  CHECK(cached() == 0);
}

TEST_CASE("core.allocator: a block has at most an eighth of slack above the next 64 bytes") {
  if (accrue::kAddressSanitizer) return;
  accrue::empty_cpu_cache();
  int num_sizes = 0;
  for (std::int64_t base = 1; base <= 512 * kMebi; base *= 2) {
    for (const std::int64_t bytes : {base, base + 1, base + base / 3, 2 * base - 1}) {
      cpu_free(cpu_allocate(bytes), bytes);
      const std::int64_t block = cached();
      accrue::empty_cpu_cache();
      CHECK(block >= bytes);
      CHECK(block % 64 == 0);
      CHECK(block < bytes + bytes / 8 + 64);
      ++num_sizes;
    }
  }
  MESSAGE("block sizes checked: " << num_sizes);
}

TEST_CASE("core.allocator: blocks beyond one GiB of cache go back to the system") {
  accrue::empty_cpu_cache();
  const std::int64_t big = 1024 * kMebi + 1;
  cpu_free(cpu_allocate(big), big);
  CHECK(cached() == 0);
}

TEST_CASE("core.allocator: the peak is the highest number of bytes in use since its reset") {
  accrue::reset_peak_cpu_memory();
  const std::int64_t start = allocated();
  CHECK(cpu_memory_stats().peak_bytes == start);
  void* a = cpu_allocate(1000);
  void* b = cpu_allocate(500);
  cpu_free(a, 1000);
  void* c = cpu_allocate(200);
  CHECK(allocated() == start + 700);
  CHECK(cpu_memory_stats().peak_bytes == start + 1500);
  accrue::reset_peak_cpu_memory();
  CHECK(cpu_memory_stats().peak_bytes == start + 700);
  cpu_free(b, 500);
  cpu_free(c, 200);
  CHECK(allocated() == start);
  CHECK(cpu_memory_stats().peak_bytes == start + 700);
}

TEST_CASE("core.allocator: a refused request changes no count and the next one is served") {
  const auto before = cpu_memory_stats();
  CHECK_THROWS_WITH_AS(cpu_allocate(std::int64_t{1} << 47),
                       "[allocate] the system must provide 140737488355328 bytes, got none; use "
                       "smaller tensors or a smaller micro-batch",
                       OutOfMemoryError);
  for (const std::int64_t bytes : {(std::int64_t{1} << 48) + 1, std::int64_t{1} << 62, INT64_MAX}) {
    CHECK_THROWS_AS(cpu_allocate(bytes), OutOfMemoryError);
  }
  const auto after = cpu_memory_stats();
  CHECK(after.allocated_bytes == before.allocated_bytes);
  CHECK(after.peak_bytes == before.peak_bytes);
  void* block = cpu_allocate(100);
  std::memset(block, 1, 100);
  cpu_free(block, 100);
}

TEST_CASE("core.allocator: the cache is given back before a request is refused") {
  if (virtual_bytes() > (std::int64_t{1} << 40)) return;  // sanitizers map terabytes
  accrue::empty_cpu_cache();
  cpu_free(cpu_allocate(512 * kMebi), 512 * kMebi);
  CHECK(cached() == 512 * kMebi);
  void* block = nullptr;
  {
    const AddressSpaceLimit limit(virtual_bytes() + 256 * kMebi);
    CHECK_NOTHROW(block = cpu_allocate(600 * kMebi));
    CHECK_THROWS_AS(cpu_allocate(600 * kMebi), OutOfMemoryError);
  }
  CHECK(cached() == 0);
  cpu_free(block, 600 * kMebi);
  accrue::empty_cpu_cache();
}

TEST_CASE("core.allocator: threads never share a block and the counts stay right") {
  const std::int64_t start = allocated();
  std::vector<int> num_damaged(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &damaged = num_damaged[static_cast<std::size_t>(t)]] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::vector<unsigned char*>> live(64);
      for (int i = 0; i < 20000; ++i) {
        const std::size_t bytes = 1 + random() % 64;
        auto& blocks = live[bytes - 1];
        if (blocks.size() < 4) {
          auto* block = static_cast<unsigned char*>(cpu_allocate(static_cast<std::int64_t>(bytes)));
          std::memset(block, t, bytes);
          blocks.push_back(block);
        } else {
          for (std::size_t k = 0; k < bytes; ++k) damaged += blocks.back()[k] != t;
          cpu_free(blocks.back(), static_cast<std::int64_t>(bytes));
          blocks.pop_back();
        }
      }
      for (std::size_t bytes = 1; bytes <= live.size(); ++bytes) {
        for (auto* block : live[bytes - 1]) cpu_free(block, static_cast<std::int64_t>(bytes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_damaged == std::vector<int>(4, 0));
  CHECK(allocated() == start);
  MESSAGE("requests and returns from 4 threads: " << 4 * 20000);
}
