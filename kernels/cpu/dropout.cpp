// Dropout masks on the CPU: the innermost rows are dealt to threads.
#include "accrue/kernels/dropout.h"

#include "accrue/core/counter_generator.h"
#include "accrue/kernels/cpu/parallel.h"

#include <algorithm>
#include <vector>

namespace accrue::kernels {
namespace {

/// The numbers below the coordinates of innermost row `row`, the innermost coordinate left open.
CounterGenerator generator_of(const DropoutMask& args, const Shape& outer, std::int64_t row) {
  Shape index = outer;
  for (int d = outer.rank() - 1; d >= 0; --d) {
    index[d] = row % outer[d];
    row /= outer[d];
  }
  const auto sample = static_cast<std::uint64_t>(index[0] / args.rows);
  CounterGenerator generator(args.seed, args.window, args.first_position + sample, args.stream);
  generator = generator.at(static_cast<std::uint64_t>(index[0] % args.rows));
  for (int d = 1; d < outer.rank(); ++d) {
    generator = generator.at(static_cast<std::uint64_t>(index[d]));
  }
  return generator;
}

template <class T>
void fill_row(std::span<const float> numbers, double p, T* out) {
  const T scale = dropout_scale<T>(p);
  const float limit = dropout_limit(p);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    out[i] = numbers[i] < limit ? scale : T(0);
  }
}

/// The mask of rank >= 2, or one of rank 1 seen as rows of one element, whose innermost coordinate
/// is their row in the sample.
template <class T>
void fill(const DropoutMask& args, T* out) {
  const Shape& shape = args.mask.shape();
  if (shape.rank() == 1) {
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      const auto sample = static_cast<std::uint64_t>(i / args.rows);
      const CounterGenerator generator(
          args.seed, args.window, args.first_position + sample, args.stream);
      const float number = generator.uniform(static_cast<std::uint64_t>(i % args.rows));
      fill_row<T>({&number, 1}, args.p, out + i);
    }
    return;
  }
  const Shape outer(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 1)));
  const std::int64_t width = shape.back();
  const std::int64_t grain = std::max<std::int64_t>(4096 / std::max<std::int64_t>(width, 1), 1);
  parallel_for(product(outer, 0, outer.rank()), grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> numbers(static_cast<std::size_t>(width));
    for (std::int64_t row = begin; row < end; ++row) {
      generator_of(args, outer, row).uniform(std::span(numbers));
      fill_row<T>(numbers, args.p, out + row * width);
    }
  });
}

}  // namespace

void launch_cpu(const DropoutMask& args) {
  Tensor mask = args.mask;
  if (mask.numel() == 0) return;
  visit_floating(
      mask.dtype(), "dropout", [&]<class T>(T) { fill<T>(args, mask.mutable_data<T>()); });
}

}  // namespace accrue::kernels
