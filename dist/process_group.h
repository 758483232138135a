// ProcessGroup: the ranks of a job and the collectives that they call together.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/dist/call.h"
#include "accrue/dist/movement.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accrue::dist {

class DeviceLink;

struct GroupOptions {
  double timeout = 1800;      ///< seconds that a collective waits for an absent rank
  bool shared_memory = true;  ///< between processes of one host; else they send messages
};

/// W ranks, each with its own handle. All ranks make the same collective calls in the same order;
/// each call returns on a rank when that rank's part is done.
///
/// Before data moves all ranks compare what they call (dist/call.h). A group that threw one of the
/// errors below is broken: every later call on it repeats that error, on all ranks.
///
/// Shapes:  tensors have the same shape and dtype on all ranks, any strides. Those of devices go by
///          way of the host, but for sum_nodes() and ring_all_reduce(), which use link().
/// Order:   sums fold by the aligned binary tree over rank numbers, left + right; max and min keep
///          NaN. Sums whose bits must not depend on W are sum_nodes() (dist/sum_nodes.h).
/// Errors:  TimeoutError naming the absent ranks; MismatchError naming what each rank called;
///          DistributedError naming a rank that left; IndexError for a root outside [0, W);
///          DTypeError for a reduction of bfloat16 or float16, or a sum of bool.
/// Threads: a handle is used by one thread at a time; duplicate() makes one for another thread.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The rank among those of the same host.
  virtual int local_rank() const { return rank_; }
  /// "self", "threads" or "mpi".
  virtual const char* backend() const = 0;
  double timeout() const { return timeout_; }
  /// Seconds. Errors: ValueError unless positive.
  void set_timeout(double seconds);

  /// Replaces `tensor` on every rank by the reduction over all ranks.
  void all_reduce(Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// The same on rank `root` alone; elsewhere `tensor` stays as it is.
  void reduce(Tensor& tensor, int root = 0, ReduceOp op = ReduceOp::sum);
  /// Copies rank `root`'s elements into `tensor` of every rank.
  void broadcast(Tensor& tensor, int root = 0);
  /// All ranks' tensors, stacked: [W, ...].
  Tensor all_gather(const Tensor& tensor);
  /// The reduction of slice [rank] of all ranks' [W, ...]. Errors also: ShapeError.
  Tensor reduce_scatter(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// Slice [r] goes to rank r; result[r] came from rank r: [W, ...]. Errors also: ShapeError.
  Tensor all_to_all(const Tensor& tensor);
  /// All ranks' strings, which may differ in length: result[r] is rank r's.
  std::vector<std::string> all_gather_bytes(std::string_view bytes);
  /// pieces[r] goes to rank r; result[r] came from rank r. Errors also: ValueError unless W pieces.
  std::vector<std::string> all_to_all_bytes(const std::vector<std::string>& pieces);
  /// Returns when all ranks have called it.
  void barrier();
  /// A group of the same ranks whose calls are independent of this one's. A collective call.
  virtual std::shared_ptr<ProcessGroup> duplicate() = 0;
  /// Says that this rank comes to no further call; the first reason stays. A call of this handle
  /// that waits in another thread throws DistributedError soon. So do the others, when they wait
  /// for this rank. What devices move then ends undone unless it ends within a second, or within
  /// the timeout where the rank leaves `in_peace`. Threads: any.
  void leave(const std::string& reason, bool in_peace = false) noexcept;
  bool has_left() const { return has_left_; }

  // ---- what collectives are made of ----

  /// Begins a collective: all ranks compare `call` (its sequence is filled in), then bytes move.
  void begin(Call call, const Movement& movement);
  /// Begins one by telling all ranks `bytes`; returns what each told.
  std::vector<std::string> begin_all_gather_bytes(Call call, std::string_view bytes);
  /// A further step of the collective that begin() opened.
  virtual void move(const Movement& movement) = 0;
  /// A further step, of which what comes from rank r, sizes[r] bytes, is only read: the result says
  /// where it lies until the next step. No piece may exceed step_bytes() on any rank.
  virtual std::vector<std::span<const std::byte>> look(
      std::span<const std::span<const std::byte>> outgoing, std::span<const std::size_t> sizes);
  /// Bytes per rank that one step moves best.
  virtual std::int64_t step_bytes() const = 0;
  /// How memory of `device`, this rank's, reaches that of the others; null where it goes by way of
  /// the host: in a group of one, and where ranks are threads that share a device. Connects at the
  /// first call, which is collective. Errors: those of connect_devices().
  DeviceLink* link(Device device);
  /// Whether all steps cost the same, however many ranks take part.
  virtual bool shares_memory() const { return true; }

 protected:
  ProcessGroup(int rank, int size, double timeout);
  /// A collective call that moves nothing.
  void begin_empty(CallKind kind);
  /// Compares calls, then does what move() does. Errors leave the group broken.
  virtual void compare_and_move(const Call& call, const Movement& movement) = 0;
  /// What leave() does to the group itself.
  virtual void leave_calls(const std::string&) noexcept {}
  virtual bool may_share_devices() const { return false; }

 private:
  int rank_, size_;
  double timeout_ = 0;
  std::uint32_t sequence_ = 0;
  std::vector<std::byte> looked_at_;  ///< where look() puts what arrives
  std::mutex mutex_;                  ///< of link_
  std::atomic<bool> has_left_ = false;
  std::shared_ptr<DeviceLink> link_;
  std::optional<Device> device_;  ///< that link() connected, or did not
};

/// A group of one rank: collectives copy.
std::shared_ptr<ProcessGroup> self_group(const GroupOptions& options = {});

}  // namespace accrue::dist
