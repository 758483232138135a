#include "accrue/dist/device_link.h"

#include "accrue/core/device_backend.h"
#include "accrue/dist/caught_text.h"
#include "accrue/dist/process_group.h"

// Defined by the CUDA part: linked into this program, or in the shared object that core loads.
extern "C" [[gnu::weak]] accrue::dist::DeviceTransport* accrue_cuda_transport();

namespace accrue::dist {
namespace {

constexpr char kFine = '.', kFailed = '!';  // the first byte of what a rank tells

/// Tells all ranks what attempt() returns. All throw, with one text, where it failed on any.
template <class Attempt>
std::vector<std::string> tell(ProcessGroup& group, const char* wanted, const Attempt& attempt) {
  std::string mine;
  try {
    mine = kFine + attempt();
  } catch (...) {
    mine = kFailed + caught_text();
  }
  std::vector<std::string> told = group.all_gather_bytes(mine);
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    ACCRUE_CHECK(told[rank].front() == kFine,
                 DeviceError,
                 "connect_devices",
                 wanted,
                 ", got a failure on rank ",
                 rank,
                 ": ",
                 told[rank].substr(1));
    told[rank].erase(0, 1);
  }
  return told;
}

}  // namespace

DeviceTransport& device_transport() {
  if (accrue_cuda_transport != nullptr) return *accrue_cuda_transport();
  backend_of(Device::cuda(0), "link");
  const auto transport =
      reinterpret_cast<DeviceTransport* (*)()>(cuda_part_symbol("accrue_cuda_transport"));
  ACCRUE_CHECK(
      transport != nullptr,
      DeviceError,
      "link",
      "the CUDA part must come with NCCL, got one without; install NCCL and configure again");
  return *transport();
}

std::unique_ptr<DeviceLink> connect_devices(ProcessGroup& group,
                                            DeviceTransport& transport,
                                            Device device,
                                            bool may_share) {
  const std::vector<std::string> gpus =
      tell(group, "all ranks must have a GPU", [&] { return transport.identity(device); });
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus.size(); ++b) {
      if (gpus[a] == gpus[b] && may_share) return nullptr;
      ACCRUE_CHECK(gpus[a] != gpus[b],
                   DeviceError,
                   "connect_devices",
                   "each rank must have a GPU of its own, got ranks ",
                   a,
                   " and ",
                   b,
                   " both on ",
                   gpus[a],
                   "; start at most one rank per GPU and give rank r of a host cuda:r");
    }
  }
  const std::string id = tell(group, "rank 0 must begin", [&] {
                           return group.rank() == 0 ? transport.make_id() : "";
                         }).front();
  std::unique_ptr<DeviceLink> link;
  tell(group, "all ranks must connect", [&] {
    link = transport.connect(id, group, device);
    return std::string();
  });
  return link;
}

}  // namespace accrue::dist
