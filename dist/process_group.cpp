#include "accrue/dist/process_group.h"

#include "accrue/dist/device_link.h"
#include "accrue/dist/fold.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace accrue::dist {
namespace {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

Bytes bytes_of(Tensor& tensor) {
  return visit_dtype(tensor.dtype(), [&]<class T>(T) {
    return std::as_writable_bytes(
        std::span(tensor.mutable_data<T>(), static_cast<std::size_t>(tensor.numel())));
  });
}

ConstBytes bytes_of(const Tensor& tensor) {
  return visit_dtype(tensor.dtype(), [&]<class T>(T) {
    return std::as_bytes(std::span(tensor.data<T>(), static_cast<std::size_t>(tensor.numel())));
  });
}

/// `bytes` in `count` equal pieces.
template <class Span>
std::vector<Span> cut(Span bytes, int count) {
  const std::size_t size = bytes.size() / static_cast<std::size_t>(count);
  std::vector<Span> pieces;
  for (int i = 0; i < count; ++i) {
    pieces.push_back(bytes.subspan(static_cast<std::size_t>(i) * size, size));
  }
  return pieces;
}

std::vector<std::byte*> starts_of(const std::vector<Bytes>& pieces) {
  std::vector<std::byte*> starts;
  for (const Bytes& piece : pieces) starts.push_back(piece.data());
  return starts;
}

/// The elements, dense and on the host.
Tensor dense_of(const Tensor& tensor) { return tensor.to(Device::cpu()).contiguous(); }

/// A dense tensor to work in, written back where it had to be a copy.
class Dense {
 public:
  explicit Dense(Tensor& tensor) : tensor_(tensor), dense_(dense_of(tensor)) {
    bytes_of(tensor);  // refuses a tensor that cannot be written, before any rank waits
  }
  Bytes bytes() { return bytes_of(dense_); }
  void write_back() {
    if (!tensor_.is_contiguous() || !tensor_.device().is_cpu()) tensor_.copy_from(dense_);
  }

 private:
  Tensor& tensor_;
  Tensor dense_;
};

Shape stacked(const Shape& shape, int count) {
  Shape result = shape;
  result.insert(0, count);
  return result;
}

void check_root(const ProcessGroup& group, int root, const char* operation) {
  ACCRUE_CHECK(root >= 0 && root < group.size(),
               IndexError,
               operation,
               "the root must lie in [0, ",
               group.size(),
               "), got ",
               root,
               "; pass a rank of the group");
}

void check_stacked(const ProcessGroup& group, const Tensor& tensor, const char* operation) {
  ACCRUE_CHECK(tensor.rank() > 0 && tensor.size(0) == group.size(),
               ShapeError,
               operation,
               "the first dimension must be the number of ranks, ",
               group.size(),
               ", got shape ",
               tensor.shape(),
               "; pass one slice per rank");
}

Call call_of(CallKind kind, const Tensor& tensor, int detail = 0) {
  return {0,
          kind,
          tensor.dtype(),
          static_cast<std::uint16_t>(detail),
          static_cast<std::uint64_t>(tensor.numel())};
}

class SelfGroup final : public ProcessGroup {
 public:
  explicit SelfGroup(double seconds) : ProcessGroup(0, 1, seconds) {}
  const char* backend() const override { return "self"; }
  std::shared_ptr<ProcessGroup> duplicate() override { return self_group({timeout()}); }
  std::int64_t step_bytes() const override { return 1 << 18; }
  void move(const Movement& movement) override {
    const ConstBytes from = movement.outgoing.front();
    const Bytes to = movement.incoming.front();
    if (!to.empty() && to.data() != from.data()) std::memcpy(to.data(), from.data(), to.size());
  }

 private:
  void compare_and_move(const Call&, const Movement& movement) override { move(movement); }
};

}  // namespace

ProcessGroup::ProcessGroup(int rank, int size, double seconds) : rank_(rank), size_(size) {
  set_timeout(seconds);
}

void ProcessGroup::set_timeout(double seconds) {
  ACCRUE_CHECK(seconds > 0,
               ValueError,
               "set_timeout",
               "the timeout must be a positive number of seconds, got ",
               seconds,
               "; pass how long to wait for an absent rank");
  timeout_ = seconds;
  const std::lock_guard lock(mutex_);
  if (link_) link_->set_timeout(seconds);
}

void ProcessGroup::leave(const std::string& reason, bool in_peace) noexcept {
  leave_calls(reason);
  std::shared_ptr<DeviceLink> link;
  {
    const std::lock_guard lock(mutex_);
    has_left_ = true;  // ends link() too
    link = link_;
  }
  if (link && in_peace) link->drain();
  if (link) link->abort(reason);
}

DeviceLink* ProcessGroup::link(Device device) {
  if (size_ == 1 || device_ == device) return link_.get();
  ACCRUE_CHECK(!device_,
               DeviceError,
               "link",
               "a rank of a group must keep to one device, got ",
               device.str(),
               " after ",
               device_->str(),
               "; use one group per device");
  std::shared_ptr<DeviceLink> link =
      connect_devices(*this, device_transport(), device, may_share_devices());
  const std::lock_guard lock(mutex_);
  link_ = std::move(link);
  device_ = device;
  if (link_ && has_left_) link_->abort("it left while it connected");
  return link_.get();
}

void ProcessGroup::begin(Call call, const Movement& movement) {
  call.sequence = ++sequence_;
  compare_and_move(call, movement);
}

std::vector<ConstBytes> ProcessGroup::look(std::span<const ConstBytes> outgoing,
                                           std::span<const std::size_t> sizes) {
  looked_at_.resize(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  std::vector<Bytes> incoming;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    incoming.push_back(std::span(looked_at_).subspan(at, size));
    at += size;
  }
  move({outgoing, incoming});
  return {incoming.begin(), incoming.end()};
}

void ProcessGroup::begin_empty(CallKind kind) {
  const std::vector<ConstBytes> nothing(static_cast<std::size_t>(size_));
  const std::vector<Bytes> nowhere(nothing.size());
  begin({.kind = kind}, {nothing, nowhere});
}

void ProcessGroup::barrier() { begin_empty(CallKind::barrier); }

void ProcessGroup::all_reduce(Tensor& tensor, ReduceOp op) {
  check_foldable(tensor.dtype(), op, "all_reduce");
  const Call call = call_of(CallKind::all_reduce, tensor, static_cast<int>(op));
  Dense dense(tensor);
  const Bytes data = dense.bytes();
  const std::int64_t width = size_of(tensor.dtype()), numel = tensor.numel();
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return data.subspan(static_cast<std::size_t>(begin * width),
                        static_cast<std::size_t>((end - begin) * width));
  };
  const std::int64_t step = std::max<std::int64_t>(step_bytes() / width, 1) * size_;
  std::vector<std::byte> scratch;
  for (std::int64_t at = 0; at == 0 || at < numel; at += step) {
    // Each rank reduces one slice of the step, then shows it to all.
    const std::int64_t length = std::min(step, numel - at);
    std::vector<Bytes> slices;
    for (int r = 0; r < size_; ++r) {
      slices.push_back(part(at + length * r / size_, at + length * (r + 1) / size_));
    }
    const Bytes mine = slices[static_cast<std::size_t>(rank_)];
    scratch.resize(mine.size() * slices.size());
    const std::vector<Bytes> received = cut(Bytes(scratch), size_);
    const std::vector<ConstBytes> outgoing(slices.begin(), slices.end());
    if (at == 0) {
      begin(call, {outgoing, received});
    } else {
      move({outgoing, received});
    }
    fold(starts_of(received), std::ssize(mine) / width, tensor.dtype(), op);
    if (!mine.empty()) std::memcpy(mine.data(), scratch.data(), mine.size());
    const ConstBytes shown = mine;
    if (numel > 0) move({{&shown, 1}, slices});
  }
  dense.write_back();
}

void ProcessGroup::reduce(Tensor& tensor, int root, ReduceOp op) {
  check_root(*this, root, "reduce");
  check_foldable(tensor.dtype(), op, "reduce");
  const Call call = call_of(CallKind::reduce, tensor, static_cast<int>(op) << 14 | root);
  Dense dense(tensor);
  std::vector<ConstBytes> outgoing(static_cast<std::size_t>(size_));
  outgoing[static_cast<std::size_t>(root)] = dense.bytes();
  std::vector<Bytes> received(outgoing.size());
  Tensor all = Tensor::empty(stacked(tensor.shape(), rank_ == root ? size_ : 0), tensor.dtype());
  if (rank_ == root) received = cut(bytes_of(all), size_);
  begin(call, {outgoing, received});
  if (rank_ != root) return;
  fold(starts_of(received), tensor.numel(), tensor.dtype(), op);
  tensor.copy_from(all.select(0, 0));
}

void ProcessGroup::broadcast(Tensor& tensor, int root) {
  check_root(*this, root, "broadcast");
  Dense dense(tensor);
  const Bytes data = dense.bytes();
  const ConstBytes outgoing = rank_ == root ? ConstBytes(data) : ConstBytes();
  std::vector<Bytes> incoming(static_cast<std::size_t>(size_));
  incoming[static_cast<std::size_t>(root)] = data;
  begin(call_of(CallKind::broadcast, tensor, root), {{&outgoing, 1}, incoming});
  dense.write_back();
}

Tensor ProcessGroup::all_gather(const Tensor& tensor) {
  const Tensor dense = dense_of(tensor);
  Tensor result = Tensor::empty(stacked(tensor.shape(), size_), tensor.dtype());
  const ConstBytes outgoing = bytes_of(dense);
  const std::vector<Bytes> incoming = cut(bytes_of(result), size_);
  begin(call_of(CallKind::all_gather, tensor), {{&outgoing, 1}, incoming});
  return result.to(tensor.device());
}

Tensor ProcessGroup::reduce_scatter(const Tensor& tensor, ReduceOp op) {
  check_stacked(*this, tensor, "reduce_scatter");
  check_foldable(tensor.dtype(), op, "reduce_scatter");
  const Tensor dense = dense_of(tensor);
  Tensor received = Tensor::empty(tensor.shape(), tensor.dtype());
  const std::vector<ConstBytes> outgoing = cut(bytes_of(dense), size_);
  const std::vector<Bytes> incoming = cut(bytes_of(received), size_);
  begin(call_of(CallKind::reduce_scatter, tensor, static_cast<int>(op)), {outgoing, incoming});
  fold(starts_of(incoming), tensor.numel() / size_, tensor.dtype(), op);
  return received.select(0, 0).clone().to(tensor.device());
}

Tensor ProcessGroup::all_to_all(const Tensor& tensor) {
  check_stacked(*this, tensor, "all_to_all");
  const Tensor dense = dense_of(tensor);
  Tensor result = Tensor::empty(tensor.shape(), tensor.dtype());
  const std::vector<ConstBytes> outgoing = cut(bytes_of(dense), size_);
  const std::vector<Bytes> incoming = cut(bytes_of(result), size_);
  begin(call_of(CallKind::all_to_all, tensor), {outgoing, incoming});
  return result.to(tensor.device());
}

std::shared_ptr<ProcessGroup> self_group(const GroupOptions& options) {
  return std::make_shared<SelfGroup>(options.timeout);
}

}  // namespace accrue::dist
