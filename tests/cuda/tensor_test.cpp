// Tensors on a device: copies to and fro, what reads them, what refuses them.
#include "accrue/core/tensor.h"

#include "accrue/core/device_backend.h"
#include "accrue/kernels/embedding.h"
#include "accrue/kernels/index.h"
#include "accrue/kernels/launch.h"
#include "accrue/kernels/linear.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"

#include <vector>

using namespace accrue;

namespace {

const Device kGpu = Device::cuda(0);

Tensor numbers(const Shape& shape, DType dtype = DType::float32) {
  return Tensor::arange(product(shape, 0, shape.rank()), DType::int64).view(shape).to(dtype);
}

}  // namespace

TEST_CASE("cuda.tensor: values of every dtype come back from a device") {
  CHECK(cuda_device_count() >= 1);
  CHECK(why_no_cuda().empty());
  for (const DType dtype : {DType::float32,
                            DType::float64,
                            DType::int64,
                            DType::int32,
                            DType::uint8,
                            DType::boolean,
                            DType::bfloat16,
                            DType::float16}) {
    CAPTURE(dtype);
    const Tensor near = numbers({3, 5}, dtype), far = near.to(kGpu);
    CHECK(far.device() == kGpu);
    CHECK(far.shape() == near.shape());
    CHECK(equal_bits(far.to(Device::cpu()), near));
    CHECK(equal_bits(far, near));
    CHECK(equal_bits(far.clone(), near));
    CHECK(far.to(kGpu).shares_storage(far));
  }
}

TEST_CASE("cuda.tensor: elements are read through a copy") {
  const Tensor far = Tensor::of<float>({1, 2.5F}).to(kGpu);
  CHECK(far[1].item<float>() == 2.5F);
  CHECK(far.to_vector<float>() == std::vector<float>{1, 2.5F});
  CHECK(far.str() == "tensor([1.0000, 2.5000], device='cuda:0')");
  CHECK(far.to(Device::cuda(1)).str() == "tensor([1.0000, 2.5000], device='cuda:1')");
  CHECK(Tensor::empty({0, 3}, DType::float64, kGpu).str() ==
        "tensor([], device='cuda:0', size=(0, 3), dtype=torch.float64)");
  CHECK(!equal_bits(far, Tensor::of<float>({1, 3})));
}

TEST_CASE("cuda.tensor: the sample axis travels along") {
  const Tensor near = numbers({4, 2}).with_sample_axis({0, 2});
  CHECK(near.to(kGpu).sample_axis() == near.sample_axis());
}

TEST_CASE("cuda.tensor: views of any layout move between devices") {
  const Tensor base = numbers({4, 6});
  const Tensor far = base.to(kGpu);
  CHECK(equal_bits(far.transpose(0, 1).to(Device::cpu()), base.transpose(0, 1)));
  CHECK(equal_bits(base.transpose(0, 1).to(kGpu), base.transpose(0, 1)));
  CHECK(equal_bits(far.slice(1, 0, 6, 2).to(Device::cuda(1)), base.slice(1, 0, 6, 2)));
  Tensor target = Tensor::zeros({6, 4}, DType::float32, kGpu);
  target.transpose(0, 1).copy_from(base);
  CHECK(equal_bits(target, base.transpose(0, 1)));
  Tensor near = Tensor::zeros({6, 4});
  near.transpose(0, 1).copy_from(far);
  CHECK(equal_bits(near, base.transpose(0, 1)));
  const Tensor joined = cat(std::vector<Tensor>{far, far}, 1);
  CHECK(equal_bits(joined.narrow(1, 6, 6), base));
}

TEST_CASE("cuda.tensor: zeros, fills and conversions run where the tensor is") {
  CHECK(equal_bits(Tensor::zeros({3}, DType::int64, kGpu), Tensor::zeros({3}, DType::int64)));
  Tensor far = Tensor::full({2, 3}, 1.5, DType::float64, kGpu);
  CHECK(equal_bits(far.to(DType::float32), Tensor::full({2, 3}, 1.5)));
  far.transpose(0, 1)[1].fill(7);
  CHECK(far.to_vector<double>() == std::vector<double>{1.5, 7, 1.5, 1.5, 7, 1.5});
  CHECK_THROWS_AS(Tensor::full({}, 300, DType::uint8, kGpu), ValueError);
}

TEST_CASE("cuda.tensor: all who share a storage move with it") {
  Tensor tensor = numbers({2, 3});
  const Tensor column = tensor.transpose(0, 1)[1];
  const auto before = tensor.version();
  tensor.move_to(kGpu);
  CHECK(column.device() == kGpu);
  CHECK(column.to_vector<float>() == std::vector<float>{1, 4});
  CHECK(tensor.version() == before + 1);
  tensor.move_to(Device::cuda(1));
  tensor.move_to(Device::cpu());
  CHECK(column.data<float>()[3] == 4);
}

TEST_CASE("cuda.tensor: absent devices are refused by name") {
  CHECK_THROWS_WITH_AS(
      Tensor::zeros({1}, DType::float32, Device::cuda(7)),
      "[allocate] devices are cuda:0 to cuda:3, got cuda:7; use one of them, or let "
      "CUDA_VISIBLE_DEVICES show more",
      DeviceError);
}

TEST_CASE("cuda.tensor: what has no kernel says so and how to go on") {
  Tensor far = Tensor::empty({1, 1}, DType::float64, kGpu);
  const kernels::Matrix<double> m = kernels::row_major(far.mutable_data<double>(), 1, 1);
  CHECK_THROWS_WITH_AS(
      kernels::launch(kGpu, kernels::LinearForward<double>{m, m, nullptr, m}),
      "[linear] runs only on the CPU for these arguments, got tensors on cuda:0; move them with "
      "to(Device::cpu())",
      DeviceError);
}

TEST_CASE("cuda.tensor: an index out of range is thrown where the host next reads, once") {
  const Tensor table = numbers({3, 2}).to(kGpu);
  const Tensor indices = Tensor::of<std::int64_t>({0, 3}).to(kGpu);
  Tensor rows = Tensor::empty({2, 2}, DType::float32, kGpu);
  const auto look_up = [&] {
    kernels::launch(
        kGpu,
        kernels::EmbeddingForward<float>{kernels::row_major(table.data<float>(), 3, 2),
                                         indices.data<std::int64_t>(),
                                         kernels::row_major(rows.mutable_data<float>(), 2, 2)});
  };
  look_up();
  const std::string said =
      "[embedding] indices must be rows of the table, got another on CUDA; results since are not "
      "valid. The same call on the CPU names the place";
  CHECK_THROWS_WITH_AS(rows.to_vector<float>(), said.c_str(), IndexError);
  CHECK_NOTHROW(synchronize(kGpu));
  look_up();
  CHECK_THROWS_AS(synchronize(kGpu), IndexError);
  Tensor picked = Tensor::empty({2}, DType::float32, kGpu);
  const Tensor positions = Tensor::of<std::int64_t>({0, 9}).to(kGpu);
  const Tensor x = numbers({3}).to(kGpu);
  kernels::launch(kGpu, kernels::Gather{"gather", x, 0, positions, picked});
  CHECK(test::message<IndexError>([] {
          synchronize(kGpu);
        }).starts_with("[gather] indices, also of"));
}
