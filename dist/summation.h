// Summation: moves partial sums to where they are added, and sums back to all ranks.
#pragma once

#include "accrue/dist/carrier.h"
#include "accrue/dist/sum_plan.h"

namespace accrue::dist {

/// The tensors of one sum_nodes() as one sequence of elements, in any of three ways of moving. Each
/// element is summed by one program, so the way changes no bits. T is float or double.
template <class T>
class Summation {
 public:
  Summation(Carrier& carrier,
            std::span<NodeSum> sums,
            std::span<const std::shared_ptr<const SumPlan>> plans);

  /// Sums what the agreement carries.
  void add_all(const Agreement& agreement) const;
  void gather();
  void all_to_all();
  void double_distances();

 private:
  /// Neighbouring elements of one tensor.
  struct Run {
    std::size_t sum = 0;
    std::int64_t begin = 0, length = 0;
  };
  using Runs = std::vector<Run>;

  Runs runs(std::int64_t begin, std::int64_t end) const;
  std::int64_t packed_size(const Runs& runs, int rank) const;
  std::span<const std::byte> pack_partials(const Runs& runs, T* scratch) const;
  std::span<std::byte> sums_or(const Runs& runs, T* scratch) const;
  void copy_sums(const Runs& runs, std::span<std::byte> packed, bool to_sums) const;
  void add(const Runs& runs, std::span<const std::span<const std::byte>> received) const;
  void exchange_slices(const std::vector<Runs>& slices, Tensor& scratch, bool fits) const;
  void show_slices(const std::vector<Runs>& slices, Tensor& scratch) const;

  Carrier& carrier_;
  std::span<const std::shared_ptr<const SumPlan>> plans_;
  std::vector<std::vector<Tensor>> partials_;  ///< dense, per sum
  std::vector<T*> sums_;
  std::vector<std::int64_t> starts_;  ///< of the sums in the sequence, then numel_
  std::int64_t numel_ = 0;
  int most_nodes_ = 1;  ///< that a rank holds of one tensor
};

}  // namespace accrue::dist
