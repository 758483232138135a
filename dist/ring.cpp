#include "accrue/dist/ring.h"

#include "accrue/dist/device_link.h"
#include "accrue/dist/fold.h"

namespace accrue::dist {
namespace {

/// The slices of a dense tensor and the neighbours of this rank.
class Ring {
 public:
  Ring(ProcessGroup& group, std::span<std::byte> data, DType dtype)
      : group_(group), data_(data), dtype_(dtype), width_(size_of(dtype)) {}

  void run(const Call& call) {
    const int size = group_.size();
    std::vector<std::byte> received(slice(size - 1).size() + static_cast<std::size_t>(width_));
    for (int step = 0; step < size; ++step) {
      const std::span<std::byte> mine = slice(group_.rank() - step - 1);
      const bool is_first = step == 0;  // nothing to add yet: ranks compare what they call
      const std::span<std::byte> from = std::span(received).first(is_first ? 0 : mine.size());
      pass(
          is_first ? &call : nullptr, is_first ? mine.first(0) : slice(group_.rank() - step), from);
      if (is_first) continue;
      std::byte* const parts[] = {from.data(), mine.data()};
      fold(parts, std::ssize(mine) / width_, dtype_, ReduceOp::sum);
      std::copy(from.begin(), from.end(), mine.begin());
    }
    for (int step = 0; step + 1 < size; ++step) {
      pass(nullptr, slice(group_.rank() - step), slice(group_.rank() - step - 1));
    }
  }

 private:
  std::span<std::byte> slice(int index) const {
    const std::int64_t size = group_.size(), numel = std::ssize(data_) / width_;
    const std::int64_t i = (index % size + size) % size;
    const std::int64_t begin = numel * i / size, end = numel * (i + 1) / size;
    return data_.subspan(static_cast<std::size_t>(begin * width_),
                         static_cast<std::size_t>((end - begin) * width_));
  }

  /// Sends to the next rank, receives from the one before.
  void pass(const Call* call, std::span<std::byte> to_next, std::span<std::byte> from_previous) {
    const int size = group_.size();
    std::vector<std::span<const std::byte>> outgoing(static_cast<std::size_t>(size));
    std::vector<std::span<std::byte>> incoming(outgoing.size());
    outgoing[static_cast<std::size_t>((group_.rank() + 1) % size)] = to_next;
    incoming[static_cast<std::size_t>((group_.rank() + size - 1) % size)] = from_previous;
    if (call) {
      group_.begin(*call, {outgoing, incoming});
    } else {
      group_.move({outgoing, incoming});
    }
  }

  ProcessGroup& group_;
  std::span<std::byte> data_;
  DType dtype_;
  std::int64_t width_;
};

Call call_of(const Tensor& tensor) {
  return {.kind = CallKind::ring_all_reduce,
          .dtype = tensor.dtype(),
          .count = static_cast<std::uint64_t>(tensor.numel())};
}

/// By the link's own ring, after ranks compared what they call.
void reduce_on_device(ProcessGroup& group, DeviceLink& link, Tensor& tensor) {
  const std::vector<std::span<const std::byte>> nothing(static_cast<std::size_t>(group.size()));
  const std::vector<std::span<std::byte>> nowhere(nothing.size());
  group.begin(call_of(tensor), {nothing, nowhere});
  Tensor dense = tensor.contiguous();
  visit_floating(tensor.dtype(), "ring_all_reduce", [&]<class T>(T) {
    link.all_reduce(dense.mutable_data<T>(), dense.numel(), dense.dtype());
  });
  if (!tensor.is_contiguous()) tensor.copy_from(dense);
}

}  // namespace

void ring_all_reduce(ProcessGroup& group, Tensor& tensor) {
  check_foldable(tensor.dtype(), ReduceOp::sum, "ring_all_reduce");
  DeviceLink* const link = tensor.device().is_cpu() ? nullptr : group.link(tensor.device());
  if (link) return reduce_on_device(group, *link, tensor);
  visit_dtype(tensor.dtype(), [&]<class T>(T) {
    tensor.mutable_data<T>();  // refuses a tensor that cannot be written, before any rank waits
    Tensor dense = tensor.to(Device::cpu()).contiguous();
    const std::span data(dense.mutable_data<T>(), static_cast<std::size_t>(dense.numel()));
    Ring(group, std::as_writable_bytes(data), tensor.dtype()).run(call_of(tensor));
    if (!tensor.is_contiguous() || !tensor.device().is_cpu()) tensor.copy_from(dense);
  });
}

}  // namespace accrue::dist
