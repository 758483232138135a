#include "accrue/dist/nccl/link.h"

#include "accrue/dist/nccl/communicator.h"
#include "accrue/kernels/cuda/current_stream.h"
#include "accrue/kernels/cuda/runtime.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace accrue::dist::nccl {
namespace {

namespace cuda = kernels::cuda;

/// An event of a device.
class Mark {
 public:
  explicit Mark(int device) : device_(device) {
    const cuda::DeviceScope scope(device);
    event_ = cuda::make_event();
  }
  ~Mark() {
    try {
      const cuda::DeviceScope scope(device_);
      cuda::destroy(event_);
    } catch (const Error&) {  // the device is lost, and the event with it
    }
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  cuda::Event event() const { return event_; }

 private:
  int device_;
  cuda::Event event_;
};

/// The links that are alive. Static objects are destroyed after NCCL and the CUDA runtime, so links
/// that they hold end before: when the process ends.
class LiveLinks {
 public:
  static LiveLinks& instance() {
    static auto* const links = new LiveLinks;
    return *links;
  }
  void add(DeviceLink& link) {
    const std::lock_guard lock(mutex_);
    links_.push_back(&link);
    if (!std::exchange(is_registered_, true)) std::atexit([] { instance().end(); });
  }
  void remove(DeviceLink& link) {
    const std::lock_guard lock(mutex_);
    std::erase(links_, &link);
  }

 private:
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    for (DeviceLink* const link : links_) {
      link->drain();
      link->abort("its process ended");
    }
  }

  std::mutex mutex_;
  std::vector<DeviceLink*> links_;
  bool is_registered_ = false;
};

class NcclLink final : public DeviceLink, private Progress {
 public:
  NcclLink(const ncclUniqueId& id, const ProcessGroup& group, Device device)
      : device_(device.index),
        rank_(group.rank()),
        size_(group.size()),
        own_(device_),
        last_(device_),
        communicator_(id, group, *this) {
    LiveLinks::instance().add(*this);
  }
  ~NcclLink() override { LiveLinks::instance().remove(*this); }
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

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
    const cuda::Stream stream = cuda::current_stream(device_);
    cuda::wait(stream, static_cast<const Mark*>(mark.get())->event());
    if (stream == own_) return;
    const std::lock_guard lock(mutex_);
    awaited_ = mark;
  }

  void check() override { communicator_.check_intact(); }
  void set_timeout(double seconds) override { communicator_.set_timeout(seconds); }
  /// The communicator's watcher ends what takes too long.
  void drain() noexcept override {
    try {
      const cuda::DeviceScope scope(device_);
      cuda::synchronize(last_.event());
    } catch (...) {
      cuda::note_lost_work(device_, std::current_exception());
    }
  }
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

  void note_issued() override {
    const cuda::Stream stream = cuda::current_stream(device_);
    cuda::record(last_.event(), stream);
    is_beside_ = stream == own_;
  }
  bool is_done() noexcept override { return is_done(last_); }
  bool is_done(const Mark& mark) const noexcept {
    try {
      const cuda::DeviceScope scope(device_);
      return cuda::is_done(mark.event());
    } catch (...) {  // the device is lost, and the work with it
      return true;
    }
  }

  /// Whoever reads results is told, but not of those that nobody waits for: a window that failed.
  void note_lost(const std::exception_ptr& reason) noexcept override {
    const std::lock_guard lock(mutex_);
    const bool is_awaited = awaited_ && !is_done(*static_cast<const Mark*>(awaited_.get()));
    if (is_awaited || !(is_beside_ || is_done(last_))) cuda::note_lost_work(device_, reason);
  }

  int device_, rank_, size_;
  cuda::OwnStream own_;
  Mark last_;                            ///< behind the last group
  std::atomic<bool> is_beside_ = false;  ///< which went to the own stream
  std::mutex mutex_;
  std::shared_ptr<void> awaited_;  ///< the last mark of the own stream that others wait for
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

  std::unique_ptr<DeviceLink> connect(const std::string& id,
                                      const ProcessGroup& group,
                                      Device device) override {
    ncclUniqueId wanted;
    std::memcpy(wanted.internal, id.data(), sizeof(wanted.internal));
    const cuda::DeviceScope scope(device.index);
    return std::make_unique<NcclLink>(wanted, group, device);
  }
};

}  // namespace
}  // namespace accrue::dist::nccl

accrue::dist::DeviceTransport* accrue_cuda_transport() {
  static accrue::dist::nccl::NcclTransport transport;
  return &transport;
}
