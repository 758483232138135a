// Printing against torch: the documented rows, and a golden file of 600 tensors.
#include "accrue/core/print.h"

#include "accrue/core/bits.h"
#include "accrue/core/tensor.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/golden.h"

#include <fstream>
#include <limits>
#include <sstream>

using accrue::DType;
using accrue::Shape;
using accrue::Tensor;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
T parse(const std::string& word) {
  if constexpr (std::is_floating_point_v<T>) {
    const std::uint64_t bits = std::stoull(word, nullptr, 16);
    if constexpr (sizeof(T) == 4) return accrue::float_of(static_cast<std::uint32_t>(bits));
    return static_cast<T>(accrue::double_of(bits));
  } else {
    return static_cast<T>(std::stoll(word));
  }
}

Shape parse_shape(const std::string& word) {
  Shape shape;
  std::istringstream sizes(word);
  if (word == "()") return shape;
  for (std::string size; std::getline(sizes, size, 'x');) shape.push_back(std::stoll(size));
  return shape;
}

/// The tensor that the words `dtype shape suffix elements...` describe.
Tensor parse_tensor(DType dtype, const Shape& shape, std::istream& words) {
  Tensor result = Tensor::empty(shape, dtype);
  std::string first;
  words >> first;
  accrue::visit_dtype(dtype, [&]<class T>(T) {
    T* out = result.mutable_data<T>();
    double start = 0, step = 0;
    if (first == "ramp") words >> start >> step;
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      if (first == "ramp") {
        out[i] = static_cast<T>(start + step * static_cast<double>(i));
      } else {
        out[i] = parse<T>(first);
        words >> first;
      }
    }
  });
  return result;
}

DType parse_dtype(const std::string& name) {
  for (int i = 0; i < 6; ++i) {
    if (name == accrue::name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw std::runtime_error("unknown dtype " + name);
}

std::string print_case(const std::string& line) {
  std::istringstream words(line);
  std::string dtype, shape, suffix;
  words >> dtype >> shape >> suffix;
  const Tensor tensor = parse_tensor(parse_dtype(dtype), parse_shape(shape), words);
  return to_string(tensor, suffix == "-" ? "" : suffix);
}

std::string of(std::initializer_list<float> values) { return Tensor::of<float>(values).str(); }

}  // namespace

TEST_CASE("core.print: the documented rows print as torch prints them") {
  CHECK(of({-0.0075f, 0.5364f}) == "tensor([-0.0075,  0.5364])");
  CHECK(of({1, 2}) == "tensor([1., 2.])");
  CHECK(of({0, 0}) == "tensor([0., 0.])");
  CHECK(of({-0.0f}) == "tensor([-0.])");
  CHECK(of({1, 2.5f}) == "tensor([1.0000, 2.5000])");
  CHECK(of({-5, 100}) == "tensor([ -5., 100.])");
  CHECK(of({1e-5f, 1}) == "tensor([1.0000e-05, 1.0000e+00])");
  CHECK(of({0.0001f, 0.5f}) == "tensor([1.0000e-04, 5.0000e-01])");
  CHECK(of({1000, 1}) == "tensor([1000.,    1.])");
  CHECK(of({1001, 1}) == "tensor([1.0010e+03, 1.0000e+00])");
  CHECK(of({1e8f, 1e8f}) == "tensor([100000000., 100000000.])");
  CHECK(of({2e8f, 2e8f}) == "tensor([2.0000e+08, 2.0000e+08])");
  CHECK(of({123456.789f, 200000.5f}) == "tensor([123456.7891, 200000.5000])");
  CHECK(of({kInf, 1.5f}) == "tensor([   inf, 1.5000])");
  CHECK(of({kNan, 1}) == "tensor([nan, 1.])");
  CHECK(of({kInf, -kInf}) == "tensor([inf, -inf])");
  CHECK(of({kNan, -1, 100}) == "tensor([ nan,  -1., 100.])");
  CHECK(of({0.03125f, 0.5f}) == "tensor([0.0312, 0.5000])");
  CHECK(Tensor::scalar(3.14159f).str() == "tensor(3.1416)");
  CHECK(Tensor::scalar(2.0f).str() == "tensor(2.)");
  CHECK(Tensor::scalar(std::int64_t{5}).str() == "tensor(5)");
  CHECK(Tensor::of<std::int64_t>({1, -20, 300}).str() == "tensor([  1, -20, 300])");
  CHECK(Tensor::of<bool>({true, false}).str() == "tensor([ True, False])");
  CHECK(Tensor::empty({0}).str() == "tensor([])");
  CHECK(Tensor::empty({0, 3}).str() == "tensor([], size=(0, 3))");
  CHECK(Tensor::empty({0}, DType::int64).str() == "tensor([], dtype=torch.int64)");
  CHECK(Tensor::of<double>({1.5}).str() == "tensor([1.5000], dtype=torch.float64)");
  CHECK(Tensor::arange(1001).str() == "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  CHECK(Tensor::arange(1001, DType::float32).str() ==
        "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])");
  CHECK(Tensor::arange(24, DType::float32).view({2, 3, 4}).str() ==
        "tensor([[[ 0.,  1.,  2.,  3.],\n"
        "         [ 4.,  5.,  6.,  7.],\n"
        "         [ 8.,  9., 10., 11.]],\n"
        "\n"
        "        [[12., 13., 14., 15.],\n"
        "         [16., 17., 18., 19.],\n"
        "         [20., 21., 22., 23.]]])");
}

TEST_CASE("core.print: every tensor of the golden file prints as in torch 1.13.1") {
  std::ifstream file(accrue::tests::golden_path("torch_print.txt"));
  REQUIRE(file);
  int num_cases = 0;
  std::string header, line;
  std::getline(file, header);
  while (file) {
    std::string expected, next;
    while (std::getline(file, line) && line.starts_with("| ")) {
      expected += (expected.empty() ? "" : "\n") + line.substr(2);
    }
    CAPTURE(header);
    CHECK(print_case(header) == expected);
    header = line;
    ++num_cases;
  }
  CHECK(num_cases >= 500);
  MESSAGE("printed tensors equal to torch: " << num_cases);
}

TEST_CASE("core.print: views print as their dense copies do") {
  const Tensor base = Tensor::arange(120, DType::float32).view({4, 5, 6});
  for (const Tensor& view : {base.permute({2, 0, 1}),
                             base.slice(1, 1, 5, 2),
                             base.select(2, 3),
                             base[1][2].slice(0, 1, 6, 3)}) {
    CHECK(view.str() == view.clone().str());
  }
  CHECK(Tensor::scalar(7.0f).expand({3}).str() == "tensor([7., 7., 7.])");
}

TEST_CASE("core.print: an expanded view of 2^40 elements prints its corners") {
  const Tensor huge = Tensor::of<float>({1, 2}).unsqueeze(1).expand({2, std::int64_t{1} << 40});
  CHECK(huge.str() ==
        "tensor([[1., 1., 1.,  ..., 1., 1., 1.],\n"
        "        [2., 2., 2.,  ..., 2., 2., 2.]])");
  CHECK(Tensor::empty({std::int64_t{1} << 40, 0}).str() == "tensor([], size=(1099511627776, 0))");
}

TEST_CASE("core.print: an undefined tensor is a StateError") {
  CHECK_THROWS_WITH_AS(Tensor().str(),
                       "[to_string] tensor must be defined, got a default-constructed or "
                       "moved-from one",
                       accrue::StateError);
}
