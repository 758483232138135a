// Loader: a prepared DataLoader, whose passes walk the window plan.
#pragma once

#include "accrue/data/window_plan.h"
#include "accrue/train/batch_sources.h"
#include "accrue/train/training_window.h"

#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace accrue::train {

class Accelerator;

/// One pass over a prepared loader: where it stands, and the window that is open there.
struct LoaderPass {
  // Dealt as upstream, without windows; else null, and the plan deals.
  std::unique_ptr<data::BatchSource> source;
  bool is_last_batch = false;
  std::int64_t remainder = 0;  ///< of data::DealtBatch

  data::DataLoader* loader = nullptr;
  data::WindowPlan plan;
  int rank = 0;
  std::shared_ptr<const std::vector<LaneRun>> runs;  ///< of lanes that are this rank's
  std::vector<std::int64_t> order;                   ///< of the epoch
  std::int64_t index = -1;                           ///< micro-step of the epoch
  data::MicroStep step;
  data::Batch batch;
  bool entered = false;      ///< accumulate() was called for this micro-step
  bool was_entered = false;  ///< for one of this pass

  std::shared_ptr<TrainingWindow> window;

  LoaderPass(const data::WindowPlan& window_plan, int of_rank);
  explicit LoaderPass(std::unique_ptr<data::BatchSource> batches)
      : source(std::move(batches)), plan({}) {}
  std::int64_t size() const { return plan.steps_in_epoch(); }
  bool is_last() const { return source ? is_last_batch : index + 1 == size(); }
  /// This rank's part of a window of `window_size` samples.
  WindowSpan span(std::int64_t window_size) const;
};

/// A prepared loader. `for (auto& batch : loader)` walks one epoch in micro-batches of at most the
/// loader's batch size, cut at window ends. A rank without data gets empty batches. A pass that is
/// left early (break, exception) drops its open window and starts the same epoch again next time. A
/// pass that goes on past a window whose sums nobody finished throws: nothing is lost in silence.
///
/// With a configuration batches are dealt as upstream deals them, without windows, and samples may
/// come twice in the last. Lifetime: borrows the accelerator and the loader.
class Loader {
 public:
  class Iterator;

  /// Of one of the two; without a configuration a plan deals.
  Loader(Accelerator& accelerator,
         data::DataLoader* loader,
         data::StreamLoader* stream,
         std::optional<DataLoaderConfiguration> config)
      : accelerator_(&accelerator), loader_(loader), stream_(stream), config_(config) {}

  /// Errors: ValueError of WindowPlan or of the configuration.
  Iterator begin() const;
  std::default_sentinel_t end() const { return {}; }
  /// Micro-batches of one pass, without a configuration the same number on all ranks.
  /// Errors: StateError for a stream.
  std::int64_t size() const;
  /// Errors: StateError with a configuration.
  data::WindowPlan plan() const;
  /// Errors: StateError for a stream.
  data::DataLoader& loader() const;

 private:
  friend Loader skip_first_batches(const Loader& loader, std::int64_t count);

  std::unique_ptr<LoaderPass> open() const;

  Accelerator* accelerator_;
  data::DataLoader* loader_;
  data::StreamLoader* stream_;
  std::optional<DataLoaderConfiguration> config_;
  std::int64_t first_ = 0;  ///< micro-batches that passes leave out
};

/// The loader without the first `count` micro-batches of each rank: how a run resumes within an
/// epoch. What is left out is not read, but of streams and by a rank 0 that reads for all.
/// Errors: ValueError for count < 0 and, of a window plan, for a place within a window, whose first
/// part would be lost.
Loader skip_first_batches(const Loader& loader, std::int64_t count);

/// The place of one pass, which it owns; for range-based loops.
class Loader::Iterator {
 public:
  Iterator(Accelerator& accelerator, std::unique_ptr<LoaderPass> pass);
  Iterator(Iterator&&) noexcept = default;
  Iterator& operator=(Iterator&&) = delete;
  ~Iterator();

  const data::Batch& operator*() const { return pass_->batch; }
  const data::Batch* operator->() const { return &pass_->batch; }
  /// Errors: StateError when the window that ends here was not finished.
  Iterator& operator++();
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end(); }

 private:
  bool at_end() const { return at_end_; }
  void advance();
  void advance_source();
  /// Makes `batch` the current one, on the accelerator's device.
  void place(data::Batch batch);

  Accelerator* accelerator_;
  std::unique_ptr<LoaderPass> pass_;
  bool at_end_ = false;
};

}  // namespace accrue::train
