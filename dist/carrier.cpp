#include "accrue/dist/carrier.h"

#include "accrue/core/device_backend.h"

#include <cstring>
#include <numeric>

namespace accrue::dist {

using ConstBytes = std::span<const std::byte>;

std::vector<ConstBytes> HostCarrier::look(std::span<const ConstBytes> outgoing,
                                          std::span<const std::size_t> sizes,
                                          bool fits) {
  return fits ? group_.look(outgoing, sizes) : group_.ProcessGroup::look(outgoing, sizes);
}

void HostCarrier::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::vector<ConstBytes> DeviceCarrier::look(std::span<const ConstBytes> outgoing,
                                            std::span<const std::size_t> sizes,
                                            bool) {
  const std::size_t total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  if (!looked_at_.defined() || looked_at_.numel() < static_cast<std::int64_t>(total)) {
    looked_at_ = Tensor::empty({static_cast<std::int64_t>(total)}, DType::uint8, device_);
  }
  auto* at = reinterpret_cast<std::byte*>(looked_at_.mutable_data<std::uint8_t>());
  std::vector<std::span<std::byte>> incoming;
  for (const std::size_t size : sizes) {
    incoming.emplace_back(at, size);
    at += size;
  }
  move({outgoing, incoming});
  return {incoming.begin(), incoming.end()};
}

void DeviceCarrier::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  backend_of(device_, "sum_nodes")
      .copy_bytes(to, device_, from, device_, static_cast<std::int64_t>(bytes));
}

}  // namespace accrue::dist
