// The kernel cases of bench/device: together they launch all that a device can.
#include "accrue/bench/device/kernel_cases.h"

#include "accrue/core/device_backend.h"
#include "accrue/kernels/norm.h"
#include "accrue/tests/support/doctest.h"

#include <set>
#include <string>

using namespace accrue;
using namespace accrue::kernels;

// The linker takes the one for accrue_cuda_backend and names that the other (--wrap).
extern "C" DeviceBackend* counting_backend() asm("__wrap_accrue_cuda_backend");
extern "C" DeviceBackend* real_backend() asm("__real_accrue_cuda_backend");

namespace {

/// Calls `visit.operator()<Args>(name)` for all that can be launched.
template <class Visit>
void for_each_kernel(const Visit& visit) {
#define ACCRUE_ARGS(Args) visit.template operator()<Args>(#Args);
#define ACCRUE_ARGS_OF(Args)                               \
  visit.template operator()<Args<float>>(#Args "<float>"); \
  visit.template operator()<Args<double>>(#Args "<double>");
#define ACCRUE_ARGS_RETURNING(R, Args) visit.template operator()<Args>(#Args);
#include "accrue/kernels/kernels.def"
}

bool counts = false;
template <class Args>
int launches = 0;
template <class Args>
LaunchSlot<Args> real_slot;

/// The same launchers, which count how often each is called while `counts`.
LaunchTable counting_table(LaunchTable table) {
  for_each_kernel([&]<class Args>(const char*) {
    LaunchSlot<Args>& slot = table;
    real_slot<Args> = slot;
    if (slot.launch == nullptr) return;
    slot.launch = [](const Args& args, Device device) {
      launches<Args> += counts ? 1 : 0;
      return real_slot<Args>.launch(args, device);
    };
  });
  return table;
}

class CountingBackend final : public DeviceBackend {
 public:
  int num_devices() override { return real_.num_devices(); }
  std::string why_none() override { return real_.why_none(); }
  std::byte* allocate(std::int64_t bytes, Device device) override {
    return real_.allocate(bytes, device);
  }
  void free(std::byte* data) noexcept override { real_.free(data); }
  void copy_bytes(void* to,
                  Device to_device,
                  const void* from,
                  Device from_device,
                  std::int64_t bytes) override {
    real_.copy_bytes(to, to_device, from, from_device, bytes);
  }
  void copy_elements(Tensor& to, const Tensor& from) override { real_.copy_elements(to, from); }
  void fill(Tensor& to, double value) override { real_.fill(to, value); }
  void synchronize(Device device) override { real_.synchronize(device); }
  const LaunchTable& launchers() const override { return table_; }

 private:
  DeviceBackend& real_ = *real_backend();
  const LaunchTable table_ = counting_table(real_.launchers());
};

}  // namespace

DeviceBackend* counting_backend() {
  static CountingBackend backend;
  return &backend;
}

TEST_CASE("bench.kernel_cases: each kernel of a device is launched by a case") {
  const Device gpu = Device::cuda(0);
  for (const bench::KernelCase& kernel : bench::kernel_cases()) {
    const bench::Work work = kernel.make(kernel.small, gpu);
    counts = true;
    work.launch();
    counts = false;
    synchronize(gpu);
  }
  std::string without_a_case;
  for_each_kernel([&]<class Args>(const char* name) {
    if (real_slot<Args>.launch != nullptr && launches<Args> == 0)
      without_a_case.append(" ").append(name);
  });
  CHECK(without_a_case == "");
}

TEST_CASE("bench.kernel_cases: names differ, and a case with sizes says what it counts") {
  std::set<std::string> names;
  for (const bench::KernelCase& kernel : bench::kernel_cases()) {
    CAPTURE(kernel.name);
    CHECK(names.insert(kernel.name).second);
    CHECK((kernel.sizes.empty() || kernel.count != nullptr));
  }
}
