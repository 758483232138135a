// ProcessState: who this rank is among the processes of a run, and what they do together.
#pragma once

#include "accrue/core/tensor.h"
#include "accrue/dist/process_group.h"

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace accrue::train {

enum class RankReduction : std::uint8_t { sum, mean, max };

/// Accelerate's PartialState. All ranks call the collective functions, in the same order.
///
/// Errors:  those of dist::ProcessGroup, where it says "collective".
/// Threads: belongs to one thread.
class ProcessState {
 public:
  /// Borrows the group. Null: the ranks that the launcher started, one without a launcher.
  explicit ProcessState(dist::ProcessGroup* group = nullptr);

  int num_processes() const { return group_->size(); }
  int process_index() const { return group_->rank(); }
  int local_process_index() const { return group_->local_rank(); }
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }
  bool is_last_process() const { return process_index() == num_processes() - 1; }
  dist::ProcessGroup& process_group() const { return *group_; }

  /// Collective: returns when all ranks are here.
  void wait_for_everyone() const;
  /// Collective: `body` runs on the main process first, then on the others, also when it throws.
  template <class Body>
  void main_process_first(const Body& body) const {
    const Turn turn(*this, is_main_process());
    body();
  }
  /// Collective: the same with the main process of each host.
  template <class Body>
  void local_main_process_first(const Body& body) const {
    const Turn turn(*this, is_local_main_process());
    body();
  }

  /// Writes `parts` and a line's end to `out` on the main process of each host.
  template <class... Parts>
  void print(std::ostream& out, const Parts&... parts) const {
    if (is_local_main_process()) (out << ... << parts) << std::endl;
  }
  /// `body` runs on one process, or one of each host; nobody waits.
  template <class Body>
  void on_main_process(const Body& body) const {
    if (is_main_process()) body();
  }
  template <class Body>
  void on_local_main_process(const Body& body) const {
    if (is_local_main_process()) body();
  }
  template <class Body>
  void on_last_process(const Body& body) const {
    if (is_last_process()) body();
  }
  /// Errors: IndexError for a process outside [0, num_processes()).
  template <class Body>
  void on_process(int index, const Body& body) const {
    check_process("on_process", index);
    if (process_index() == index) body();
  }

  /// Collective: all ranks' tensors joined along dimension 0 in rank order; a scalar counts as one
  /// element where there are several ranks. One rank: the tensor itself.
  Tensor gather(const Tensor& tensor) const;
  /// Collective: all ranks' rows in rank order, where ranks may have different numbers of rows,
  /// also none. Errors also: ShapeError for a scalar, MismatchError, the same on all ranks, where
  /// the other sizes or dtypes differ.
  Tensor gather_rows(const Tensor& tensor) const;
  /// Collective: gather(), of which the first `remainder` rows stay when it is positive: of the
  /// last batches of an epoch those that are no duplicates, data::ShardedLoader::remainder().
  Tensor gather_for_metrics(const Tensor& tensor, std::int64_t remainder) const;
  /// Collective: one string of each rank.
  std::vector<std::string> gather_object(std::string_view object) const;
  /// Collective: a new tensor, the same on all ranks. Errors also: DTypeError of the dtype.
  Tensor reduce(const Tensor& tensor, RankReduction reduction = RankReduction::sum) const;
  /// Collective: rank `from`'s elements. Errors also: IndexError.
  Tensor broadcast(const Tensor& tensor, int from = 0) const;
  std::string broadcast_object(std::string_view object, int from = 0) const;
  /// Collective: `tensor` with `dim` padded by `pad_index` to the longest of all ranks, at its end
  /// or its front. Other sizes must agree. Errors also: IndexError for the dimension.
  Tensor pad_across_processes(const Tensor& tensor,
                              int dim = 0,
                              double pad_index = 0,
                              bool pad_first = false) const;

  /// This rank's part [begin, end) of `count` elements: the first ranks have one more.
  struct Part {
    std::int64_t begin = 0, end = 0;
  };
  Part split_between_processes(std::int64_t count) const;
  /// This rank's rows of `tensor`, a view. With `apply_padding` a rank that has one row less than
  /// the first gets a copy with the last row of `tensor` at its end. Errors: ShapeError for a
  /// scalar.
  Tensor split_between_processes(const Tensor& tensor, bool apply_padding = false) const;

  /// Raises a flag that check_trigger() sees on every rank.
  void set_trigger() { trigger_ = true; }
  /// Collective: whether any rank raised its flag since the last call; lowers it.
  bool check_trigger();

 protected:
  /// gather_rows() of ranks that also pass the same `note`, words for messages.
  Tensor gather_alike(const Tensor& tensor, const std::string& note) const;

 private:
  void check_process(const char* operation, int index) const;

  /// Those who go first wait at exit, the others at entry.
  class Turn {
   public:
    Turn(const ProcessState& state, bool goes_first);
    ~Turn() noexcept(false);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const ProcessState& state_;
    bool goes_first_;
  };

  std::shared_ptr<dist::ProcessGroup> owned_;  ///< the launcher's
  dist::ProcessGroup* group_;
  bool trigger_ = false;
};

}  // namespace accrue::train
