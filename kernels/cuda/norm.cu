// Largest magnitudes and elements that are not finite on CUDA: one survey finds both.
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/layouts.cuh"

#include <algorithm>
#include <span>
#include <vector>

namespace accrue::kernels {
namespace {

using namespace cuda;

constexpr int kSurveyThreads = 256, kSurveyWarps = kSurveyThreads / kWarpSize;

/// What a warp saw; no order changes it.
struct Findings {
  double largest = 0;  ///< magnitude; NaN if there is one
  std::int64_t nonfinite = 0, first = INT64_MAX;

  ACCRUE_HD void add(const Findings& other) {
    if (other.largest > largest || other.largest != other.largest) largest = other.largest;
    nonfinite += other.nonfinite;
    if (other.first < first) first = other.first;
  }
};

template <class T>
ACCRUE_KERNEL(kSurveyThreads)
void survey_kernel(const T* x, ACCRUE_PARAMETER Layouts<1> elements, Findings* out) {
  const std::int64_t thread = std::int64_t{block_x()} * kSurveyThreads + thread_index();
  const std::int64_t step = std::int64_t{num_blocks_x()} * kSurveyThreads;
  Findings findings;
  for (std::int64_t i = thread; i < elements.count; i += step) {
    const double value = x[elements.offsets(i)[0]];
    const bool is_finite = value - value == 0;
    findings.add({value < 0 ? -value : value, !is_finite, is_finite ? INT64_MAX : i});
  }
  for (int width = kWarpSize / 2; width > 0; width /= 2) {
    findings.add({shuffle_xor(findings.largest, width),
                  shuffle_xor(findings.nonfinite, width),
                  shuffle_xor(findings.first, width)});
  }
  if (thread % kWarpSize == 0) out[thread / kWarpSize] = findings;
}

std::int64_t blocks_for(const Tensor& x) {
  constexpr std::int64_t kBlockWork = 8192, kMostBlocks = 1024;
  return std::min((x.numel() + kBlockWork - 1) / kBlockWork, kMostBlocks);
}

/// Of each tensor; waits for the stream once.
std::vector<Findings> survey(const char* name, std::span<const Tensor> tensors, Stream stream) {
  std::int64_t num_blocks = 0;
  for (const Tensor& x : tensors) num_blocks += blocks_for(x);
  std::vector<Findings> of_warps(static_cast<std::size_t>(num_blocks * kSurveyWarps));
  Workspace results(of_warps.size() * sizeof(Findings), stream);
  Findings* next = results.as<Findings>();
  for (const Tensor& x : tensors) {
    const std::int64_t blocks = blocks_for(x);
    visit_floating(x.dtype(), name, [&]<class T>(T) {
      if (blocks == 0) return;
      launch({.name = name, .grid_x = blocks, .threads = kSurveyThreads, .stream = stream},
             survey_kernel<T>,
             x.data<T>(),
             Layouts<1>(x.shape(), {x.strides()}),
             next);
    });
    next += blocks * kSurveyWarps;
  }
  results.download(of_warps.data(), of_warps.size() * sizeof(Findings));
  std::vector<Findings> of_tensors;
  auto it = of_warps.begin();
  for (const Tensor& x : tensors) {
    Findings& sum = of_tensors.emplace_back();
    for (std::int64_t i = blocks_for(x) * kSurveyWarps; i > 0; --i) sum.add(*it++);
  }
  return of_tensors;
}

}  // namespace

double launch_cuda(const MaxAbs& args, Stream stream) {
  Findings all;
  for (const Findings& findings : survey(args.kName, args.tensors, stream)) all.add(findings);
  return all.largest;
}

Nonfinite launch_cuda(const FindNonfinite& args, Stream stream) {
  const std::vector<Findings> findings = survey(args.kName, args.tensors, stream);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto& [largest, count, first] = findings[i];
    if (count > 0) return {static_cast<std::int64_t>(i), count, first};
  }
  return {};
}

}  // namespace accrue::kernels
