// Storage and its handles: alignment, shared ownership, versions, refused requests.
#include "accrue/core/storage.h"

#include "accrue/core/allocator.h"
#include "accrue/core/device_backend.h"
#include "accrue/core/error.h"
#include "accrue/tests/support/doctest.h"

#include <thread>
#include <utility>
#include <vector>

using accrue::Device;
using accrue::Ref;
using accrue::Storage;

TEST_CASE("core.storage: bytes are aligned to 64 and all writable") {
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 1000, 100000}) {
    const auto storage = Storage::allocate(bytes, Device::cpu());
    CHECK(reinterpret_cast<std::uintptr_t>(storage->data()) % 64 == 0);
    CHECK(storage->bytes() == bytes);
    CHECK(storage->device() == Device::cpu());
    for (std::int64_t i = 0; i < bytes; ++i) storage->data()[i] = std::byte{1};
  }
}

TEST_CASE("core.storage: the last handle gives the memory back") {
  const std::int64_t before = accrue::cpu_memory_stats().allocated_bytes;
  auto first = Storage::allocate(1000, Device::cpu());
  CHECK(accrue::cpu_memory_stats().allocated_bytes == before + 1064);
  CHECK(first->unique());
  Ref<Storage> second = first;
  CHECK(!first->unique());
  CHECK(second == first);
  first = {};
  CHECK(!first);
  CHECK(accrue::cpu_memory_stats().allocated_bytes == before + 1064);
  Ref<Storage> third = std::move(second);
  CHECK(!second);
  third = *&third;
  CHECK(third->unique());
  third = Ref<Storage>();
  CHECK(accrue::cpu_memory_stats().allocated_bytes == before);
}

TEST_CASE("core.storage: detach keeps the count for the caller") {
  Ref<Storage> handle = Storage::allocate(8, Device::cpu());
  Storage* raw = handle.detach();
  CHECK(!handle);
  CHECK(raw->release());
  Storage::destroy(raw);
}

TEST_CASE("core.storage: handles are counted right from several threads") {
  const std::int64_t before = accrue::cpu_memory_stats().allocated_bytes;
  {
    const auto storage = Storage::allocate(64, Device::cpu());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([handle = storage] {
        for (int i = 0; i < 10000; ++i) const Ref<Storage> copy = handle;
      });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    CHECK(storage->unique());
  }
  CHECK(accrue::cpu_memory_stats().allocated_bytes == before);
}

TEST_CASE("core.storage: versions count writes") {
  const auto storage = Storage::allocate(8, Device::cpu());
  CHECK(storage->version() == 0);
  storage->bump_version();
  CHECK(storage->version() == 1);
}

TEST_CASE("core.storage: adopted bytes go back once, with the last share") {
  struct Owner {
    std::vector<std::byte> bytes = std::vector<std::byte>(24);
    int returned = 0;
  } owner;
  const Storage::Release release = [](void* it, std::byte* data, std::int64_t bytes) noexcept {
    auto& its = *static_cast<Owner*>(it);
    its.returned += data == its.bytes.data() && bytes == 24;
  };
  const std::int64_t before = accrue::cpu_memory_stats().allocated_bytes;
  auto storage = Storage::adopt(owner.bytes.data(), 24, Device::cuda(1), release, &owner);
  CHECK(storage->data() == owner.bytes.data());
  CHECK(storage->bytes() == 24);
  CHECK(storage->device() == Device::cuda(1));
  Ref<Storage> second = std::exchange(storage, {});
  CHECK(owner.returned == 0);
  second = {};
  CHECK(owner.returned == 1);
  Storage::adopt(owner.bytes.data(), 24, Device::cpu());
  CHECK(accrue::cpu_memory_stats().allocated_bytes == before);
  CHECK_THROWS_AS(Storage::adopt(nullptr, -1, Device::cpu()), accrue::ValueError);
}

TEST_CASE("core.storage: absent devices and senseless sizes are refused") {
  if (accrue::cuda_device_count() == 0) {
    CHECK_THROWS_WITH_AS(
        Storage::allocate(8, Device::cuda(1)),
        ("[allocate] device must be cpu here, got cuda:1; " + accrue::why_no_cuda()).c_str(),
        accrue::DeviceError);
  }
  CHECK_THROWS_WITH_AS(Storage::allocate(-1, Device::cpu()),
                       "[allocate] bytes must lie in [0, 2^63 - 65], got -1",
                       accrue::ValueError);
  CHECK_THROWS_AS(Storage::allocate(INT64_MAX, Device::cpu()), accrue::ValueError);
  CHECK_THROWS_AS(Storage::allocate(INT64_MAX - 64, Device::cpu()), accrue::OutOfMemoryError);
}
