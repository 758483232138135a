#include "accrue/dist/summation.h"

#include "accrue/kernels/lane_merges.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <bit>

namespace accrue::dist {
namespace {

using kernels::LaneInstruction;

template <class T>
std::span<std::byte> as_bytes_of(T* data, std::int64_t count) {
  return std::as_writable_bytes(std::span(data, static_cast<std::size_t>(count)));
}

/// Room for `count` elements: `scratch` if it is large enough.
template <class T>
T* room(Tensor& scratch, std::int64_t count, Device device) {
  if (!scratch.defined() || scratch.numel() < count) {
    scratch = Tensor::empty({count}, dtype_of<T>, device);
  }
  return scratch.mutable_data<T>();
}

}  // namespace

template <class T>
Summation<T>::Summation(Carrier& carrier,
                        std::span<NodeSum> sums,
                        std::span<const std::shared_ptr<const SumPlan>> plans)
    : carrier_(carrier), plans_(plans), starts_{0} {
  for (NodeSum& sum : sums) {
    std::vector<Tensor>& dense = partials_.emplace_back();
    for (const TreeNode& node : sum.nodes) dense.push_back(node.partial.contiguous());
    sums_.push_back(sum.sum.mutable_data<T>());
    numel_ += sum.sum.numel();
    starts_.push_back(numel_);
  }
  for (const auto& plan : plans_) {
    most_nodes_ =
        std::max(most_nodes_, *std::max_element(plan->counts.begin(), plan->counts.end()));
  }
}

template <class T>
typename Summation<T>::Runs Summation<T>::runs(std::int64_t begin, std::int64_t end) const {
  Runs result;
  auto next = std::upper_bound(starts_.begin(), starts_.end(), begin);
  for (; begin < end; ++next) {
    const std::int64_t stop = std::min(end, *next);
    if (stop == begin) continue;  // an empty tensor
    const auto sum = static_cast<std::size_t>(next - starts_.begin()) - 1;
    result.push_back({sum, begin - starts_[sum], stop - begin});
    begin = stop;
  }
  return result;
}

/// Elements that `rank` sends for these runs.
template <class T>
std::int64_t Summation<T>::packed_size(const Runs& runs, int rank) const {
  std::int64_t size = 0;
  for (const Run& run : runs) {
    size += run.length * plans_[run.sum]->counts[static_cast<std::size_t>(rank)];
  }
  return size;
}

/// This rank's partials: run after run, node after node. One run of one node lies ready.
template <class T>
std::span<const std::byte> Summation<T>::pack_partials(const Runs& runs, T* scratch) const {
  if (runs.size() == 1 && partials_[runs[0].sum].size() == 1) {
    const T* data = partials_[runs[0].sum][0].template data<T>() + runs[0].begin;
    return std::as_bytes(std::span(data, static_cast<std::size_t>(runs[0].length)));
  }
  T* to = scratch;
  for (const Run& run : runs) {
    for (const Tensor& partial : partials_[run.sum]) {
      const auto length = static_cast<std::size_t>(run.length);
      carrier_.copy(to, partial.data<T>() + run.begin, length * sizeof(T));
      to += run.length;
    }
  }
  return as_bytes_of(scratch, to - scratch);
}

/// The runs of the sums themselves where they are one piece, else `scratch`.
template <class T>
std::span<std::byte> Summation<T>::sums_or(const Runs& runs, T* scratch) const {
  if (runs.size() == 1) return as_bytes_of(sums_[runs[0].sum] + runs[0].begin, runs[0].length);
  std::int64_t size = 0;
  for (const Run& run : runs) size += run.length;
  return as_bytes_of(scratch, size);
}

template <class T>
void Summation<T>::copy_sums(const Runs& runs, std::span<std::byte> packed, bool to_sums) const {
  if (runs.size() == 1) return;
  std::byte* at = packed.data();
  for (const Run& run : runs) {
    const std::span<std::byte> sums = as_bytes_of(sums_[run.sum] + run.begin, run.length);
    carrier_.copy(to_sums ? sums.data() : at, to_sums ? at : sums.data(), sums.size());
    at += sums.size();
  }
}

/// Sums runs of which `received` holds the other ranks' partials.
template <class T>
void Summation<T>::add(const Runs& runs,
                       std::span<const std::span<const std::byte>> received) const {
  std::vector<const T*> at;
  for (const auto& bytes : received) at.push_back(reinterpret_cast<const T*>(bytes.data()));
  std::vector<T*> slots;
  for (const Run& run : runs) {
    const SumPlan& plan = *plans_[run.sum];
    slots.clear();
    for (const Leaf& leaf : plan.leaves) {
      const auto order = static_cast<std::size_t>(leaf.order);
      const T* const data = leaf.rank == carrier_.rank()
                                ? partials_[run.sum][order].template data<T>() + run.begin
                                : at[static_cast<std::size_t>(leaf.rank)] + leaf.order * run.length;
      slots.push_back(const_cast<T*>(data));  // programs write the last slot alone
    }
    slots.push_back(sums_[run.sum] + run.begin);
    kernels::launch(carrier_.device(), kernels::LaneMerges<T>{plan.program(), slots, run.length});
    for (std::size_t r = 0; r < at.size(); ++r) {
      if (at[r]) at[r] += plan.counts[r] * run.length;  // nothing comes from this rank itself
    }
  }
}

template <class T>
void Summation<T>::add_all(const Agreement& agreement) const {
  std::vector<std::span<const std::byte>> received;
  for (std::size_t r = 0; r < agreement.told.size(); ++r) {
    received.push_back(agreement.partials_of(r));
  }
  add(runs(0, numel_), received);
}

template <class T>
void Summation<T>::gather() {
  const Runs all = runs(0, numel_);
  const auto size = static_cast<std::size_t>(carrier_.size());
  if (size == 1) return add(all, std::vector<std::span<const std::byte>>(1));
  std::int64_t total = 0;
  for (int r = 0; r < carrier_.size(); ++r) total += packed_size(all, r);
  Tensor scratch;
  T* at = room<T>(scratch, total, carrier_.device());
  std::vector<std::span<std::byte>> received;
  std::span<const std::byte> mine;
  for (int r = 0; r < carrier_.size(); ++r) {
    const bool is_mine = r == carrier_.rank();
    if (is_mine) mine = pack_partials(all, at);
    received.push_back(as_bytes_of(at, is_mine ? 0 : packed_size(all, r)));
    at += packed_size(all, r);
  }
  carrier_.move({{&mine, 1}, received});
  add(all, std::vector<std::span<const std::byte>>(received.begin(), received.end()));
}

template <class T>
void Summation<T>::all_to_all() {
  const int size = carrier_.size();
  const auto width = static_cast<std::int64_t>(sizeof(T)) * most_nodes_;
  const std::int64_t slice = std::max<std::int64_t>(carrier_.step_bytes() / width, 16);
  Tensor outgoing, shown;
  for (std::int64_t at = 0; at < numel_; at += slice * size) {
    const std::int64_t length = std::min(slice * size, numel_ - at);
    std::vector<Runs> slices;
    for (int r = 0; r < size; ++r) {
      slices.push_back(runs(at + length * r / size, at + length * (r + 1) / size));
    }
    exchange_slices(slices, outgoing, slice * width <= carrier_.step_bytes());
    show_slices(slices, shown);
  }
}

/// Each rank gets all partials of its slice and sums them. `fits`: in one step.
template <class T>
void Summation<T>::exchange_slices(const std::vector<Runs>& slices,
                                   Tensor& scratch,
                                   bool fits) const {
  const Runs& mine = slices[static_cast<std::size_t>(carrier_.rank())];
  std::int64_t out_size = 0;
  for (const Runs& slice : slices) out_size += packed_size(slice, carrier_.rank());
  T* out = room<T>(scratch, out_size, carrier_.device());
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::size_t> sizes;
  for (int r = 0; r < carrier_.size(); ++r) {
    const Runs& theirs = slices[static_cast<std::size_t>(r)];
    const bool is_mine = r == carrier_.rank();
    sent.push_back(is_mine ? std::span<const std::byte>() : pack_partials(theirs, out));
    out += packed_size(theirs, carrier_.rank());
    sizes.push_back(is_mine ? 0 : static_cast<std::size_t>(packed_size(mine, r)) * sizeof(T));
  }
  add(mine, carrier_.look(sent, sizes, fits));
}

/// Each rank shows the sums of its slice to all.
template <class T>
void Summation<T>::show_slices(const std::vector<Runs>& slices, Tensor& scratch) const {
  std::int64_t size = 0;
  for (const Runs& slice : slices) {
    for (const Run& run : slice) size += run.length;
  }
  T* at = room<T>(scratch, size, carrier_.device());
  std::vector<std::span<std::byte>> shown;
  for (const Runs& slice : slices) {
    shown.push_back(sums_or(slice, at));
    at += shown.back().size() / sizeof(T);
  }
  const auto me = static_cast<std::size_t>(carrier_.rank());
  copy_sums(slices[me], shown[me], false);
  const std::span<const std::byte> mine = shown[me];
  carrier_.move({{&mine, 1}, shown});
  for (std::size_t r = 0; r < slices.size(); ++r) {
    if (r != me) copy_sums(slices[r], shown[r], true);
  }
}

template <class T>
void Summation<T>::double_distances() {
  static constexpr LaneInstruction kAdd[] = {
      LaneInstruction::load(1), LaneInstruction::merge(0), LaneInstruction::store(2)};
  Tensor buffer, other;
  T* const data = room<T>(buffer, numel_, carrier_.device());
  T* const theirs = room<T>(other, (numel_ + 1) / 2, carrier_.device());
  const std::span<const std::byte> packed = pack_partials(runs(0, numel_), data);
  if (packed.data() != reinterpret_cast<const std::byte*>(data)) {
    carrier_.copy(data, packed.data(), packed.size());
  }
  const auto swap = [&](int partner, std::span<const std::byte> out, std::span<std::byte> in) {
    std::vector<std::span<const std::byte>> outgoing(static_cast<std::size_t>(carrier_.size()));
    std::vector<std::span<std::byte>> incoming(outgoing.size());
    outgoing[static_cast<std::size_t>(partner)] = out;
    incoming[static_cast<std::size_t>(partner)] = in;
    carrier_.move({outgoing, incoming});
  };
  // Neighbours merge first, which is the tree; each keeps half of what both have.
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges{{0, numel_}};
  for (int bit = 1; bit < carrier_.size(); bit *= 2) {
    const auto [begin, end] = ranges.back();
    const std::int64_t middle = begin + (end - begin) / 2;
    const bool is_left = (carrier_.rank() & bit) == 0;
    const std::int64_t from = is_left ? begin : middle, to = is_left ? middle : end;
    const std::int64_t give = is_left ? middle : begin, length = end - begin - (to - from);
    swap(carrier_.rank() ^ bit, as_bytes_of(data + give, length), as_bytes_of(theirs, to - from));
    T* const slots[] = {
        is_left ? data + from : theirs, is_left ? theirs : data + from, data + from};
    kernels::launch(carrier_.device(), kernels::LaneMerges<T>{{kAdd, 3, 0}, slots, to - from});
    ranges.emplace_back(from, to);
  }
  for (int bit = carrier_.size() / 2; bit > 0; bit /= 2) {
    const auto [from, to] = ranges.back();
    ranges.pop_back();
    const auto [begin, end] = ranges.back();
    const std::int64_t take = from == begin ? to : begin;
    swap(carrier_.rank() ^ bit,
         as_bytes_of(data + from, to - from),
         as_bytes_of(data + take, end - begin - (to - from)));
  }
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const auto length = static_cast<std::size_t>(starts_[i + 1] - starts_[i]);
    carrier_.copy(sums_[i], data + starts_[i], length * sizeof(T));
  }
}

template class Summation<float>;
template class Summation<double>;

}  // namespace accrue::dist
