// Convolutions on the CPU: patches of a few output lines, then a matrix product on them.
#include "accrue/kernels/cpu/conv2d.h"

#include "accrue/core/tensor.h"
#include "accrue/kernels/conv2d.h"
#include "accrue/kernels/cpu/dispatch.h"
#include "accrue/kernels/cpu/gemm.h"
#include "accrue/kernels/cpu/parallel.h"
#include "accrue/kernels/program_segments.h"

#include <algorithm>
#include <vector>

namespace accrue::kernels {
namespace {

constexpr std::int64_t kPatchElements = 1 << 16;  // of a block of patches: for L2
constexpr double kThreadWork = 256 * 1024;        // products that are worth waking a thread

/// Uninitialised memory from the allocator's cache.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t size) : tensor_(Tensor::empty({size}, dtype_of<T>)) {}
  T* data() { return tensor_.mutable_data<T>(); }

 private:
  Tensor tensor_;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How many of `size` parts, each of `elements` patch elements, make a block.
std::int64_t block_of(std::int64_t size, std::int64_t elements) {
  const std::int64_t fit = kPatchElements / std::max<std::int64_t>(elements, 1);
  return std::clamp<std::int64_t>(fit, 1, std::max<std::int64_t>(size, 1));
}

std::int64_t lines_of_block(const ConvShape& shape) {
  return block_of(shape.sliding.h.out, shape.depth() * shape.sliding.w.out);
}

/// parallel_for over tasks of which each makes `work` products.
template <class Body>
void for_tasks(std::int64_t count, std::int64_t work, const Body& body) {
  const double fit = kThreadWork / std::max(static_cast<double>(work), 1.0);
  parallel_for(count, static_cast<std::int64_t>(fit) + 1, body);
}

/// The patches of a group's channels at some lines.
template <class T>
Patches<T> patches_of(const ConvShape& shape, std::int64_t line_begin, std::int64_t line_end) {
  return {shape.sliding, 0, shape.depth(), line_begin, line_end};
}

/// The first channel of a group in an image of `channels` channels of `size` elements.
std::int64_t group_offset(const ConvShape& shape,
                          std::int64_t sample,
                          std::int64_t group,
                          std::int64_t channels,
                          std::int64_t size) {
  return (sample * channels + group * (channels / shape.groups)) * size;
}

/// c = a b, plus `bias` laid out as c unless it is null.
template <class T>
void multiply(const Matrix<const T>& a,
              const Matrix<const T>& b,
              const Matrix<const T>& bias,
              const Matrix<T>& c) {
  const LaneInstruction with_bias[] = {LaneInstruction::zero(),
                                       LaneInstruction::chain(0, a.cols),
                                       LaneInstruction::merge(1),
                                       LaneInstruction::store(0)};
  const LaneInstruction plain[] = {with_bias[0], with_bias[1], with_bias[3]};
  // The bias is a slot that the program only reads.
  const GemmSlot<T> slots[] = {{c.data, c.row_stride},
                               {const_cast<T*>(bias.data), bias.row_stride}};
  if (bias.data) {
    gemm<T>({a, b, slots, {with_bias, 2, 0}});
  } else {
    gemm<T>({a, b, {slots, 1}, {plain, 1, 0}});
  }
}

/// Each bias `pixels` times, or nothing.
template <class T>
std::vector<T> spread(const T* bias, std::int64_t channels, std::int64_t pixels) {
  std::vector<T> plane;
  for (std::int64_t o = 0; bias && o < channels; ++o) {
    plane.insert(plane.end(), static_cast<std::size_t>(pixels), bias[o]);
  }
  return plane;
}

}  // namespace

template <class T>
void launch_cpu(const Conv2dForward<T>& args) {
  const DefaultFloats floats;
  const ConvShape& shape = args.shape;
  const SlidingAxis &h = shape.sliding.h, &w = shape.sliding.w;
  const std::int64_t depth = shape.depth(), outputs = shape.group_out();
  const std::int64_t block = lines_of_block(shape), num_blocks = ceil_div(h.out, block);
  const std::int64_t plane = shape.sliding.outputs(), wide = block * w.out;
  const std::vector<T> biases = spread(args.bias, shape.out_channels, wide);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    Scratch<T> matrix(depth * wide);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t line = i % num_blocks * block, group = i / num_blocks % shape.groups;
      const std::int64_t sample = i / num_blocks / shape.groups;
      const auto patches = patches_of<T>(shape, line, std::min(line + block, h.out));
      const T* const x =
          args.x + group_offset(shape, sample, group, shape.in_channels, shape.sliding.inputs());
      ACCRUE_DISPATCH(copy_patches, patches, x, matrix.data());
      T* const y = args.y + group_offset(shape, sample, group, shape.out_channels, plane);
      const T* const bias = args.bias ? biases.data() + group * outputs * wide : nullptr;
      multiply<T>(row_major(args.w + group * outputs * depth, outputs, depth),
                  row_major<const T>(matrix.data(), depth, patches.pixels()),
                  {bias, outputs, wide, wide, 1},
                  {y + line * w.out, outputs, patches.pixels(), plane, 1});
    }
  };
  for_tasks(shape.samples * shape.groups * num_blocks, outputs * depth * wide, run);
}

template <class T>
void launch_cpu(const Conv2dInputGrad<T>& args) {
  const DefaultFloats floats;
  const ConvShape& shape = args.shape;
  const std::int64_t depth = shape.depth(), taps = shape.sliding.taps();
  const std::int64_t pixels = shape.sliding.outputs(), inputs = shape.sliding.inputs();
  const std::int64_t outputs = shape.group_out();
  // Blocks of channels, not of lines: the taps of an element stay in order.
  const std::int64_t block = block_of(shape.group_in(), taps * pixels);
  const std::int64_t num_blocks = ceil_div(shape.group_in(), block);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    Scratch<T> matrix(block * taps * pixels);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t channel = i % num_blocks * block, group = i / num_blocks % shape.groups;
      const std::int64_t sample = i / num_blocks / shape.groups;
      const std::int64_t channels = std::min(block, shape.group_in() - channel);
      auto patches = patches_of<T>(shape, 0, shape.sliding.h.out);
      patches.end = channels * taps;
      const T* const w = args.w + group * outputs * depth + channel * taps;
      const T* const dy = args.dy + group_offset(shape, sample, group, shape.out_channels, pixels);
      multiply<T>({w, patches.end, outputs, 1, depth},
                  row_major(dy, outputs, pixels),
                  {},
                  row_major(matrix.data(), patches.end, pixels));
      T* const dx = args.dx + group_offset(shape, sample, group, shape.in_channels, inputs) +
                    channel * inputs;
      std::fill_n(dx, channels * inputs, T(0));
      ACCRUE_DISPATCH(add_patches, patches, matrix.data(), dx);
    }
  };
  for_tasks(shape.samples * shape.groups * num_blocks, outputs * block * taps * pixels, run);
}

namespace {

/// Which rows of dy are not zero in all channels.
class LiveRows {
 public:
  template <class T>
  LiveRows(const ConvShape& shape, const T* dy)
      : pixels_(shape.sliding.outputs()),
        rows_(static_cast<std::size_t>(shape.rows())),
        is_full_(static_cast<std::size_t>(shape.samples)) {
    const std::int64_t channels = shape.out_channels;
    for_tasks(shape.samples, channels * pixels_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const T* const planes = dy + n * channels * pixels_;
        is_full_[static_cast<std::size_t>(n)] =
            ACCRUE_DISPATCH(mark_live, planes, channels, pixels_, rows_.data() + n * pixels_);
      }
    });
  }

  /// The bytes of a sample's rows from `row` on; null where all are live.
  const std::uint8_t* from(std::int64_t row) const {
    const bool any = row < static_cast<std::int64_t>(rows_.size());
    return any && !is_full_[static_cast<std::size_t>(row / pixels_)] ? rows_.data() + row : nullptr;
  }

 private:
  std::int64_t pixels_;
  std::vector<std::uint8_t> rows_, is_full_;
};

/// A parameter's program, cut at the blocks of patches, and all it needs to run on some columns.
template <class T>
class ParameterRun {
 public:
  template <class Args>
  ParameterRun(const Args& args, std::int64_t size)
      : shape_(args.shape),
        live_(args.shape, args.dy),
        segments_(args.program,
                  args.shape.sliding.outputs(),
                  lines_of_block(args.shape) * args.shape.sliding.w.out),
        carried_(segments_.num_carried() * size),
        buffers_(args.buffers.begin(), args.buffers.end()) {
    for (std::int32_t i = 0; i < segments_.num_carried(); ++i) {
      buffers_.push_back(carried_.data() + i * size);
    }
  }

  /// Runs the program on the elements from `offset` on, whose rows lie `row_stride` apart.
  /// operands(sample, first pixel, pixels) returns both factors of a block.
  template <class Operands>
  void run(std::int64_t offset, std::int64_t row_stride, const Operands& operands) const {
    std::vector<GemmSlot<T>> slots;
    for (T* const buffer : buffers_) slots.push_back({buffer + offset, row_stride});
    const std::int64_t period = shape_.sliding.outputs();
    for (const auto& segment : segments_.segments()) {
      const std::int64_t pixels = segment.end - segment.begin;
      const auto [a, b] = operands(segment.begin / period, segment.begin % period, pixels);
      gemm<T>({a, b, slots, segments_.program(segment), live_.from(segment.begin)});
    }
  }

 private:
  const ConvShape& shape_;
  LiveRows live_;
  ProgramSegments segments_;
  Scratch<T> carried_;
  std::vector<T*> buffers_;
};

template <class T>
struct Factors {
  Matrix<const T> a, b;
};

}  // namespace

template <class T>
void launch_cpu(const Conv2dWeightGrad<T>& args) {
  const DefaultFloats floats;
  constexpr std::int64_t kColumns = 8;  // threads take whole vectors of a patch
  const ConvShape& shape = args.shape;
  const auto num_buffers = static_cast<std::int64_t>(args.buffers.size());
  check_lane_program(args.program, args.kName, shape.rows(), num_buffers);
  const std::int64_t depth = shape.depth(), outputs = shape.group_out();
  const std::int64_t plane = shape.sliding.outputs(), width = shape.sliding.w.out;
  const ParameterRun<T> parameter(args, shape.out_channels * depth);
  const std::int64_t chunks = ceil_div(depth, kColumns);
  const std::int64_t lines = lines_of_block(shape);
  const auto run_part = [&](std::int64_t group, std::int64_t begin, std::int64_t end) {
    Scratch<T> matrix((end - begin) * lines * width);
    const auto operands = [&](std::int64_t sample, std::int64_t pixel, std::int64_t pixels) {
      auto patches = patches_of<T>(shape, pixel / width, (pixel + pixels) / width);
      patches.begin = begin;
      patches.end = end;
      if (pixels > 0) {
        const T* const x =
            args.x + group_offset(shape, sample, group, shape.in_channels, shape.sliding.inputs());
        ACCRUE_DISPATCH(copy_patches, patches, x, matrix.data());
      }
      const T* const dy = args.dy + group_offset(shape, sample, group, shape.out_channels, plane);
      return Factors<T>{{dy + pixel, outputs, pixels, plane, 1},
                        row_major<const T>(matrix.data(), end - begin, pixels).transposed()};
    };
    parameter.run(group * outputs * depth + begin, depth, operands);
  };
  const std::int64_t work = outputs * kColumns * shape.rows();
  for_tasks(shape.groups * chunks, work, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t group = begin / chunks, first = group * chunks;
      const std::int64_t last = std::min(end, first + chunks);
      run_part(group, (begin - first) * kColumns, std::min((last - first) * kColumns, depth));
      begin = last;
    }
  });
}

template <class T>
void launch_cpu(const Conv2dBiasGrad<T>& args) {
  const DefaultFloats floats;
  static const T one = 1;
  constexpr std::int64_t kChannels = 16;  // a tile of sums
  const ConvShape& shape = args.shape;
  const auto num_buffers = static_cast<std::int64_t>(args.buffers.size());
  check_lane_program(args.program, args.kName, shape.rows(), num_buffers);
  const std::int64_t plane = shape.sliding.outputs(), all = shape.out_channels;
  const ParameterRun<T> parameter(args, all);
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kChannels, last = std::min(end * kChannels, all);
    parameter.run(first, 0, [&](std::int64_t sample, std::int64_t pixel, std::int64_t pixels) {
      const T* const dy = args.dy + (sample * all + first) * plane + pixel;
      return Factors<T>{{&one, 1, pixels, 0, 0}, {dy, pixels, last - first, 1, plane}};
    });
  };
  for_tasks(ceil_div(all, kChannels), kChannels * shape.rows(), run);
}

template void launch_cpu(const Conv2dForward<float>&);
template void launch_cpu(const Conv2dForward<double>&);
template void launch_cpu(const Conv2dInputGrad<float>&);
template void launch_cpu(const Conv2dInputGrad<double>&);
template void launch_cpu(const Conv2dWeightGrad<float>&);
template void launch_cpu(const Conv2dWeightGrad<double>&);
template void launch_cpu(const Conv2dBiasGrad<float>&);
template void launch_cpu(const Conv2dBiasGrad<double>&);

}  // namespace accrue::kernels
