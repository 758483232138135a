// runtime_cuda.cpp on a stand-in for the CUDA runtime whose copies run as late as they may.
#include "accrue/tests/ptx/runtime.h"

#include "accrue/core/error.h"
#include "accrue/kernels/cuda/runtime.h"
#include "accrue/kernels/cuda/workspace.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace accrue;
using namespace accrue::kernels::cuda;

namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t kLargest = 64 << 10;  // what goes through pinned memory

struct StreamOrders {
  std::vector<simt::StreamOptions> all = {{simt::StreamOrder::lazy}, {simt::StreamOrder::eager}};

  StreamOrders() {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      all.push_back({simt::StreamOrder::random, seed});
    }
  }
  ~StreamOrders() { simt::set_stream_options({}); }
};

Bytes random_bytes(std::size_t count, std::mt19937& engine) {
  Bytes out(count);
  for (unsigned char& byte : out) byte = static_cast<unsigned char>(engine());
  return out;
}

/// Bytes on their way to a device, whose source is overwritten at once.
struct Sent {
  Bytes bytes;
  Workspace memory;

  Sent(std::size_t count, Stream stream, std::mt19937& engine)
      : bytes(random_bytes(count, engine)), memory(count, stream) {
    Bytes source = bytes;
    memory.upload(source.data(), count);
    std::ranges::fill(source, 0xee);
  }
  bool has_arrived() const {
    Bytes out(bytes.size(), 0xdd);
    memory.download(out.data(), out.size());
    return out == bytes;
  }
};

/// Uploads `count` times without waiting between; how much pinned memory that took.
int pieces_for(int count, std::size_t bytes, Stream stream, std::mt19937& engine) {
  const int before = ptx::num_pinned();
  std::vector<std::unique_ptr<Sent>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Sent>(bytes, stream, engine));
  for (const auto& sent : all) CHECK(sent->has_arrived());
  return ptx::num_pinned() - before;
}

}  // namespace

TEST_CASE("ptx.runtime: uploads arrive whole though their source changes at once") {
  const StreamOrders orders;
  const Stream streams[] = {make_stream(), make_stream()};
  std::mt19937 engine(1);
  int num_uploads = 0;
  for (const simt::StreamOptions& order : orders.all) {
    simt::set_stream_options(order);
    for (const std::size_t bytes : {std::size_t{1},
                                    std::size_t{511},
                                    std::size_t{512},
                                    std::size_t{513},
                                    kLargest / 2 + 1,
                                    kLargest - 1,
                                    kLargest,
                                    kLargest + 1,
                                    3 * kLargest}) {
      std::vector<std::unique_ptr<Sent>> all;
      for (int i = 0; i < 6; ++i) {
        all.push_back(std::make_unique<Sent>(bytes, streams[i % 2], engine));
      }
      CAPTURE(bytes);
      for (const auto& sent : all) CHECK(sent->has_arrived());
      num_uploads += 6;
    }
  }
  MESSAGE(num_uploads, " uploads");
}

TEST_CASE("ptx.runtime: pinned pieces serve again when their copies are done, never before") {
  const Stream stream = make_stream(), other = make_stream();
  std::mt19937 engine(2);
  CHECK(pieces_for(5, 700, stream, engine) == 5);
  CHECK(pieces_for(5, 1024, stream, engine) == 0);  // as large, and nothing is on its way
  CHECK(pieces_for(7, 513, stream, engine) == 2);
  CHECK(pieces_for(1, 512, stream, engine) == 1);  // of another size
  CHECK(pieces_for(3, 700, other, engine) == 3);   // a stream's copies end in their own order alone
  CHECK(pieces_for(3, kLargest + 1, stream, engine) == 0);
}

TEST_CASE("ptx.runtime: copies between devices and pinned memory are late, downloads are not") {
  const Stream stream = make_stream();
  const Workspace a(4, stream), b(4, stream);
  auto* const pinned = static_cast<int*>(allocate_pinned(2 * sizeof(int)));
  pinned[0] = 1;
  copy(a.as<int>(), pinned, sizeof(int), stream);
  copy(b.as<int>(), a.as<int>(), sizeof(int), stream);
  copy(pinned + 1, b.as<int>(), sizeof(int), stream);
  pinned[0] = 2;  // too early
  pinned[1] = 0;
  int out = 0;
  copy(&out, b.as<int>(), sizeof(int), stream);
  CHECK(out == 2);
  CHECK(pinned[1] == 2);
  free_pinned(pinned);
}

TEST_CASE("ptx.runtime: calls that fail are named, later uploads arrive") {
  const Stream stream = make_stream();
  std::mt19937 engine(3);
  const Workspace target(kLargest + 1, stream);
  const Bytes source(kLargest + 1);  // of copies that nobody waits for, too
  const auto fails = [&](const char* call, std::size_t bytes) {
    const ptx::FailingCall failing(call, cudaErrorLaunchFailure);
    std::string said;
    try {
      copy(target.as<void>(), source.data(), bytes, stream);
    } catch (const DeviceError& error) {
      said = error.what();
    }
    CAPTURE(said);
    CHECK(said.starts_with(text("[", call, "] cudaErrorLaunchFailure: ")));
  };
  pieces_for(1, 300, stream, engine);
  const int before = ptx::num_pinned();
  for (int i = 0; i < 3; ++i) fails("cudaMemcpyAsync", 300);
  CHECK(ptx::num_pinned() == before);  // the piece is not lost
  fails("cudaPointerGetAttributes", 300);
  fails("cudaEventRecord", 300);
  fails("cudaEventCreateWithFlags", 5000);
  fails("cudaMemcpyAsync", kLargest + 1);
  fails("cudaStreamSynchronize", kLargest + 1);
  for (const std::size_t bytes : {std::size_t{300}, std::size_t{5000}, kLargest + 1}) {
    CHECK(Sent(bytes, stream, engine).has_arrived());
  }
}

TEST_CASE("ptx.runtime: memory that is not there is named, the device's and the host's") {
  const auto said = [](const char* call, const auto& allocate) {
    const ptx::FailingCall failing(call, cudaErrorMemoryAllocation);
    try {
      allocate(1 << 20);
    } catch (const OutOfMemoryError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said("cudaMalloc", allocate_memory) ==
        "[cudaMalloc] the device must have 1048576 bytes left, got fewer");
  CHECK(said("cudaMallocHost", allocate_pinned) ==
        "[cudaMallocHost] the host must have 1048576 bytes to pin, got fewer");
}
