// How kernels are tested in the simulator: guarded arrays, and runs under every schedule.
#pragma once

#include "accrue/core/bits.h"
#include "accrue/core/error.h"
#include "accrue/kernels/simt/memory.h"
#include "accrue/kernels/simt/simt.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace accrue::test {

/// Floats in device memory. Outputs hold a signalling NaN, which no arithmetic makes, until a
/// kernel writes them.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::vector<float> values, std::size_t misalignment = 0)
      : initial_(std::move(values)), memory_(initial_.size() * sizeof(float), misalignment) {
    reset();
  }
  static std::vector<float> unwritten(std::size_t count) {
    return std::vector<float>(count, float_of(kUnwritten));
  }

  float* data() { return reinterpret_cast<float*>(memory_.data()); }
  std::size_t size() const { return initial_.size(); }
  void reset() {
    if (!initial_.empty()) std::memcpy(data(), initial_.data(), memory_.size());
  }
  bool is_intact() const { return memory_.is_intact(); }
  std::vector<float> values() { return {data(), data() + size()}; }

  static constexpr std::uint32_t kUnwritten = 0x7fa0a0a0U;

 private:
  std::vector<float> initial_;
  simt::GuardedMemory memory_;
};

/// What a kernel that ran is expected to have left in an array.
struct Output {
  const char* name;
  DeviceFloats* array;
  std::vector<float> expected = {};  ///< empty: any values, but the same under all schedules
};

struct NamedOptions {
  const char* name;
  simt::RunOptions options;
};

/// The schedules that every kernel test runs.
inline std::vector<NamedOptions> all_schedules() {
  using enum simt::Schedule;
  return {{"ascending", {.schedule = ascending}},
          {"descending", {.schedule = descending}},
          {"interleaved", {.schedule = interleaved}},
          {"random", {.schedule = random, .seed = 7}}};
}

/// The first fault of one array after a run, or "".
inline std::string find_fault(Output& output, const std::vector<float>& first) {
  if (!output.array->is_intact()) return text("memory beside ", output.name, " was written");
  const std::vector<float> got = output.array->values();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto where = [&] { return text(output.name, "[", i, "]"); };
    const auto differs = [&](float x) { return canonical_bits(x) != canonical_bits(got[i]); };
    if (bits_of(got[i]) == DeviceFloats::kUnwritten) return where() + " was not written";
    if (differs(first[i])) {
      return text(where(), " depends on the schedule: ", hex8(first[i]), " or ", hex8(got[i]));
    }
    if (!output.expected.empty() && differs(output.expected[i])) {
      return text(where(), " is ", hex8(got[i]), ", expected ", hex8(output.expected[i]));
    }
  }
  return "";
}

/// Calls launch() under every schedule, from the same initial values. Returns the first fault of
/// the kernel or of an output, or "".
template <class Launch>
std::string examine(std::vector<Output> outputs, const Launch& launch) {
  std::vector<std::vector<float>> first;
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
      for (Output& output : outputs) first.push_back(output.array->values());
    }
    for (std::size_t i = 0; i < outputs.size() && fault.empty(); ++i) {
      fault = find_fault(outputs[i], first[i]);
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
