// Dropout masks on CUDA: a team per innermost row, four numbers of the generator at a time.
#include "accrue/core/philox/counter_words.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/only_float32.h"
#include "accrue/kernels/cuda/quad.cuh"
#include "accrue/kernels/cuda/row_team.cuh"
#include "accrue/kernels/dropout.h"

namespace accrue::kernels {
namespace {

using namespace cuda;

/// A mask as lines of `width` elements. A line's coordinates in its sample are its number there,
/// written with `num_coordinates` digits: digit d counts `below[d]` lines and stays under size[d].
struct DropoutLines {
  std::uint64_t seed, window, first_position, stream;
  std::int64_t size[kMaxRank] = {}, below[kMaxRank] = {};
  int num_coordinates = 0;
  std::int64_t lines_per_sample = 1, width = 1, count = 0;
  float limit = 0, scale = 0;
  float* mask = nullptr;

  template <class Team>
  ACCRUE_DEVICE void operator()(const Team& team, std::int64_t line) const {
    const auto sample = static_cast<std::uint64_t>(line / lines_per_sample);
    CounterWords state = counter_state(seed, window, first_position + sample, stream);
    for (int d = 0; d < num_coordinates; ++d) {
      const std::int64_t coordinate = line / below[d] % size[d];
      state = counter_state_at(state, static_cast<std::uint64_t>(coordinate));
    }
    const std::int64_t begin = line * width;
    const std::int64_t end = begin + width < count ? begin + width : count;
    for (std::int64_t j = kQuad * team.index(); begin + j < end; j += kQuad * Team::kThreads) {
      const CounterWords words = counter_block(state, static_cast<std::uint64_t>(j / kQuad));
      Float4 quad;
      ACCRUE_UNROLL
      for (int c = 0; c < kQuad; ++c) quad.v[c] = counter_unit(words[c]) < limit ? scale : 0.0f;
      write_quad(mask, begin + j, end, quad);
    }
  }
};

}  // namespace

void launch_cuda(const DropoutMask& args, Stream stream) {
  check_float32(args.kName, args.mask);
  Tensor mask = args.mask;
  const Shape& shape = mask.shape();
  DropoutLines lines{args.seed, args.window, args.first_position, args.stream};
  lines.limit = dropout_limit(args.p);
  lines.scale = dropout_scale<float>(args.p);
  lines.mask = mask.mutable_data<float>();
  lines.count = mask.numel();
  if (lines.count == 0) return;
  // A mask of rank 1 has no coordinates but the row in the sample, which is the innermost.
  lines.num_coordinates = shape.rank() - 1;
  lines.width = shape.rank() == 1 ? args.rows : shape.back();
  for (int d = lines.num_coordinates - 1; d >= 0; --d) {
    lines.below[d] = lines.lines_per_sample;
    lines.size[d] = d == 0 ? args.rows : shape[d];
    lines.lines_per_sample *= lines.size[d];
  }
  const std::int64_t num_lines = (lines.count + lines.width - 1) / lines.width;
  launch_rows("dropout", num_lines, lines.width, lines, stream);
}

}  // namespace accrue::kernels
