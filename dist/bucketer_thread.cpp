// The communication thread of Bucketer: the collectives of a window, bucket after bucket.
#include "accrue/dist/bucketer.h"
#include "accrue/dist/caught_text.h"
#include "accrue/dist/device_link.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/launch.h"

#include <algorithm>
#include <cstring>

namespace accrue::dist {
namespace {

constexpr char kFine = '.', kFailed = '!';       // the first byte of what a rank tells
constexpr char kConfirms = '?', kNoNodes = '-';  // at a window's end

/// What all ranks throw alike after the same collective, so that the group stays of use.
struct Refusal {
  std::exception_ptr reason;
};

template <class Type, class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Refusal{std::make_exception_ptr(Type(text(parts...)))};
}

/// The DistributedError that is handled now, with `place` at the end of its text.
std::exception_ptr with_place(const std::string& place) {
  try {
    throw;
  } catch (const TimeoutError& error) {
    return std::make_exception_ptr(TimeoutError(error.what() + place));
  } catch (const MismatchError& error) {
    return std::make_exception_ptr(MismatchError(error.what() + place));
  } catch (const DistributedError& error) {
    return std::make_exception_ptr(DistributedError(error.what() + place));
  }
}

template <class T>
std::string_view bytes_of(const T* data, std::size_t count) {
  return {reinterpret_cast<const char*>(data), count * sizeof(T)};
}

/// Tells apart which uses before the last have no nodes; 0 for a rank that has none at all.
std::uint32_t hash_of_gaps(const Bucketer::Uses& uses) {
  std::uint32_t hash = 2166136261U, result = 0;  // FNV-1a
  for (std::size_t use = 0; use < uses.size(); ++use) {
    if (uses[use].empty()) {
      hash = (hash ^ static_cast<std::uint32_t>(use + 1)) * 16777619U;
    } else {
      result = hash;
    }
  }
  return result;
}

[[noreturn]] void refuse_gaps(const std::string& name, std::uint32_t one, std::uint32_t other) {
  refuse<StateError>("[bucketer] a parameter must have the same uses on all ranks, got ",
                     name,
                     " whose recorded forward passes without gradient differ between ranks ",
                     one,
                     " and ",
                     other,
                     "; run extra forward passes under NoGrad");
}

}  // namespace

void Bucketer::serve() {
  const std::shared_ptr<void> stream = link_ ? link_->use_own_stream() : nullptr;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || !is_done_; });
    if (is_stopping_) return;
    lock.unlock();
    attempt(&Bucketer::reduce_window);
    if (link_) attempt(&Bucketer::mark_end);
    lock.lock();
    is_done_ = true;
    changed_.notify_all();
  }
}

/// Runs a part of the window and keeps what it throws.
void Bucketer::attempt(void (Bucketer::*part)()) noexcept {
  try {
    (this->*part)();
  } catch (const Refusal& refusal) {
    error_ = refusal.reason;
  } catch (const DistributedError&) {  // all ranks learn of it
    error_ = broken_ = with_place(text(" (step ", step_, ", bucket ", bucket_, ")"));
    if (link_) link_->abort("its group is broken");  // others may never come to what it queued
  } catch (...) {
    error_ = broken_ = std::current_exception();
    group_->leave("it threw " + caught_text());
  }
}

void Bucketer::reduce_window() {
  bucket_ = 0;
  agree_on_divisor();
  for (std::size_t b = 0; divisor_ != 0 && b < buckets_.size(); ++b) {
    bucket_ = b;
    if (!await(b)) return;
    reduce_bucket(buckets_[b]);
  }
  if (!await(buckets_.size())) return;
  agree_on_end();
  if (divisor_ != 0 && !more_.empty()) sum_nodes(*group_, options_.lanes, more_);
}

/// Also of a window that failed: its sums may still be under way in the buckets.
void Bucketer::mark_end() { done_ = link_->mark(); }

/// Waits until this rank has all of bucket `bucket`, or for the number of buckets until finish().
/// False when the bucketer ends.
bool Bucketer::await(std::size_t bucket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return is_stopping_ || failure_ || is_closed_ ||
           (bucket < buckets_.size() && num_missing_[bucket] == 0);
  });
  return !is_stopping_;
}

/// Tells all ranks `content`, or that this one failed; returns what each told.
std::vector<std::string> Bucketer::tell(std::string_view content) {
  std::string mine(1, kFine);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) mine = kFailed + *failure_;
  }
  if (mine.front() == kFine) mine += content;
  std::vector<std::string> told = group_->all_gather_bytes(mine);
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const bool is_failed = told[rank].front() == kFailed;
    told[rank].erase(0, 1);
    if (!is_failed) continue;
    refuse<DistributedError>(
        "[bucketer] all ranks must complete their gradients, got a failure on "
        "rank ",
        rank,
        ": ",
        told[rank],
        "; drop the window on all ranks (step ",
        step_,
        ", bucket ",
        bucket_,
        ")");
  }
  return told;
}

/// Ranks tell each other their steps and weights.
void Bucketer::agree_on_divisor() {
  std::vector<std::string> told = tell(std::string(bytes_of(&step_, 1)) + weight_);
  std::vector<std::int64_t> steps(told.size());
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    std::memcpy(&steps[rank], told[rank].data(), sizeof(std::int64_t));
    told[rank].erase(0, sizeof(std::int64_t));
    if (steps[rank] == steps[0]) continue;
    refuse<MismatchError>("[bucketer] all ranks must reduce the same step, got ",
                          steps[0],
                          " on rank 0 and ",
                          steps[rank],
                          " on rank ",
                          rank,
                          "; make all ranks take the same steps");
  }
  try {
    divisor_ = divisor_of_(told);
  } catch (...) {
    throw Refusal{std::current_exception()};
  }
}

/// Ranks tell each other who confirms and the dtypes of further sums, which those without nodes
/// take over.
void Bucketer::agree_on_end() {
  std::string mine(1, confirms_ ? kConfirms : kFine);
  for (const NodeSum& more : more_) {
    mine += more.nodes.empty() ? kNoNodes : static_cast<char>(more.sum.dtype());
  }
  for (const std::string& told : tell(mine)) {
    confirms_ |= told.front() == kConfirms;
    for (std::size_t i = 0; i < std::min(more_.size(), told.size() - 1); ++i) {
      if (told[i + 1] == kNoNodes || !more_[i].nodes.empty()) continue;
      const auto dtype = static_cast<DType>(told[i + 1]);
      Tensor& sum = more_[i].sum;
      if (sum.dtype() != dtype) sum = Tensor::empty(sum.shape(), dtype);
    }
  }
}

/// The most uses that any rank has of each parameter of the bucket. Uses are numbered in forward
/// order, so a use that only some ranks passed over would shift their later ones.
std::vector<std::uint32_t> Bucketer::agree_on_uses(const Bucket& bucket) {
  struct Report {
    std::uint32_t num_uses = 0, gaps = 0;
  };
  const std::size_t count = bucket.parameters.size();
  std::vector<Report> mine, theirs(count);
  for (const std::size_t p : bucket.parameters) {
    mine.push_back({static_cast<std::uint32_t>(uses_[p].size()), hash_of_gaps(uses_[p])});
  }
  const std::vector<std::string> told = tell(bytes_of(mine.data(), count));
  std::vector<std::uint32_t> most(count), gaps(count), first(count);
  for (std::uint32_t rank = 0; rank < told.size(); ++rank) {
    std::memcpy(theirs.data(), told[rank].data(), told[rank].size());
    for (std::size_t i = 0; i < count; ++i) {
      most[i] = std::max(most[i], theirs[i].num_uses);
      if (theirs[i].gaps == 0 || theirs[i].gaps == gaps[i]) continue;
      if (gaps[i] != 0) refuse_gaps(parameters_[bucket.parameters[i]].name, first[i], rank);
      gaps[i] = theirs[i].gaps;
      first[i] = rank;
    }
  }
  return most;
}

void Bucketer::reduce_bucket(const Bucket& bucket) {
  const std::size_t count = bucket.parameters.size();
  const std::vector<std::uint32_t> most = agree_on_uses(bucket);
  if (link_) link_->wait_for(marks_[bucket_]);
  // The first use is summed in place, further ones beside it.
  std::vector<NodeSum> sums;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t p = bucket.parameters[i];
    for (std::uint32_t use = 0; use < most[i]; ++use) {
      sums.push_back({use < uses_[p].size() ? std::move(uses_[p][use]) : std::vector<TreeNode>(),
                      use == 0
                          ? views_[p]
                          : Tensor::empty(views_[p].shape(), bucket.dtype, views_[p].device())});
    }
  }
  if (!sums.empty()) sum_nodes(*group_, options_.lanes, sums);
  auto next = sums.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t p = bucket.parameters[i];
    is_used_[p] = most[i] > 0;
    for (std::uint32_t use = 0; use < most[i]; ++use, ++next) {
      if (use == 0) continue;
      kernels::launch(
          views_[p].device(),
          kernels::BinaryForward{kernels::BinaryOp::add, views_[p], next->sum, views_[p]});
    }
    if (is_used_[p]) {
      kernels::launch(
          views_[p].device(),
          kernels::ScalarForward{kernels::BinaryOp::div, views_[p], divisor_, views_[p]});
    }
  }
}

}  // namespace accrue::dist
