// TrainingWindow: what a loop adds up between two steps, and how that ends or fails.
#pragma once

#include "accrue/autograd/gradient_sums.h"
#include "accrue/autograd/loss.h"
#include "accrue/autograd/window_sum.h"
#include "accrue/train/replicas.h"

namespace accrue::train {

struct WindowTotals {
  double weight = 0;             ///< what gradients were divided by; 0: there are none
  double loss = 0;               ///< the sum of row losses
  DType dtype = DType::float32;  ///< of row losses
};

/// The windows of one loop, one after the other. How they add up is for LaneWindow and PlainWindow.
///
/// Errors:  a window in which a backward pass, or one of another rank, threw has incomplete sums:
///          from then on StateError until recover(). The other ranks hear of it where the window
///          ends, and throw DistributedError.
class TrainingWindow {
 public:
  explicit TrainingWindow(Replicas& replicas) : replicas_(replicas) {}
  virtual ~TrainingWindow() = default;
  TrainingWindow(const TrainingWindow&) = delete;
  TrainingWindow& operator=(const TrainingWindow&) = delete;

  /// A plan says where a window begins; what is left of another is dropped.
  virtual void begin(const WindowSpan&, std::int64_t) { is_poisoned_ = false; }
  /// Where micro-batches of a plan belong; null where none is needed.
  virtual Window* lanes() { return nullptr; }
  /// Whether there are sums that nobody made gradients of.
  virtual bool has_sums() const = 0;

  /// A micro-batch begins; `ends`: the last of its window.
  void enter(bool ends);
  bool ends() const { return ends_; }
  /// The micro-batch's backward pass.
  void backward(const Loss& loss);
  /// A pass outside the sums, whose gradients come at once; where `averages`, collectively.
  template <class Pass>
  void run(bool averages, const Pass& pass) {
    if (ends_) was_skipped = averages;  // where a rank fails, none steps
    try {
      replicas_.run(averages, [&] {
        check_intact();
        pass();
      });
    } catch (...) {
      is_poisoned_ = true;
      is_finished_ = ends_;  // nobody waits to hear of it
      throw;
    }
    mark_pass();
    if (!averages) return;
    was_skipped = false;
    replicas_.broadcast_buffers();
  }
  /// Whether the last pass did not end the window.
  bool is_partial() const { return is_partial_; }
  /// Whether the last pass was dropped by recover().
  bool is_recovered() const { return is_recovered_; }
  /// Makes gradients of sums, collectively with several ranks. None where that was done, or where
  /// there are no sums and no plan that ends windows all the same.
  std::optional<WindowTotals> finish();
  void check_intact() const;
  /// Drops what a pass that threw left. With several ranks the window is lost, else it goes on.
  void recover();
  /// The loop is over, or left.
  void drop();

  std::optional<double> scale;  ///< fp16: of its losses, until its gradients are unscaled
  bool was_skipped = false;     ///< the last one, so that no optimizer steps
  std::int64_t counter = 0;     ///< of micro-batches, where no plan says which is the last

 protected:
  Replicas& replicas() const { return replicas_; }
  /// Whether ranks sum gradients now.
  bool meets() const { return ends_ && replicas_.are_several(); }
  void poison() { is_poisoned_ = true; }

 private:
  /// Collective calls that may throw on all ranks before any has a part in the window's end.
  virtual void connect() {}
  virtual void add(const Loss& loss) = 0;
  virtual std::optional<WindowTotals> close() = 0;
  virtual void clear() = 0;
  /// Collective, instead of close(): this rank has no gradients.
  virtual void tell(const std::string& failure) = 0;
  void fail(const std::string& reason);
  void mark_pass() {
    is_partial_ = !ends_;
    is_recovered_ = false;
  }

  Replicas& replicas_;
  bool ends_ = true;
  bool is_finished_ = true;
  bool is_partial_ = false;
  bool is_recovered_ = false;
  bool is_poisoned_ = false;
  bool lacks_part_ = false;  ///< a pass threw and was dropped, which other ranks do not know
};

/// Rows of each sample in the losses of a micro-batch. Errors: StateError unless they are
/// sample-major, with rows for each of its samples.
std::int64_t rows_per_sample(const Tensor& rows, const MicroBatch& batch, const char* operation);

/// Sums of rows in lanes, whose bits do not depend on the split. Needs a plan and an open
/// micro-batch.
///
/// Order:   contract 5 to 9, 14, 18.
/// Errors:  also StateError that names a parameter which was written since its first use in the
///          window: the rest of it would see other values.
class LaneWindow final : public TrainingWindow {
 public:
  using TrainingWindow::TrainingWindow;

  void begin(const WindowSpan& span, std::int64_t number) override;
  Window* lanes() override { return &window_; }
  bool has_sums() const override { return window_.is_open() && weight_.value() != 0; }

 private:
  void add(const Loss& loss) override;
  void connect() override;
  std::optional<WindowTotals> close() override;
  void clear() override { begin(window_.span(), window_.number()); }
  void tell(const std::string& failure) override;
  void check_not_written() const;
  const Tensor& start_of(const Tensor& rows);

  Window window_;
  LossWeight weight_;
  WindowSum loss_;
  Tensor start_;  ///< the gradient of each row's loss, kept from pass to pass
  double start_value_ = 0;
  std::uint64_t start_version_ = 0;
  std::vector<std::uint64_t> versions_;  ///< of window_.leaves(), where each was used first
};

/// Sums of whole passes in call order, of any operations. Several ranks sum what each has and
/// divide by the weight of all; parameters of no prepared model get the gradient of this rank's
/// mean loss. A loss becomes a gradient where its window ends; passes of a Variable add to
/// gradients at once and have no part in the sums.
class PlainWindow final : public TrainingWindow {
 public:
  using TrainingWindow::TrainingWindow;

  bool has_sums() const override { return took_loss_; }

 private:
  void add(const Loss& loss) override;
  std::optional<WindowTotals> close() override;
  void clear() override;
  void tell(const std::string& failure) override { replicas().mean().fail(failure); }

  GradientSums sums_;
  LossWeight weight_;
  double loss_ = 0;
  DType dtype_ = DType::float32;
  bool took_loss_ = false;
};

}  // namespace accrue::train
