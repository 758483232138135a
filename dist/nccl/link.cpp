#include "accrue/dist/nccl/link.h"

#include "accrue/dist/nccl/communicator.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/cuda/runtime.h"

#include <cstring>

namespace accrue::dist::nccl {
namespace {

namespace cuda = kernels::cuda;

/// An event of a device.
class Mark {
 public:
  explicit Mark(int device) {
    const cuda::DeviceScope scope(device);
    event_ = cuda::make_event();
  }
  ~Mark() { cuda::destroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  cuda::Event event() const { return event_; }

 private:
  cuda::Event event_;
};

class NcclLink final : public DeviceLink, private Progress {
 public:
  NcclLink(const ncclUniqueId& id, int rank, int size, Device device, double timeout)
      : device_(device.index),
        rank_(rank),
        size_(size),
        own_(cuda::next_stream(device_)),
        last_(device_),
        communicator_(id, rank, size, timeout, *this) {}

  void move(const Movement& movement) override {
    issue("all_to_all", [&](ncclComm_t comm, cudaStream_t stream) {
      for (int r = 0; r < size_; ++r) {
        if (r != rank_) pass(movement, r, comm, stream);
      }
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
    issue("all_reduce", [&](ncclComm_t comm, cudaStream_t stream) {
      ncclAllReduce(data, data, number, type, ncclSum, comm, stream);
    });
  }

  std::shared_ptr<void> use_own_stream() override {
    return std::make_shared<cuda::StreamScope>(device_, own_);
  }

  std::shared_ptr<void> mark() override {
    auto mark = std::make_shared<Mark>(device_);
    const cuda::DeviceScope scope(device_);
    cuda::record(mark->event(), cuda::current_stream(device_));
    return mark;
  }

  void wait_for(const std::shared_ptr<void>& mark) override {
    const cuda::DeviceScope scope(device_);
    cuda::wait(cuda::current_stream(device_), static_cast<const Mark*>(mark.get())->event());
  }

  void check() override { communicator_.check_intact(); }
  void abort(const std::string& reason) noexcept override { communicator_.abort(reason); }

 private:
  template <class Calls>
  void issue(const char* name, const Calls& calls) {
    const cuda::DeviceScope scope(device_);
    const cuda::Stream stream = cuda::current_stream(device_);
    communicator_.issue(
        name, [&](ncclComm_t comm) { calls(comm, static_cast<cudaStream_t>(stream.handle)); });
  }

  /// What goes to rank r and comes from it.
  static void pass(const Movement& movement, int r, ncclComm_t comm, cudaStream_t stream) {
    const auto index = static_cast<std::size_t>(r);
    const auto& out = movement.outgoing[movement.outgoing.size() == 1 ? 0 : index];
    const auto& in = movement.incoming[index];
    if (!out.empty()) ncclSend(out.data(), out.size(), ncclUint8, r, comm, stream);
    if (!in.empty()) ncclRecv(in.data(), in.size(), ncclUint8, r, comm, stream);
  }

  void note_issued() override { cuda::record(last_.event(), cuda::current_stream(device_)); }
  bool is_done() noexcept override { return cuda::is_done(last_.event()); }

  int device_, rank_, size_;
  cuda::Stream own_;
  Mark last_;  ///< behind the last group
  Communicator communicator_;
};

class NcclTransport final : public DeviceTransport {
 public:
  std::string identity(Device device) override { return cuda::identity(device.index); }

  std::string make_id() override {
    ncclUniqueId id;
    nccl::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    return {id.internal, sizeof(id.internal)};
  }

  std::unique_ptr<DeviceLink> connect(
      const std::string& id, int rank, int size, Device device, double timeout) override {
    ncclUniqueId wanted;
    std::memcpy(wanted.internal, id.data(), sizeof(wanted.internal));
    const cuda::DeviceScope scope(device.index);
    return std::make_unique<NcclLink>(wanted, rank, size, device, timeout);
  }
};

}  // namespace
}  // namespace accrue::dist::nccl

accrue::dist::DeviceTransport* accrue_cuda_transport() {
  static accrue::dist::nccl::NcclTransport transport;
  return &transport;
}
