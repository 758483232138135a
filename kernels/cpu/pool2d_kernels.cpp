// Pooling: maxima of several windows at once; means in one pass over a plane's outputs per tap.
#include "accrue/kernels/cpu/pool2d.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// Calls body(first output, count, first input) for the taps of a window, ascending, and the runs
/// of a plane's outputs that see the image there.
template <class Body>
ACCRUE_HD void for_runs(const Sliding& sliding, const Body& body) {
  const SlidingAxis &h = sliding.h, &w = sliding.w;
  for (std::int64_t tap_h = 0; tap_h < h.size; ++tap_h) {
    const SlidingAxis::Range lines = h.outputs_of(tap_h, 0, h.out);
    for (std::int64_t tap_w = 0; tap_w < w.size; ++tap_w) {
      const SlidingAxis::Range columns = w.outputs_of(tap_w, 0, w.out);
      const std::int64_t count = columns.end - columns.begin;
      std::int64_t output = lines.begin * w.out + columns.begin;
      std::int64_t input = (lines.begin * h.stride + h.offset(tap_h)) * w.in +
                           columns.begin * w.stride + w.offset(tap_w);
      for (std::int64_t line = lines.begin; line < lines.end; ++line) {
        body(output, count, input);
        output += w.out;
        input += h.stride * w.in;
      }
    }
  }
}

/// Calls body(stride) with a constant where one is worth a loop of its own.
template <class Body>
ACCRUE_HD void with_stride(std::int64_t stride, const Body& body) {
  struct One {
    constexpr operator std::int64_t() const { return 1; }
  };
  struct Two {
    constexpr operator std::int64_t() const { return 2; }
  };
  if (stride == 1) {
    body(One{});
  } else if (stride == 2) {
    body(Two{});
  } else {
    body(stride);
  }
}

/// An output line of max_pool2d.
template <class T>
struct MaxLine {
  const SlidingAxis& w;
  const T* x;                     ///< the plane
  std::int64_t begin, end, step;  ///< input lines of the windows that lie in the image
  T* y;
  std::int32_t* places;

  ACCRUE_HD void take_one(std::int64_t output) const {
    Largest<T> best;
    for (std::int64_t line = begin; line < end; line += step) {
      for (std::int64_t tap = 0; tap < w.size; ++tap) {
        const std::int64_t column = output * w.stride + w.offset(tap);
        if (column < 0 || column >= w.in) continue;
        best.take(x[line * w.in + column], line * w.in + column);
      }
    }
    y[output] = best.value;
    places[output] = best.place;
  }
};

template <int kWidth>
struct Lanes;
template <>
struct Lanes<4> {
  using Values = float __attribute__((vector_size(16)));
  using Places = std::int32_t __attribute__((vector_size(16)));

  static constexpr Places kIota = {0, 1, 2, 3};
  static ACCRUE_HD Values evens(Values low, Values high) {
    return __builtin_shufflevector(low, high, 0, 2, 5, 7);
  }
};
template <>
struct Lanes<8> {
  using Values = float __attribute__((vector_size(32)));
  using Places = std::int32_t __attribute__((vector_size(32)));

  static constexpr Places kIota = {0, 1, 2, 3, 4, 5, 6, 7};
  static ACCRUE_HD Values evens(Values low, Values high) {
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
  }
};

/// kWidth outputs of a line at once, whose windows do not leave the image on the sides.
template <int kWidth, int kStride>
struct MaxBlock {
  using Values = typename Lanes<kWidth>::Values;
  using Places = typename Lanes<kWidth>::Places;

  /// Every kStride-th element from x on; reads none beyond the last.
  static ACCRUE_HD Values load(const float* x) {
    Values low, high;
    __builtin_memcpy(&low, x, sizeof low);
    if constexpr (kStride == 1) return low;
    __builtin_memcpy(&high, x + kWidth - 1, sizeof high);
    return Lanes<kWidth>::evens(low, high);
  }

  static ACCRUE_HD void take(const MaxLine<float>& line, std::int64_t output) {
    const SlidingAxis& w = line.w;
    const Places lanes = Lanes<kWidth>::kIota * kStride;
    Values best = {};
    Places places = lanes - lanes - 1;
    for (std::int64_t input = line.begin; input < line.end; input += line.step) {
      for (std::int64_t tap = 0; tap < w.size; ++tap) {
        const std::int64_t from = input * w.in + output * kStride + w.offset(tap);
        const Values value = load(line.x + from);
        const Places wins = (value > best) | (value != value) | (places < 0);
        best = wins ? value : best;
        places = wins ? lanes + static_cast<std::int32_t>(from) : places;
      }
    }
    __builtin_memcpy(line.y + output, &best, sizeof best);
    __builtin_memcpy(line.places + output, &places, sizeof places);
  }

  /// Takes the outputs [begin, end), the last ones perhaps twice; returns the first not taken.
  static ACCRUE_HD std::int64_t take_all(const MaxLine<float>& line,
                                         std::int64_t begin,
                                         std::int64_t end) {
    if (end - begin < kWidth || line.begin >= line.end) return begin;
    for (; begin + kWidth <= end; begin += kWidth) take(line, begin);
    if (begin < end) take(line, end - kWidth);
    return end;
  }
};

template <class T>
ACCRUE_HD std::int64_t take_blocks(const MaxLine<T>& line, std::int64_t begin, std::int64_t end) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (line.w.stride == 1) {
      return MaxBlock<4, 1>::take_all(line, MaxBlock<8, 1>::take_all(line, begin, end), end);
    }
    if (line.w.stride == 2) {
      return MaxBlock<4, 2>::take_all(line, MaxBlock<8, 2>::take_all(line, begin, end), end);
    }
  }
  return begin;
}

template <class T>
void run(const MaxPool2d<T>& args, std::int64_t begin, std::int64_t end) {
  const SlidingAxis &h = args.shape.sliding.h, &w = args.shape.sliding.w;
  const std::int64_t inner_begin = w.outputs_of(0, 0, w.out).begin;
  const std::int64_t inner_end = w.outputs_of(w.size - 1, 0, w.out).end;
  for (std::int64_t i = begin * h.out; i < end * h.out; ++i) {
    std::int64_t first = i % h.out * h.stride - h.padding;
    const std::int64_t last = first + (h.size - 1) * h.dilation;
    while (first < 0) first += h.dilation;
    const MaxLine<T> line{w,
                          args.x + i / h.out * (h.in * w.in),
                          first,
                          last < h.in ? last + 1 : h.in,
                          h.dilation,
                          args.y + i * w.out,
                          args.places + i * w.out};
    std::int64_t output = 0;
    for (; output < inner_begin; ++output) line.take_one(output);
    if (output < inner_end) output = take_blocks(line, output, inner_end);
    for (; output < w.out; ++output) line.take_one(output);
  }
}

template <class T>
void run(const MaxPool2dGrad<T>& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t inputs = args.shape.sliding.inputs(), outputs = args.shape.sliding.outputs();
  for (std::int64_t plane = begin; plane < end; ++plane) {
    const T* const dy = args.dy + plane * outputs;
    const std::int32_t* const places = args.places + plane * outputs;
    T* const dx = args.dx + plane * inputs;
    for (std::int64_t i = 0; i < inputs; ++i) dx[i] = 0;
    for (std::int64_t i = 0; i < outputs; ++i) {
      if (places[i] >= 0) dx[places[i]] += dy[i];
    }
  }
}

template <class T, class Stride>
ACCRUE_HD void add(const T* __restrict x, std::int64_t count, Stride stride, T* __restrict sums) {
  for (std::int64_t j = 0; j < count; ++j) sums[j] += x[j * stride];
}

template <class T, class Stride>
ACCRUE_HD void add_back(const T* __restrict dy,
                        const T* __restrict divisors,
                        std::int64_t count,
                        Stride stride,
                        T* __restrict dx) {
  for (std::int64_t j = 0; j < count; ++j) dx[j * stride] += dy[j] / divisors[j];
}

template <class T>
void run(const AveragePool<T>& average, std::int64_t begin, std::int64_t end) {
  const Sliding& sliding = average.args.shape.sliding;
  const std::int64_t inputs = sliding.inputs(), outputs = sliding.outputs();
  with_stride(sliding.w.stride, [&](auto stride) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* const x = average.args.x + plane * inputs;
      T* const y = average.args.y + plane * outputs;
      for (std::int64_t i = 0; i < outputs; ++i) y[i] = 0;
      for_runs(sliding, [&](std::int64_t output, std::int64_t count, std::int64_t input) {
        add(x + input, count, stride, y + output);
      });
      for (std::int64_t i = 0; i < outputs; ++i) y[i] /= average.divisors[i];
    }
  });
}

template <class T>
void run(const AveragePoolGrad<T>& average, std::int64_t begin, std::int64_t end) {
  const Sliding& sliding = average.args.shape.sliding;
  const std::int64_t inputs = sliding.inputs(), outputs = sliding.outputs();
  with_stride(sliding.w.stride, [&](auto stride) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* const dy = average.args.dy + plane * outputs;
      T* const dx = average.args.dx + plane * inputs;
      for (std::int64_t i = 0; i < inputs; ++i) dx[i] = 0;
      for_runs(sliding, [&](std::int64_t output, std::int64_t count, std::int64_t input) {
        add_back(dy + output, average.divisors + output, count, stride, dx + input);
      });
    }
  });
}

}  // namespace

void pool_planes(const MaxPool2d<float>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const MaxPool2d<double>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const MaxPool2dGrad<float>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const MaxPool2dGrad<double>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const AveragePool<float>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const AveragePool<double>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const AveragePoolGrad<float>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}
void pool_planes(const AveragePoolGrad<double>& args, std::int64_t begin, std::int64_t end) {
  run(args, begin, end);
}

}  // namespace accrue::kernels::ACCRUE_ISA
