// Elementwise kernels on CUDA against the CPU's, in every bit, under every schedule.
#include "accrue/core/config.h"
#include "accrue/kernels/cuda/kernels.h"
#include "accrue/tests/support/device_tensor.h"
#include "accrue/tests/support/doctest.h"

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

constexpr UnaryOp kUnaryOps[] = {
#define ACCRUE_UNARY_OP(name, Formula) UnaryOp::name,
#include "accrue/kernels/unary_ops.def"
};
constexpr BinaryOp kBinaryOps[] = {BinaryOp::add,
                                   BinaryOp::sub,
                                   BinaryOp::mul,
                                   BinaryOp::div,
                                   BinaryOp::maximum,
                                   BinaryOp::minimum};
constexpr DType kFloating[] = {DType::float32, DType::float64};

/// Around the borders of quads and blocks, and shapes whose dimensions cannot be merged, more than
/// nvcc takes at once.
std::vector<Shape> shapes() {
  std::vector<Shape> out = {{}, {0}, {3}, {4}, {5, 7}, {2, 3, 4}};
  if (!kAddressSanitizer && !kThreadSanitizer) {
    for (const Shape& more :
         {Shape{1023}, Shape{1029}, Shape{3, 0, 2}, Shape{70, 31}, Shape{2, 3, 2, 2, 2, 2}}) {
      out.push_back(more);
    }
  }
  return out;
}

Tensor numbers(const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937_64 random(seed);
  return dtype == DType::float32 ? random_tensor<float>(shape, random, true)
                                 : random_tensor<double>(shape, random, true);
}

/// Calls body(shape, dtype, layout of the operands, layout of the result).
template <class Body>
int for_each_case(std::span<const DType> dtypes, const Body& body) {
  int count = 0;
  for (const Shape& shape : shapes()) {
    for (const DType dtype : dtypes) {
      for (const Layout in : kLayouts) {
        const Layout out = kWritableLayouts[count % 3];
        CAPTURE(shape.str());
        CAPTURE(name_of(dtype));
        CAPTURE(static_cast<int>(in));
        CAPTURE(static_cast<int>(out));
        body(shape, dtype, in, out);
        ++count;
      }
    }
  }
  return count;
}

}  // namespace

namespace {

void check_functions(DType dtype) {
  for (const UnaryOp op : kUnaryOps) {
    CAPTURE(name_of(op));
    const int cases =
        for_each_case({&dtype, 1}, [&](const Shape& shape, DType, Layout in, Layout out) {
          const UnaryParameters parameters{0.3, 0.7};
          const auto one = static_cast<std::size_t>(size_of(dtype));  // element: dy is misaligned
          DeviceTensor x(numbers(shape, dtype, 1), in), dy(numbers(shape, dtype, 2), in, one);
          auto y = DeviceTensor::unwritten(shape, dtype, out);
          auto dx = DeviceTensor::unwritten(shape, dtype, out);
          launch_cpu(UnaryForward{op, x.twin, y.twin, parameters});
          launch_cpu(UnaryBackward{op, x.twin, y.twin, dy.twin, dx.twin, parameters});
          CHECK(examine({y.output("y"), dx.output("dx")}, [&] {
                  launch_cuda(UnaryForward{op, x.tensor, y.tensor, parameters}, {});
                  launch_cuda(
                      UnaryBackward{op, x.tensor, y.tensor, dy.tensor, dx.tensor, parameters}, {});
                }) == "");
        });
    if (op == kUnaryOps[0])
      MESSAGE(cases, " shapes and layouts under ", all_schedules().size(), " schedules");
  }
}

}  // namespace

TEST_CASE("cuda.elementwise: functions of one operand have the CPU's bits, slopes too") {
  check_functions(DType::float32);
}

TEST_CASE("cuda.elementwise: functions of one float64 are those of the C library, slopes too") {
  check_functions(DType::float64);
}

TEST_CASE("cuda.elementwise: powers have the CPU's bits for whole and other exponents") {
  for (const double exponent : {-2.0, 0.0, 1.0, 2.0, 3.0, 65.0, 0.5}) {
    DeviceTensor x(numbers({33}, DType::float32, 1)), dy(numbers({33}, DType::float32, 2));
    auto y = DeviceTensor::unwritten({33}), dx = DeviceTensor::unwritten({33});
    launch_cpu(UnaryForward{UnaryOp::pow, x.twin, y.twin, {exponent}});
    launch_cpu(UnaryBackward{UnaryOp::pow, x.twin, y.twin, dy.twin, dx.twin, {exponent}});
    CAPTURE(exponent);
    CHECK(examine({y.output("y"), dx.output("dx")}, [&] {
            launch_cuda(UnaryForward{UnaryOp::pow, x.tensor, y.tensor, {exponent}}, {});
            launch_cuda(
                UnaryBackward{UnaryOp::pow, x.tensor, y.tensor, dy.tensor, dx.tensor, {exponent}},
                {});
          }) == "");
  }
}

TEST_CASE("cuda.elementwise: functions of two operands have the CPU's bits") {
  for (const BinaryOp op : kBinaryOps) {
    CAPTURE(name_of(op));
    for_each_case(kFloating, [&](const Shape& shape, DType dtype, Layout in, Layout out) {
      DeviceTensor a(numbers(shape, dtype, 3), in), b(numbers(shape, dtype, 4));
      auto y = DeviceTensor::unwritten(shape, dtype, out);
      auto with_number = DeviceTensor::unwritten(shape, dtype, out);
      launch_cpu(BinaryForward{op, a.twin, b.twin, y.twin});
      launch_cpu(ScalarForward{op, a.twin, 0.3, with_number.twin});
      CHECK(examine({y.output("y"), with_number.output("with_number")}, [&] {
              launch_cuda(BinaryForward{op, a.tensor, b.tensor, y.tensor}, {});
              launch_cuda(ScalarForward{op, a.tensor, 0.3, with_number.tensor}, {});
            }) == "");
    });
  }
}

TEST_CASE("cuda.elementwise: the gradient of the larger and scaled sums have the CPU's bits") {
  for_each_case(kFloating, [&](const Shape& shape, DType dtype, Layout in, Layout out) {
    const bool all_equal = in == Layout::transposed;
    DeviceTensor a(numbers(shape, dtype, 5), in), b(numbers(shape, dtype, all_equal ? 5 : 6)),
        dy(numbers(shape, dtype, 7), in), sum(numbers(shape, dtype, 8), out);
    auto dx = DeviceTensor::unwritten(shape, dtype, out);
    launch_cpu(LargerBackward{a.twin, b.twin, dy.twin, dx.twin});
    launch_cpu(AddScaled{-0.1, a.twin, sum.twin});
    CHECK(examine({dx.output("dx"), sum.output("sum")}, [&] {
            launch_cuda(LargerBackward{a.tensor, b.tensor, dy.tensor, dx.tensor}, {});
            launch_cuda(AddScaled{-0.1, a.tensor, sum.tensor}, {});
          }) == "");
  });
}

TEST_CASE("cuda.elementwise: rows and columns that repeat have the CPU's bits, aligned or not") {
  for (const std::int64_t width : {3, 4, 8, 1028}) {
    for (const std::size_t misalignment : {0, 4}) {
      const Shape shape{6, width};
      DeviceTensor a(numbers(shape, DType::float32, 9), Layout::contiguous, misalignment);
      DeviceTensor row(numbers({width}, DType::float32, 10)),
          column(numbers({6, 1}, DType::float32, 11));
      auto y = DeviceTensor::unwritten(shape), z = DeviceTensor::unwritten(shape);
      const Tensor rows = row.tensor.expand(shape), columns = column.tensor.expand(shape);
      launch_cpu(BinaryForward{BinaryOp::mul, a.twin, row.twin.expand(shape), y.twin});
      launch_cpu(BinaryForward{BinaryOp::sub, column.twin.expand(shape), a.twin, z.twin});
      CAPTURE(width);
      CHECK(examine({y.output("y"), z.output("z")}, [&] {
              launch_cuda(BinaryForward{BinaryOp::mul, a.tensor, rows, y.tensor}, {});
              launch_cuda(BinaryForward{BinaryOp::sub, columns, a.tensor, z.tensor}, {});
            }) == "");
    }
  }
}

TEST_CASE("cuda.elementwise: elements behind the first 2^32 are reached, in rows too") {
  constexpr std::int64_t kCount = (std::int64_t{1} << 33) + 1032;
  const simt::GuardedMemory memory(kCount * 4, 0, simt::GuardedMemory::kWideFence);
  reinterpret_cast<float*>(memory.data())[kCount - 1] = 2.0f;
  Tensor x = Tensor::over(Storage::adopt(memory.data(), kCount * 4, Device::cuda(0)), {kCount});
  simt::run_options() = {.block_begin = kCount / 1024 - 1};
  launch_cuda(UnaryForward{UnaryOp::neg, x, x}, {});
  Tensor strided = x.view({kCount / 4, 4}).narrow(1, 1, 3);
  simt::run_options() = {.block_begin = strided.numel() / 1024 - 1};
  launch_cuda(ScalarForward{BinaryOp::mul, strided, 3.0, strided}, {});
  simt::run_options() = {};
  CHECK(x.data<float>()[kCount - 1] == -6.0f);
  CHECK(bits_of(x.data<float>()[kCount - 2]) == 0x80000000U);
}

TEST_CASE("cuda.elementwise: wrong operands are refused as on the CPU") {
  DeviceTensor x(Tensor::zeros({3})), wide(Tensor::zeros({4}));
  DeviceTensor doubles(Tensor::zeros({3}, DType::float64)), integers(Tensor::arange(3));
  CHECK_THROWS_AS(launch_cuda(UnaryForward{UnaryOp::exp, x.tensor, wide.tensor}, {}), ShapeError);
  CHECK_THROWS_AS(launch_cuda(AddScaled{1, x.tensor, doubles.tensor}, {}), DTypeError);
  CHECK_THROWS_AS(launch_cuda(UnaryForward{UnaryOp::exp, integers.tensor, integers.tensor}, {}),
                  DTypeError);
  Tensor repeated = x.tensor.narrow(0, 0, 1).expand({4});
  CHECK_THROWS_AS(launch_cuda(UnaryForward{UnaryOp::exp, wide.tensor, repeated}, {}), StateError);
}
