// The documentation's gather_for_metrics: five samples on several processes, of which the last
// batches repeat some; a metric must see each sample once.
#include "accrue/accrue.h"
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"

#include <fmt/format.h>

namespace accrue::bench {
namespace {

constexpr std::int64_t kNumSamples = 5, kBatchSize = 2;

void print_line(int rank, const char* what, const Tensor& values) {
  fmt::print("{} {} {}\n", rank, what, values.to(Device::cpu()).str());
}

int run(int argc, char** argv) {
  Options options("Gathers batches that Accelerate fills with duplicates, and drops them again.");
  Device device;
  options.device(device);
  options.parse(argc, argv);
  train::Accelerator accelerator({.device = device});
  const int rank = accelerator.process_index();
  data::DataLoader batches(data::TensorDataset({Tensor::arange(kNumSamples)}),
                           {.batch_size = kBatchSize});
  auto loader = accelerator.prepare_data_loader(batches);
  for (const auto& batch : loader) {
    print_line(rank, "batch", batch.inputs);
    print_line(rank, "gather_for_metrics", accelerator.gather_for_metrics(batch.inputs));
    print_line(rank, "gather", accelerator.gather(batch.inputs));
  }
  return kDone;
}

}  // namespace
}  // namespace accrue::bench

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::bench::run, argc, argv);
}
