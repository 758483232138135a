// Pooling line by line: each tap of the windows is one pass over an output line.
#include "accrue/kernels/cpu/pool2d.h"

namespace accrue::kernels::ACCRUE_ISA {
namespace {

/// Calls body(line, input line, tap h) for the lines of an axis and the taps that see the image.
template <class Body>
ACCRUE_HD void for_lines(const SlidingAxis& h, const Body& body) {
  for (std::int64_t line = 0; line < h.out; ++line) {
    for (std::int64_t tap = 0; tap < h.size; ++tap) {
      const std::int64_t input = line * h.stride + h.offset(tap);
      if (input >= 0 && input < h.in) body(line, input);
    }
  }
}

/// Calls body(first output, count, first input) for the taps of an axis, with the outputs that see
/// the image there.
template <class Body>
ACCRUE_HD void for_taps(const SlidingAxis& w, const Body& body) {
  for (std::int64_t tap = 0; tap < w.size; ++tap) {
    const SlidingAxis::Range range = w.outputs_of(tap, 0, w.out);
    body(range.begin, range.end - range.begin, range.begin * w.stride + w.offset(tap));
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

template <class T>
void run(const MaxPool2d<T>& args, std::int64_t begin, std::int64_t end) {
  const SlidingAxis &h = args.shape.sliding.h, &w = args.shape.sliding.w;
  const std::int64_t inputs = h.in * w.in, outputs = h.out * w.out;
  for (std::int64_t i = begin * outputs; i < end * outputs; ++i) {
    args.y[i] = -static_cast<T>(__builtin_inf());
    args.places[i] = -1;
  }
  for (std::int64_t plane = begin; plane < end; ++plane) {
    for_lines(h, [&](std::int64_t line, std::int64_t input_line) {
      for_taps(w, [&](std::int64_t first, std::int64_t count, std::int64_t input) {
        const std::int64_t from = input_line * w.in + input, to = plane * outputs + line * w.out;
        const T* __restrict x = args.x + plane * inputs + from;
        T* __restrict best = args.y + to + first;
        std::int32_t* __restrict places = args.places + to + first;
        const auto place = static_cast<std::int32_t>(from);
        with_stride(w.stride, [&](auto stride) {
          for (std::int64_t j = 0; j < count; ++j) {
            const T value = x[j * stride];
            const bool wins = (value > best[j]) | (value != value) | (places[j] < 0);
            best[j] = wins ? value : best[j];
            places[j] = wins ? place + static_cast<std::int32_t>(j * stride) : places[j];
          }
        });
      });
    });
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

template <class T>
void run(const AveragePool<T>& average, std::int64_t begin, std::int64_t end) {
  const AvgPool2d<T>& args = average.args;
  const SlidingAxis &h = args.shape.sliding.h, &w = args.shape.sliding.w;
  const std::int64_t inputs = h.in * w.in, outputs = h.out * w.out;
  for (std::int64_t plane = begin; plane < end; ++plane) {
    T* const y = args.y + plane * outputs;
    for (std::int64_t i = 0; i < outputs; ++i) y[i] = 0;
    for_lines(h, [&](std::int64_t line, std::int64_t input_line) {
      for_taps(w, [&](std::int64_t first, std::int64_t count, std::int64_t input) {
        const T* __restrict x = args.x + plane * inputs + input_line * w.in + input;
        T* __restrict sums = y + line * w.out + first;
        with_stride(w.stride, [&](auto stride) {
          for (std::int64_t j = 0; j < count; ++j) sums[j] += x[j * stride];
        });
      });
    });
    for (std::int64_t i = 0; i < outputs; ++i) y[i] /= average.divisors[i];
  }
}

template <class T>
void run(const AveragePoolGrad<T>& average, std::int64_t begin, std::int64_t end) {
  const AvgPool2dGrad<T>& args = average.args;
  const SlidingAxis &h = args.shape.sliding.h, &w = args.shape.sliding.w;
  const std::int64_t inputs = h.in * w.in, outputs = h.out * w.out;
  for (std::int64_t plane = begin; plane < end; ++plane) {
    T* const image = args.dx + plane * inputs;
    for (std::int64_t i = 0; i < inputs; ++i) image[i] = 0;
    for_lines(h, [&](std::int64_t line, std::int64_t input_line) {
      for_taps(w, [&](std::int64_t first, std::int64_t count, std::int64_t input) {
        T* __restrict dx = image + input_line * w.in + input;
        const std::int64_t from = line * w.out + first;
        const T* __restrict dy = args.dy + plane * outputs + from;
        const T* __restrict divisors = average.divisors + from;
        with_stride(w.stride, [&](auto stride) {
          for (std::int64_t j = 0; j < count; ++j) dx[j * stride] += dy[j] / divisors[j];
        });
      });
    });
  }
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
