// How kernels are tested in the simulator: guarded arrays, and runs under every schedule.
#pragma once

#include "accrue/core/config.h"
#include "accrue/core/dtype.h"
#include "accrue/kernels/simt/memory.h"
#include "accrue/kernels/simt/simt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace accrue::test {

/// Elements in device memory, which get their first values back by reset().
class DeviceArray {
 public:
  DeviceArray(DType dtype, std::span<const std::byte> values, std::size_t misalignment)
      : dtype_(dtype),
        initial_(values.begin(), values.end()),
        memory_(values.size(), misalignment) {
    reset();
  }

  DType dtype() const { return dtype_; }
  std::span<std::byte> bytes() { return {memory_.data(), initial_.size()}; }
  bool is_intact() const { return memory_.is_intact(); }
  void reset() { std::ranges::copy(initial_, memory_.data()); }

 private:
  DType dtype_;
  std::vector<std::byte> initial_;
  simt::GuardedMemory memory_;
};

/// Floats in device memory. Outputs hold a signalling NaN, which no arithmetic makes, until a
/// kernel writes them.
class DeviceFloats : public DeviceArray {
 public:
  explicit DeviceFloats(const std::vector<float>& values, std::size_t misalignment = 0)
      : DeviceArray(DType::float32, std::as_bytes(std::span(values)), misalignment) {}
  static std::vector<float> unwritten(std::size_t count) {
    return std::vector<float>(count, float_of(kUnwritten));
  }

  float* data() { return reinterpret_cast<float*>(bytes().data()); }
  std::vector<float> values() { return {data(), data() + bytes().size() / sizeof(float)}; }

  static constexpr std::uint32_t kUnwritten = 0x7fa0a0a0U;
};

/// Who holds what DeviceAllocator gave.
inline std::map<const void*, std::unique_ptr<simt::GuardedMemory>>& device_memories() {
  static std::map<const void*, std::unique_ptr<simt::GuardedMemory>> the_memories;
  return the_memories;
}

template <class T>
struct DeviceAllocator {
  using value_type = T;

  DeviceAllocator() = default;
  template <class U>
  explicit DeviceAllocator(const DeviceAllocator<U>&) {}
  T* allocate(std::size_t count) {
    auto memory = std::make_unique<simt::GuardedMemory>(count * sizeof(T));
    auto* const data = reinterpret_cast<T*>(memory->data());
    device_memories()[data] = std::move(memory);
    return data;
  }
  void deallocate(T* data, std::size_t) { device_memories().erase(data); }
  bool operator==(const DeviceAllocator&) const { return true; }
};

/// A vector in device memory: indices, faults and other values that kernels use beside tensors.
template <class T>
using DeviceVector = std::vector<T, DeviceAllocator<T>>;

/// What a kernel that ran is expected to have left in an array.
struct Output {
  const char* name;
  DeviceArray* array;
  std::vector<std::byte> expected;  ///< empty: any values, but the same under all schedules

  Output(const char* label, DeviceArray* memory, std::span<const std::byte> values = {})
      : name(label), array(memory), expected(values.begin(), values.end()) {}
  Output(const char* label, DeviceFloats* memory, const std::vector<float>& values)
      : Output(label, memory, std::as_bytes(std::span(values))) {}
};

struct NamedOptions {
  std::string name;
  simt::RunOptions options;
};

/// The schedules that every kernel test runs: four; as many as the environment's ACCRUE_SCHEDULES
/// says for the full matrix. Sanitizers look at memory and order, which two schedules show them.
inline std::vector<NamedOptions> all_schedules() {
  using enum simt::Schedule;
  const char* wanted = std::getenv("ACCRUE_SCHEDULES");
  const std::size_t few = kAddressSanitizer || kThreadSanitizer ? 2 : 4;
  const std::size_t count = wanted ? std::stoul(wanted) : few;
  std::vector<NamedOptions> schedules = {{"descending", {.schedule = descending}},
                                         {"random", {.schedule = random, .seed = 7}},
                                         {"ascending", {.schedule = ascending}},
                                         {"interleaved", {.schedule = interleaved}}};
  for (std::size_t i = schedules.size(); i < count; ++i) {
    schedules.push_back({text("random ", i), {.schedule = random, .seed = 7 + i}});
  }
  schedules.erase(schedules.begin() + static_cast<std::ptrdiff_t>(count), schedules.end());
  return schedules;
}

/// The bits of element i, and those that are compared: all NaNs are one.
template <class T>
struct Element {
  std::uint64_t bits = 0, canonical = 0;

  Element(std::span<const std::byte> bytes, std::size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&bits, &value, sizeof(T));
    canonical = canonical_bits(value);
  }
  bool is_unwritten() const { return std::is_same_v<T, float> && bits == DeviceFloats::kUnwritten; }
  std::string str() const { return hex(bits, 2 * sizeof(T)); }
};

/// The first fault of the elements of one array after a run, or "".
template <class T>
std::string find_fault(Output& output, std::span<const std::byte> first) {
  const auto bytes = output.array->bytes();
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const auto where = [&] { return text(output.name, "[", i, "]"); };
    const Element<T> got(bytes, i), before(first, i);
    const Element<T> expected = output.expected.empty() ? got : Element<T>(output.expected, i);
    const bool stays = !output.expected.empty() && expected.is_unwritten();
    if (got.is_unwritten() && !stays) return where() + " was not written";
    if (before.canonical != got.canonical) {
      return text(where(), " depends on the schedule: ", before.str(), " or ", got.str());
    }
    if (expected.canonical != got.canonical || stays != got.is_unwritten()) {
      return text(where(), " is ", got.str(), ", expected ", expected.str());
    }
  }
  return "";
}

inline std::string check_array(Output& output, std::span<const std::byte> first) {
  if (!output.array->is_intact()) return text("memory beside ", output.name, " was written");
  if (output.array->dtype() == DType::boolean) return find_fault<std::uint8_t>(output, first);
  return visit_dtype(output.array->dtype(),
                     [&]<class T>(T) { return find_fault<T>(output, first); });
}

/// Calls launch() under every schedule, from the same initial values. Returns the first fault of
/// the kernel or of an output, or "".
template <class Launch>
std::string examine(std::vector<Output> outputs, const Launch& launch) {
  std::vector<std::vector<std::byte>> first;
  const simt::RunOptions before = simt::run_options();
  std::string fault;
  for (const auto& [name, options] : all_schedules()) {
    for (Output& output : outputs) output.array->reset();
    simt::run_options() = options;
    try {
      launch();
    } catch (const simt::KernelFault& error) {
      fault = error.what();
    }
    if (first.empty()) {
      for (Output& output : outputs) {
        const auto bytes = output.array->bytes();
        first.emplace_back(bytes.begin(), bytes.end());
      }
    }
    for (std::size_t i = 0; i < outputs.size() && fault.empty(); ++i) {
      fault = check_array(outputs[i], first[i]);
    }
    if (!fault.empty()) {
      fault += text(" (schedule ", name, ")");
      break;
    }
  }
  simt::run_options() = before;
  return fault;
}

}  // namespace accrue::test
