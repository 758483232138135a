// Convolutions on CUDA: patches of some rows at a time in a workspace, and products on them.
//
// Matrices of a workspace hold a column for each row of the linear layer: (sample, output pixel).
// The groups of a convolution, and the samples of a forward pass, are a batch of products.
#include "accrue/kernels/conv2d.h"
#include "accrue/kernels/cuda/batch.h"
#include "accrue/kernels/cuda/device_program.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/kernels/cuda/patches.cuh"
#include "accrue/kernels/program_segments.h"

#include <array>
#include <vector>

namespace accrue::kernels {
namespace {

using namespace cuda;

/// y = bias, to which the product adds.
struct SpreadBias {
  const float* bias;
  std::int64_t channels, plane;
  float* y;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    std::int64_t pixel, channel;
    divide(divide(i, plane, pixel), channels, channel);
    y[i] = bias[channel];
  }
};

/// dx of some channels of each group, for some samples: taps ascending that reach an element.
struct AddPatches {
  ConvShape shape;
  std::int64_t first_channel, channels, first_sample, rows;
  const float* matrix;  ///< [(group, channel, tap), (sample, pixel)]
  float* dx;

  ACCRUE_DEVICE void operator()(std::int64_t i) const {
    const Sliding& sliding = shape.sliding;
    const Pixel element(i, sliding.h.in, sliding.w.in);
    std::int64_t channel, group;
    const std::int64_t in_matrix = divide(element.plane, channels, channel);
    const std::int64_t sample = divide(in_matrix, shape.groups, group);
    const std::int64_t patch = (group * channels + channel) * sliding.taps();
    const float* const from = matrix + patch * rows + sample * sliding.outputs();
    float sum = 0.0f;
    for_outputs<true>(
        sliding, element, [&](std::int64_t line, std::int64_t column, std::int64_t tap) {
          sum += from[tap * rows + line * sliding.w.out + column];
        });
    const std::int64_t to = group * shape.group_in() + first_channel + channel;
    dx[(((first_sample + sample) * shape.in_channels + to) * sliding.h.in + element.line) *
           sliding.w.in +
       element.column] = sum;
  }
};

/// live[row] = whether one of the channels is not zero.
struct FindLive {
  const float* dy;  ///< [channels, rows]
  std::int64_t channels, rows;
  std::uint8_t* live;

  ACCRUE_DEVICE void operator()(std::int64_t row) const {
    bool is_live = false;
    for (std::int64_t c = 0; c < channels; ++c) is_live = is_live || dy[c * rows + row] != 0.0f;
    live[row] = is_live;
  }
};

/// place(sample, group) for each product of a batch.
template <class Place>
BatchOffsets offsets_over(std::int64_t samples, std::int64_t groups, const Place& place) {
  BatchOffsets offsets;
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t g = 0; g < groups; ++g) offsets.push_back(place(s, g));
  }
  return offsets;
}

/// A parameter's program, cut at the blocks, and all it needs to run on [O, width] elements.
template <class Args>
class ParameterRun {
 public:
  static constexpr bool kIsWeight = requires(const Args& args) { args.x; };

  ParameterRun(const Args& args, Stream stream)
      : args_(args),
        width_(kIsWeight ? args.shape.depth() : 1),
        groups_(kIsWeight ? args.shape.groups : 1),
        stream_(stream),
        blocks_(args.shape),
        segments_(args.program, blocks_.period(), blocks_.rows()),
        carried_(bytes_of(segments_.num_carried() * size()), stream),
        dy_(bytes_of(args.shape.out_channels * blocks_.rows()), stream),
        patches_(bytes_of(kIsWeight ? groups_ * width_ * blocks_.rows() : 0), stream),
        live_(static_cast<std::size_t>(blocks_.rows()), stream),
        buffers_(args.buffers.begin(), args.buffers.end()) {
    for (std::int32_t i = 0; i < segments_.num_carried(); ++i)
      buffers_.push_back(carried_.template as<float>() + i * size());
  }

  void run() const {
    for (const auto& segment : segments_.segments()) {
      const RowBlock block =
          segment.begin < segment.end ? blocks_.block(segment.begin) : RowBlock{};
      const std::int64_t rows = block.rows(args_.shape.sliding);
      make_factors(block, rows);
      Product product;
      product.a = {dy_.template as<float>(), args_.shape.out_channels / groups_, rows, 1};
      product.b = {nullptr, 1, 0, 0};
      if (kIsWeight) product.b = {patches_.template as<float>(), width_, rows, 1};
      product.live = live_.template as<std::uint8_t>();
      const DeviceProgram program(segments_.program(segment), buffers_, size(), width_, stream_);
      program.give_to(product);
      if (groups_ == 1) {
        launch_product(args_.kName, product, stream_);
        continue;
      }
      const auto offsets = offsets_over(1, groups_, [&](std::int64_t, std::int64_t g) {
        const std::int64_t out = g * product.a.count;
        return std::array{out * rows, g * width_ * rows, out * width_};
      });
      launch_batch(args_.kName, product, offsets, stream_);
    }
  }

 private:
  std::int64_t size() const { return args_.shape.out_channels * width_; }

  /// dy and the image as matrices, and the rows that chains take.
  void make_factors(const RowBlock& block, std::int64_t rows) const {
    const ConvShape& shape = args_.shape;
    const SlidingAxis &h = shape.sliding.h, &w = shape.sliding.w;
    const Sliding outputs{{h.out, h.out}, {w.out, w.out}};  // a pixel's patch is the pixel
    auto* const dy = dy_.template as<float>();
    copy_patches(outputs, shape.out_channels, block, args_.dy, dy, stream_);
    const FindLive find{dy, shape.out_channels, rows, live_.template as<std::uint8_t>()};
    launch_each(args_.kName, rows, find, stream_);
    if constexpr (kIsWeight) {
      auto* const patches = patches_.template as<float>();
      copy_patches(shape.sliding, shape.in_channels, block, args_.x, patches, stream_);
    }
  }

  const Args& args_;
  std::int64_t width_, groups_;
  Stream stream_;
  RowBlocks blocks_;
  ProgramSegments segments_;
  Workspace carried_, dy_, patches_, live_;
  std::vector<float*> buffers_;
};

template <class Args>
void accumulate(const Args& args, Stream stream) {
  const ConvShape& shape = args.shape;
  check_lane_program(args.program, args.kName, shape.rows(), std::ssize(args.buffers));
  ParameterRun<Args>(args, stream).run();
}

}  // namespace

void launch_cuda(const Conv2dForward<float>& args, Stream stream) {
  const ConvShape& shape = args.shape;
  const std::int64_t channels = shape.out_channels, outputs = shape.group_out();
  const std::int64_t plane = shape.sliding.outputs(), depth = shape.depth();
  if (args.bias != nullptr) {
    const SpreadBias spread{args.bias, channels, plane, args.y};
    launch_each(args.kName, shape.samples * channels * plane, spread, stream);
  }
  const RowBlocks blocks(shape);
  Workspace patches(bytes_of(shape.groups * depth * blocks.rows()), stream);
  blocks.for_each([&](const RowBlock& block) {
    const std::int64_t pixels = block.pixels(shape.sliding), rows = block.rows(shape.sliding);
    copy_patches(shape.sliding, shape.in_channels, block, args.x, patches.as<float>(), stream);
    Product product;
    product.a = {args.w, outputs, depth, 1};
    product.b = {patches.as<float>(), pixels, 1, rows};
    product.add(LaneInstruction::zero());
    product.add(LaneInstruction::chain(0, depth));
    if (args.bias != nullptr) product.add(LaneInstruction::merge(0));
    product.add(LaneInstruction::store(0));
    product.few_slots[0] = {args.y + block.first_line * shape.sliding.w.out, plane};
    const auto place = [&](std::int64_t s, std::int64_t g) {
      const std::int64_t out = g * outputs, sample = block.first_sample + s;
      return std::array{
          out * depth, g * depth * rows + s * pixels, (sample * channels + out) * plane};
    };
    const auto offsets = offsets_over(block.samples, shape.groups, place);
    launch_batch(args.kName, product, offsets, stream);
  });
}

void launch_cuda(const Conv2dInputGrad<float>& args, Stream stream) {
  const ConvShape& shape = args.shape;
  const std::int64_t plane = shape.sliding.outputs(), taps = shape.sliding.taps();
  const std::int64_t outputs = shape.group_out(), all = shape.group_in();
  const std::int64_t of_channel = shape.groups * taps * plane;  // elements of patches
  // Blocks of channels, not of lines: the taps of an element stay in order.
  const std::int64_t fit = std::max<std::int64_t>(kWorkspace / of_channel, 1);
  const std::int64_t block = std::min(fit, all);
  if (shape.samples * all == 0) return;
  const std::int64_t most = std::min(fit / block, shape.samples);
  Workspace matrix(bytes_of(of_channel * block * most), stream);
  for (std::int64_t i = 0; i < shape.samples; i += most) {
    const std::int64_t samples = std::min(most, shape.samples - i), rows = samples * plane;
    for (std::int64_t c = 0; c < all; c += block) {
      const std::int64_t channels = std::min(block, all - c), depth = channels * taps;
      const auto place = [&](std::int64_t s, std::int64_t g) {
        const std::int64_t out = g * outputs;
        return std::array{out * shape.depth(),
                          ((i + s) * shape.out_channels + out) * plane,
                          g * depth * rows + s * plane};
      };
      const auto offsets = offsets_over(samples, shape.groups, place);
      for (std::int64_t pixel = 0; pixel < plane; pixel += kMostPixels) {
        Product product;
        product.a = {args.w + c * taps, depth, 1, shape.depth()};
        product.b = {args.dy + pixel, std::min(kMostPixels, plane - pixel), 1, plane};
        product.add(LaneInstruction::zero());
        product.add(LaneInstruction::chain(0, outputs));
        product.add(LaneInstruction::store(0));
        product.few_slots[0] = {matrix.as<float>() + pixel, rows};
        launch_batch(args.kName, product, offsets, stream);
      }
      const AddPatches add{shape, c, channels, i, rows, matrix.as<float>(), args.dx};
      launch_each(
          args.kName, samples * shape.groups * channels * shape.sliding.inputs(), add, stream);
    }
  }
}

void launch_cuda(const Conv2dWeightGrad<float>& args, Stream stream) { accumulate(args, stream); }

void launch_cuda(const Conv2dBiasGrad<float>& args, Stream stream) { accumulate(args, stream); }

}  // namespace accrue::kernels
