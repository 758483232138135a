// Bucketer: the gradients of a window, summed over all ranks bucket by bucket while backward runs.
#pragma once

#include "accrue/dist/bucket_layout.h"
#include "accrue/dist/sum_nodes.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace accrue::dist {

struct BucketerOptions {
  int lanes = 8;  ///< leaves of the tree by which gradients are summed
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;  ///< small: it travels first
  std::int64_t bucket_cap_bytes = std::int64_t{25} << 20;
  bool overlap = true;  ///< collectives run beside the caller; false: in finish()
};

/// Sums gradients over ranks. Each is a view of a bucket, in the same place in every window.
///
/// A window: begin(), ready() for each parameter whose partial sums are complete, finish().
/// Collectives run in the order of the buckets on every rank, whatever the order of ready(). They
/// use a duplicate of the group, with the group's timeout when the window begins, on a thread of
/// its own. Nothing is published before all of them succeeded on this rank; those of devices are
/// queued then, and what reads them throws where they are given up later.
///
/// Order:   lanes by the aligned tree, then uses in forward order, then one division (contract 6,
///          7, 18). Neither caps nor ranks change bits.
/// Errors:  StateError for a call in a wrong state; IndexError for a parameter that is not there;
///          what begin() and finish() say.
/// Threads: belongs to one thread. Lifetime: the group outlives it.
class Bucketer {
 public:
  /// The partial sums of each use of a parameter, in forward order.
  using Uses = std::vector<std::vector<TreeNode>>;
  /// What sums are divided by, from what the ranks passed to begin(); 0 drops the window. A pure
  /// function: all ranks throw what it throws.
  using Divisor = double (*)(std::span<const std::string> weights);

  /// Collective. `parameters` stand in definition order.
  ///
  /// Errors:  MismatchError naming the first parameter or option that differs between ranks;
  ///          ValueError on all ranks for an option outside its domain, DTypeError for a dtype that
  ///          has no gradients; those of ProcessGroup.
  Bucketer(ProcessGroup& group,
           std::vector<BucketParameter> parameters,
           Divisor divisor,
           const BucketerOptions& options = {});
  /// In a window, or when it threw, it leaves the other ranks, without waiting: their collectives
  /// throw. Else it waits until devices have summed the last window, at most the timeout.
  ~Bucketer();
  Bucketer(const Bucketer&) = delete;
  Bucketer& operator=(const Bucketer&) = delete;

  /// Starts the window's collectives; gradients of the last window end. `step` is for messages and
  /// must be the same on all ranks. Errors: StateError while a window is open; what broke the
  /// group.
  void begin(std::int64_t step, std::string weight);
  /// Hands over the sums of one parameter. Ranks may differ in uses; no uses is right too.
  /// Errors: StateError naming a parameter that is ready already; ShapeError, DTypeError for a
  ///         partial that does not fit.
  void ready(std::size_t parameter, Uses uses);
  /// This rank has no gradients for the window: all ranks' finish() throws, naming it and `reason`.
  void fail(std::string reason);
  /// Ends the window of `step`, or the open one, with fail(). Throws nothing: the caller does.
  void give_up(std::int64_t step, std::string reason) noexcept;
  /// Waits for all collectives and returns the divisor. Parameters that are not ready have no uses
  /// on this rank. `more` are further sums, neither divided nor kept; where this rank has no nodes,
  /// a sum takes the dtype of the others'. `confirms`: this rank may yet fail, and tells by
  /// confirm().
  ///
  /// Errors:  after these the next window may begin: DistributedError for a rank that failed, what
  ///          the divisor throws, MismatchError for steps that differ, StateError where ranks
  ///          passed over other uses. After others no window may begin: those of ProcessGroup, with
  ///          step and bucket in the text, and of sum_nodes().
  double finish(std::span<NodeSum> more = {}, bool confirms = false);
  /// After finish(), on all ranks: `failure` says why this one cannot use its gradients. One more
  /// collective where any rank passed `confirms`, else nothing. Errors: those of finish().
  void confirm(std::optional<std::string> failure = std::nullopt);
  /// confirm() of what `body` throws, which passes through.
  void confirm_after(const std::function<void()>& body);

  bool is_open() const { return is_open_; }
  bool is_ready(std::size_t parameter) const { return is_ready_.at(parameter) != 0; }
  /// The gradient that the last window gave; undefined where no rank used the parameter, or none.
  /// Errors also: StateError while a window is open.
  Tensor gradient(std::size_t parameter) const;
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  void start(std::int64_t step, std::string weight, std::optional<std::string> failure);
  void check_open(const char* call) const;
  void check_parameter(std::size_t parameter) const;
  void check_link();
  void allocate();
  void serve();
  void attempt(void (Bucketer::*part)()) noexcept;
  void throw_error();
  void reduce_window();
  void mark_end();
  void tell_end() { tell(""); }
  void reduce_bucket(const Bucket& bucket);
  bool await(std::size_t bucket);
  std::vector<std::string> tell(std::string_view content);
  void mark_buckets();
  void agree_on_divisor();
  void agree_on_end();
  std::vector<std::uint32_t> agree_on_uses(const Bucket& bucket);

  const ProcessGroup& parent_;           ///< has the timeout
  std::shared_ptr<ProcessGroup> group_;  ///< its duplicate
  DeviceLink* link_ = nullptr;           ///< of the group, where gradients lie on a device
  std::vector<BucketParameter> parameters_;
  Divisor divisor_of_;
  BucketerOptions options_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> views_;           ///< of the buffers, one per parameter
  std::vector<std::size_t> bucket_of_;  ///< of each parameter

  // Of the window: under the mutex while the communication thread runs.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t step_ = 0;
  std::string weight_;
  std::vector<Uses> uses_;
  std::vector<char> is_ready_;
  std::vector<std::size_t> num_missing_;      ///< parameters of each bucket that are not ready
  std::vector<std::shared_ptr<void>> marks_;  ///< of the link, where each bucket was complete
  std::optional<std::string> failure_;
  bool is_open_ = false, is_closed_ = false, is_done_ = true, is_stopping_ = false;
  bool confirms_ = false;  ///< this rank; after finish() any
  std::span<NodeSum> more_;

  // Written by the communication thread, read when it is done.
  std::size_t bucket_ = 0;  ///< under way
  double divisor_ = 0;
  std::shared_ptr<void> done_;  ///< mark behind the thread's work for the window
  std::vector<char> is_used_;   ///< by any rank
  std::exception_ptr error_;    ///< of the last window
  std::exception_ptr broken_;   ///< of all further windows
  std::thread thread_;
};

}  // namespace accrue::dist
