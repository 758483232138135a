// Training on a device: the CPU's bits for every split of the batch, and modules that move.
#include "accrue/accrue.h"
#include "accrue/core/bits.h"
#include "accrue/core/device_backend.h"
#include "accrue/dist/threads.h"
#include "accrue/kernels/cuda/allocator.h"
#include "accrue/kernels/simt/streams.h"
#include "accrue/tests/dist/messages.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <utility>
#include <vector>

using namespace accrue;
using test::message;

namespace {

const Device kGpu = Device::cuda(0);

/// Two layers, classes of which some rows are ignored.
struct Net : nn::Module {
  nn::Linear fc1{5, 7}, fc2{7, 3};
  Net() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Variable operator()(const Variable& x) { return fc2(relu(fc1(x))); }
};

data::TensorDataset samples(std::int64_t count) {
  Tensor x = Tensor::empty({count, 5}), y = Tensor::empty({count}, DType::int64);
  Generator generator(3);
  generator.normal(std::span(x.mutable_data<float>(), static_cast<std::size_t>(x.numel())));
  for (std::int64_t i = 0; i < count; ++i)
    y.mutable_data<std::int64_t>()[i] = i % 4 == 3 ? -100 : i % 3;
  return data::TensorDataset({x, y});
}

struct Split {
  std::int64_t steps, batch_size;
};

/// Hash of losses, norms and weights after each step of one epoch.
template <class Optimizer, class Options>
std::uint64_t train_on(Device device, const Split& split, const Options& options) {
  manual_seed(0);
  Net net;
  Optimizer sgd(net.named_parameters(), options);
  data::DataLoader batches(samples(22), {.batch_size = split.batch_size, .shuffle = true});
  train::Accelerator accelerator({.gradient_accumulation_steps = split.steps, .device = device});
  CHECK(accelerator.device() == device);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, batches);
  std::uint64_t hash = kHashSeed;
  const auto add = [&](const auto& values) { hash = hash_bits(std::span(values), hash); };
  for (const auto& batch : loader) {
    CHECK(batch.inputs.device() == device);
    auto scope = accelerator.accumulate(model);
    accelerator.backward(nn::cross_entropy(model(batch.inputs), batch.labels));
    const double norm = accelerator.clip_grad_norm(model.parameters(), 0.5);
    optimizer.step();
    if (accelerator.sync_gradients()) {
      add(std::vector<double>{accelerator.window_loss(), norm});
      for (const Variable& parameter : model.parameters()) {
        CHECK(parameter.device() == device);
        add(parameter.value().template to_vector<float>());
      }
    }
    optimizer.zero_grad();
  }
  return hash;
}

template <class Optimizer, class Options>
void check_optimizer(const Options& options) {
  CHECK(train_on<Optimizer>(kGpu, {2, 4}, options) ==
        train_on<Optimizer>(Device::cpu(), {1, 8}, options));
}

}  // namespace

TEST_CASE("device.training: every optimizer gives the CPU's bits on a device") {
  check_optimizer<optim::SGD>(optim::SgdOptions{.lr = 0.1, .weight_decay = 0.01});
  check_optimizer<optim::Adam>(optim::AdamOptions{.lr = 0.01, .weight_decay = 0.01});
  check_optimizer<optim::Adagrad>(optim::AdagradOptions{.lr = 0.05, .lr_decay = 0.1});
  check_optimizer<optim::RMSprop>(
      optim::RmspropOptions{.lr = 0.01, .momentum = 0.9, .centered = true});
}

TEST_CASE("device.training: every split of a batch gives the CPU's bits on a device") {
  const auto check = [](auto train) {
    const std::uint64_t expected = train(Device::cpu(), Split{1, 8});
    for (const Split split : {Split{1, 8}, Split{2, 4}, Split{8, 1}}) {
      CAPTURE(split.batch_size);
      CHECK(train(kGpu, split) == expected);
    }
  };
  check([](Device device, const Split& split) {
    return train_on<optim::SGD>(device, split, optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
  });
  check([](Device device, const Split& split) {
    return train_on<optim::AdamW>(device, split, optim::AdamWOptions{.lr = 0.01});
  });
}

TEST_CASE("device.training: the order of threads, blocks and streams changes no bit") {
  const optim::SgdOptions options{.lr = 0.1, .momentum = 0.9};
  const std::uint64_t expected = train_on<optim::SGD>(Device::cpu(), {2, 4}, options);
  for (const auto& [name, schedule] : test::all_schedules()) {
    CAPTURE(name);
    const simt::OptionsScope scope(schedule);
    simt::set_stream_options({simt::StreamOrder::random, schedule.seed});
    CHECK(train_on<optim::SGD>(kGpu, {2, 4}, options) == expected);
  }
  simt::set_stream_options({});
}

TEST_CASE("device.training: a module moves with its gradients and its optimizer") {
  const auto weights = [](bool moves) {
    manual_seed(1);
    nn::Linear layer(3, 2);
    optim::SGD sgd(layer.named_parameters(), {.lr = 0.5, .momentum = 0.9});
    const Variable x(Tensor::of<float>({{1, 2, 3}}));
    for (int step = 0; step < 3; ++step) {
      const Device device = moves && step == 1 ? kGpu : Device::cpu();
      layer.to(device);
      mse_rows(layer(Variable(x.value().to(device))), Variable(Tensor::zeros({1, 2}).to(device)))
          .backward(Tensor::ones({1}).to(device));
      if (step == 0 && moves) layer.to(kGpu);
      sgd.step();
      sgd.zero_grad();
    }
    layer.to(Device::cpu());
    return layer.weight().value();
  };
  CHECK(equal_bits(weights(true), weights(false)));
}

TEST_CASE("device.training: a module that does not fit on a device stays where it was") {
  manual_seed(1);
  nn::Linear layer(300, 200);
  const Tensor before = layer.weight().value().clone();
  layer.weight().set_grad(Tensor::ones({200, 300}));
  Tensor::ones({1}).to(kGpu);  // what a device itself needs
  kernels::cuda::empty_cache(kGpu.index);
  simt::set_device_size(simt::device_memory_in_use() + 300 * 200 * sizeof(float) + 4);
  CHECK_THROWS_AS(layer.to(kGpu), OutOfMemoryError);
  simt::set_device_size(std::size_t{1} << 40);
  for (const Variable& parameter : layer.parameters()) CHECK(parameter.device().is_cpu());
  CHECK(layer.weight().grad().device().is_cpu());
  CHECK(equal_bits(layer.weight().value(), before));
  layer.to(kGpu);
  CHECK(equal_bits(layer.weight().value().to(Device::cpu()), before));
}

TEST_CASE("device.training: a state dict loads into a module on a device") {
  manual_seed(2);
  Net near, far;
  far.to(kGpu);
  far.load_state_dict(near.state_dict());
  CHECK(far.fc1.weight().device() == kGpu);
  CHECK(equal_bits(far.fc1.weight().value(), near.fc1.weight().value()));
  near.load_state_dict(far.state_dict());
}

TEST_CASE("device.training: absent devices are refused at once, ranks take devices in turn") {
  CHECK_THROWS_WITH_AS(train::Accelerator({.device = Device::cuda(99)}),
                       doctest::Contains("[accelerator] devices are cuda:0 to cuda:"),
                       DeviceError);
  dist::run_ranks(2, [](dist::ProcessGroup& group) {
    for (const int index : {0, group.rank()}) {  // what all ranks pass, or a rank's own
      const train::Accelerator accelerator(
          {.device = Device::cuda(index), .process_group = &group});
      CHECK(accelerator.device() == Device::cuda(group.rank()));
    }
    const train::Accelerator other({.device = Device::cuda(2), .process_group = &group});
    CHECK(other.device() == Device::cuda(2));
  });
}

TEST_CASE("device.training: gradients from another device are refused, values that moved too") {
  Variable w = Variable::leaf(Tensor::of<float>({1, 2}).to(kGpu));
  const Tensor near = Tensor::ones({2});
  const std::string said = "operands must be on one device, got cuda:0 and cpu";
  CHECK(message<DeviceError>([&] { relu(w).backward(near); }).find(said) != std::string::npos);
  CHECK(message<DeviceError>([&] { w.set_grad(near); }).find(said) != std::string::npos);

  nn::Linear layer(2, 1);
  const Variable y = layer(Variable(Tensor::ones({1, 2})));
  layer.to(kGpu);
  CHECK_THROWS_AS(y.backward(), StateError);
}

TEST_CASE("device.training: Evaluation on several ranks has the bits of the CPU") {
  const auto mean = [](dist::ProcessGroup& group, Device device) {
    train::Accelerator accelerator(
        {.global_batch_size = 8, .device = device, .process_group = &group});
    data::DataLoader batches(samples(22), {.batch_size = 2});
    auto loader = accelerator.prepare(batches);
    manual_seed(0);
    Net net;
    net.to(accelerator.device());
    train::Evaluation loss(accelerator);
    const NoGrad no_grad;
    for (const auto& batch : loader) loss.add(nn::cross_entropy(net(batch.inputs), batch.labels));
    return loss.mean();
  };
  dist::run_ranks(2, [&](dist::ProcessGroup& group) {
    const double near = mean(group, Device::cpu());
    CHECK(bits_of(mean(group, kGpu)) == bits_of(near));
  });
}
