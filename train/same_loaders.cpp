#include "accrue/train/same_loaders.h"

#include "accrue/dist/same_lines.h"
#include "accrue/train/precision.h"

#include <string>

namespace accrue::train {
namespace {

void check(dist::ProcessGroup& group, const std::string& lines) {
  if (group.size() == 1) return;
  dist::check_same_lines(group,
                         lines,
                         "prepare",
                         "all ranks must have the same loader",
                         "build it alike everywhere, and call manual_seed with the same seed on "
                         "every rank before");
}

const char* word(bool value) { return value ? "true" : "false"; }

std::string batches_of(const data::DataLoaderOptions& options) {
  return text("batch_size ", options.batch_size, "\ndrop_last ", word(options.drop_last), '\n');
}

/// Which samples come, and in which order.
std::string samples_of(const data::DataLoader& loader) {
  const std::string number = text(loader.dataset().size(), " samples\n");
  if (!loader.options().shuffle) return number + "no shuffling\n";
  return number +
         text("shuffling with seed ", *loader.options().seed, " from epoch ", loader.epoch(), '\n');
}

std::string dealing_of(const DataLoaderConfiguration& config, bool dispatches) {
  return text("split_batches ", word(config.split_batches), '\n') +
         text("dispatch_batches ", word(dispatches), '\n') +
         text("even_batches ", word(config.even_batches), '\n');
}

}  // namespace

void check_same_loader(dist::ProcessGroup& group,
                       const data::DataLoader& loader,
                       const AcceleratorOptions& options,
                       std::int64_t steps) {
  const char* const precision = name_of(mixed_precision_or_environment(options.mixed_precision));
  const bool is_contiguous = options.dealing == data::Dealing::contiguous;
  check(group,
        batches_of(loader.options()) + samples_of(loader) +
            text("global_batch_size ", options.global_batch_size, '\n') +
            text("gradient_accumulation_steps ", steps, "\nlanes ", options.lanes, '\n') +
            text("mixed_precision ", precision, '\n') +
            (is_contiguous ? "contiguous dealing\n" : "round robin dealing\n"));
}

void check_same_loader(dist::ProcessGroup& group,
                       const data::DataLoader& loader,
                       const DataLoaderConfiguration& config) {
  const bool dispatches = config.dispatch_batches.value_or(false);
  check(group,
        batches_of(loader.options()) + dealing_of(config, dispatches) +
            (dispatches ? std::string() : samples_of(loader)));
}

void check_same_loader(dist::ProcessGroup& group,
                       const data::StreamLoader& loader,
                       const DataLoaderConfiguration& config) {
  check(group,
        batches_of(loader.options()) + dealing_of(config, config.dispatch_batches.value_or(true)));
}

}  // namespace accrue::train
