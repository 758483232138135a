#include "accrue/dist/nccl/link.h"

#include "accrue/dist/nccl/communicator.h"
#include "accrue/dist/nccl/gpu.h"

#include <cstring>

namespace accrue::dist::nccl {
namespace {

/// Whether each rank shows its piece of one array to all: the same on all ranks.
bool is_all_gather(const Movement& movement, int rank) {
  const auto& pieces = movement.incoming;
  if (movement.outgoing.size() != 1 || pieces.size() == 1 || pieces[0].empty()) return false;
  for (std::size_t r = 0; r < pieces.size(); ++r) {
    if (pieces[r].data() != pieces[0].data() + r * pieces[0].size()) return false;
    if (pieces[r].size() != pieces[0].size()) return false;
  }
  return movement.outgoing[0].data() == pieces[static_cast<std::size_t>(rank)].data();
}

class NcclLink final : public DeviceLink, private Progress {
 public:
  NcclLink(const ncclUniqueId& id, int rank, int size, Device device, double timeout)
      : gpu_(device), rank_(rank), size_(size), communicator_(id, rank, size, timeout, *this) {}

  void move(const Movement& movement) override {
    const bool gathers = is_all_gather(movement, rank_);
    issue(gathers ? "all_gather" : "all_to_all", [&](ncclComm_t comm) {
      if (gathers) {
        const auto& piece = movement.incoming[0];
        ncclAllGather(movement.outgoing[0].data(),
                      piece.data(),
                      piece.size(),
                      ncclUint8,
                      comm,
                      gpu_.stream());
        return;
      }
      for (int r = 0; r < size_; ++r) pass(movement, r, comm);
    });
  }

  void all_reduce(void* data, std::int64_t count, DType dtype) override {
    ACCRUE_CHECK(dtype == DType::float32 || dtype == DType::float64,
                 DTypeError,
                 "all_reduce",
                 "sums must be float32 or float64, got ",
                 dtype,
                 "; convert with to()");
    const ncclDataType_t type = dtype == DType::float32 ? ncclFloat32 : ncclFloat64;
    const auto number = static_cast<std::size_t>(count);
    issue("all_reduce", [&](ncclComm_t comm) {
      ncclAllReduce(data, data, number, type, ncclSum, comm, gpu_.stream());
    });
  }

  void check() override { communicator_.check_intact(); }
  void abort(const std::string& reason) noexcept override { communicator_.abort(reason); }

 private:
  template <class Calls>
  void issue(const char* name, const Calls& calls) {
    gpu_.begin();
    communicator_.issue(name, calls);
    gpu_.end();
  }

  /// What goes to rank r and comes from it.
  void pass(const Movement& movement, int r, ncclComm_t comm) {
    const auto index = static_cast<std::size_t>(r);
    const auto& out = movement.outgoing[movement.outgoing.size() == 1 ? 0 : index];
    const auto& in = movement.incoming[index];
    if (r == rank_) return;
    if (!out.empty()) ncclSend(out.data(), out.size(), ncclUint8, r, comm, gpu_.stream());
    if (!in.empty()) ncclRecv(in.data(), in.size(), ncclUint8, r, comm, gpu_.stream());
  }

  bool is_done() noexcept override { return gpu_.is_done(); }

  Gpu gpu_;
  int rank_, size_;
  Communicator communicator_;
};

class NcclTransport final : public DeviceTransport {
 public:
  std::string identity(Device device) override { return Gpu(device).identity(); }

  std::string make_id() override {
    ncclUniqueId id;
    nccl::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    return {id.internal, sizeof(id.internal)};
  }

  std::unique_ptr<DeviceLink> connect(
      const std::string& id, int rank, int size, Device device, double timeout) override {
    ncclUniqueId wanted;
    std::memcpy(wanted.internal, id.data(), sizeof(wanted.internal));
    return std::make_unique<NcclLink>(wanted, rank, size, device, timeout);
  }
};

}  // namespace

DeviceTransport& transport() {
  static NcclTransport nccl;
  return nccl;
}

}  // namespace accrue::dist::nccl
