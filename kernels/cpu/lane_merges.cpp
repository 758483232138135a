// Merging buffers block by block, on the calling thread: memory is what it waits for.
#include "accrue/kernels/lane_merges.h"

#include "accrue/kernels/cpu/float_mode.h"

#include <algorithm>

namespace accrue::kernels {
namespace {

constexpr std::int64_t kBlock = 512;  // elements: accumulator and scratch stay in the first cache

/// The accumulator and scratch slots of one block. What is only loaded is not copied: `value` then
/// points into its slot.
template <class T>
class Block {
 public:
  Block(std::span<T* const> slots, std::int64_t at, std::int64_t count)
      : slots_(slots), at_(at), count_(count) {}

  void zero() {
    std::fill_n(sum_, count_, T(0));
    value_ = sum_;
  }
  void load(std::int32_t slot) { value_ = elements(slot); }
  void close() { add(value_, kZeros); }
  void merge(std::int32_t slot) { add(elements(slot), value_); }
  void store(std::int32_t slot) { std::copy_n(value_, count_, elements(slot)); }
  void chain(std::int64_t, std::int64_t) {}

 private:
  T* elements(std::int32_t slot) {
    const auto index = static_cast<std::size_t>(slot);
    return index < slots_.size() ? slots_[index] + at_ : scratch_[index - slots_.size()];
  }
  void add(const T* left, const T* right) {
    for (std::int64_t i = 0; i < count_; ++i) sum_[i] = left[i] + right[i];
    value_ = sum_;
  }

  std::span<T* const> slots_;
  std::int64_t at_, count_;
  const T* value_ = nullptr;
  static constexpr T kZeros[kBlock] = {};
  T sum_[kBlock];
  T scratch_[kMaxLaneScratch][kBlock];
};

}  // namespace

template <class T>
void launch_cpu(const LaneMerges<T>& args) {
  const DefaultFloats floats;
  const LaneInstruction* const first = args.program.instructions.data();
  for (std::int64_t at = 0; at < args.count; at += kBlock) {
    Block<T> block(args.buffers, at, std::min(kBlock, args.count - at));
    interpret(first, first + args.program.instructions.size(), block);
  }
}

template void launch_cpu(const LaneMerges<float>&);
template void launch_cpu(const LaneMerges<double>&);

}  // namespace accrue::kernels
