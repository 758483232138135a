// Reading, printing, collating and loading tensors of a device.
#include "accrue/accrue.h"
#include "accrue/tests/support/doctest.h"

#include <vector>

using namespace accrue;

namespace {

const Device kGpu = Device::cuda(0);

Tensor table() { return Tensor::of<float>({{1, 2, 3}, {4, 5, 6}}).to(kGpu); }

}  // namespace

TEST_CASE("device.values: elements are read in any layout, by item, to_vector and print") {
  const Tensor x = table();
  CHECK(x.transpose(0, 1).to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(x.slice(1, 0, 3, 2).to_vector<float>() == std::vector<float>{1, 3, 4, 6});
  CHECK(x[1].narrow(0, 0, 1).expand({3}).to_vector<float>() == std::vector<float>{4, 4, 4});
  CHECK(x[1][2].item<float>() == 6);
  CHECK(x.narrow(0, 0, 0).to_vector<float>().empty());
  CHECK(x.transpose(0, 1).str() ==
        "tensor([[1., 4.],\n        [2., 5.],\n        [3., 6.]], device='cuda:0')");
  CHECK(x.to(DType::int64)[0].str() == "tensor([1, 2, 3], device='cuda:0')");
  CHECK(Tensor::zeros({0}, DType::float32, kGpu).str() == "tensor([], device='cuda:0')");
  CHECK(Variable::leaf(x[0]).str() == "tensor([1., 2., 3.], device='cuda:0', requires_grad=True)");
}

TEST_CASE("device.values: samples on a device are collated there") {
  const Tensor x = table();
  const auto at = [&](std::int64_t index, std::int64_t length) {
    return data::Sample{{x[index].narrow(0, 0, length)}, index};
  };
  const Tensor stacked = data::default_collate(std::vector{at(0, 3), at(1, 3)})[0];
  CHECK(stacked.device() == kGpu);
  CHECK(equal_bits(stacked, x));
  const Tensor padded = data::PadCollate{{-1}}(std::vector{at(0, 3), at(1, 1)})[0];
  CHECK(padded.device() == kGpu);
  CHECK(equal_bits(padded, Tensor::of<float>({{1, 2, 3}, {4, -1, -1}})));
}

TEST_CASE("device.values: a loader over a data set on a device gives its batches there") {
  data::DataLoader loader(data::TensorDataset({table()}), {.batch_size = 2, .shuffle = true});
  for (const auto& batch : loader) CHECK(batch.inputs.device() == kGpu);
}

TEST_CASE("device.values: an optimizer's state goes on from a device to the CPU and back") {
  const auto weights = [](bool moves) {
    Variable p = Variable::leaf(Tensor::of<float>({1, -2, 3}));
    optim::OptimizerState state;
    for (int step = 0; step < 4; ++step) {
      if (moves) p.mutable_value().move_to(step % 2 == 0 ? kGpu : Device::cpu());
      optim::AdamW adam({p}, {.lr = 0.1});
      if (step > 0) adam.load_state(state);
      p.set_grad(Tensor::of<float>({1, 2, 4}).to(p.device()));
      adam.step();
      state = adam.state();
    }
    return p.value().to(Device::cpu());
  };
  CHECK(equal_bits(weights(true), weights(false)));
}
