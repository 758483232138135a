// Operations on a device: the CPU's bits, and operands that must be in one place.
#include "accrue/accrue.h"
#include "accrue/tests/support/doctest.h"

#include <string>
#include <vector>

using namespace accrue;

namespace {

const Device kGpu = Device::cuda(0);

Tensor numbers(const Shape& shape) {
  return Tensor::arange(product(shape, 0, shape.rank()), DType::float32).view(shape);
}

}  // namespace

TEST_CASE("device.operations: operands on two devices are refused by name") {
  const Variable near(numbers({2, 2})), far(numbers({2, 2}).to(kGpu));
  constexpr const char* kMessage =
      "] operands must be on one device, got cpu and cuda:0; move one with to()";
  CHECK_THROWS_WITH_AS(near + far, ("[add" + std::string(kMessage)).c_str(), DeviceError);
  CHECK_THROWS_WITH_AS(
      linear(near, far, {}), ("[linear" + std::string(kMessage)).c_str(), DeviceError);
  CHECK_THROWS_AS(matmul(far, near), DeviceError);
  CHECK_THROWS_AS(mse_rows(far, near), DeviceError);
}

TEST_CASE("device.operations: a linear layer and its loss give the CPU's bits") {
  const auto gradients = [](Device device) {
    Variable w = Variable::leaf(numbers({3, 4}).to(device));
    const Variable x(numbers({2, 4}).to(device)), y(numbers({2, 3}).to(device));
    const Variable rows = mse_rows(linear(x, w, {}), y);
    rows.backward(Tensor::of<float>({0.1F, 0.7F}).to(device));
    return cat(std::vector<Tensor>{rows.value(), w.grad().flatten()});
  };
  const Tensor far = gradients(kGpu);
  CHECK(far.device() == kGpu);
  CHECK(equal_bits(far, gradients(Device::cpu())));
}
