// The operations of op_bench, as libtorch's C++ interface spells them.
#include "accrue/bench/op_peer.h"

#include <torch/torch.h>

#include <map>

// The BLAS below libtorch has its own threads where it is OpenBLAS.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int count);

namespace accrue::bench {
namespace {

namespace F = torch::nn::functional;
using Operands = std::vector<torch::Tensor>;

torch::Tensor attention(const Operands& v, bool causal) {
  const std::int64_t length = v[0].size(2);
  torch::Tensor scores = v[0].matmul(v[1].transpose(-2, -1)) / std::sqrt(v[0].size(3));
  if (causal) {
    const auto behind = torch::ones({length, length}, torch::kBool).triu(1);
    scores = scores.masked_fill(behind, -INFINITY);
  }
  return scores.softmax(-1).matmul(v[2]);
}

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight) {
  return x * (x.square().mean(-1, true) + 1e-5).rsqrt() * weight;
}

torch::Tensor gelu_tanh(const torch::Tensor& x) {
  return F::gelu(x, F::GELUFuncOptions().approximate("tanh"));
}

using Call = torch::Tensor (*)(const Operands&);

/// By the names of op_bench.cpp.
const std::map<std::string, Call> kOps = {
    {"relu", [](auto& v) { return v[0].relu(); }},
    {"leaky_relu", [](auto& v) { return torch::leaky_relu(v[0]); }},
    {"exp", [](auto& v) { return v[0].exp(); }},
    {"log", [](auto& v) { return v[0].log(); }},
    {"neg", [](auto& v) { return v[0].neg(); }},
    {"tanh", [](auto& v) { return v[0].tanh(); }},
    {"sigmoid", [](auto& v) { return v[0].sigmoid(); }},
    {"silu", [](auto& v) { return torch::silu(v[0]); }},
    {"gelu", [](auto& v) { return torch::gelu(v[0]); }},
    {"gelu_tanh", [](auto& v) { return gelu_tanh(v[0]); }},
    {"sqrt", [](auto& v) { return v[0].sqrt(); }},
    {"abs", [](auto& v) { return v[0].abs(); }},
    {"clamp", [](auto& v) { return v[0].clamp(-1, 1); }},
    {"pow 3", [](auto& v) { return v[0].pow(3); }},
    {"pow 1.7", [](auto& v) { return v[0].pow(1.7); }},
    {"add", [](auto& v) { return v[0] + v[1]; }},
    {"add row", [](auto& v) { return v[0] + v[1]; }},
    {"add number", [](auto& v) { return v[0] + 0.5; }},
    {"sub", [](auto& v) { return v[0] - v[1]; }},
    {"mul", [](auto& v) { return v[0] * v[1]; }},
    {"mul row", [](auto& v) { return v[0] * v[1]; }},
    {"mul column", [](auto& v) { return v[0] * v[1]; }},
    {"mul number", [](auto& v) { return v[0] * 0.5; }},
    {"div", [](auto& v) { return v[0] / v[1]; }},
    {"maximum", [](auto& v) { return torch::maximum(v[0], v[1]); }},
    {"minimum", [](auto& v) { return torch::minimum(v[0], v[1]); }},
    {"eq", [](auto& v) { return v[0].eq(v[1]); }},
    {"lt number", [](auto& v) { return v[0].lt(0.5); }},
    {"where", [](auto& v) { return torch::where(v[0], v[1], v[2]); }},
    {"dropout", [](auto& v) { return torch::dropout(v[0], 0.1, true); }},
    {"embedding", [](auto& v) { return torch::embedding(v[0], v[1]); }},
    {"max dim 0", [](auto& v) { return std::get<0>(v[0].max(0)); }},
    {"max dim 1", [](auto& v) { return std::get<0>(v[0].max(1)); }},
    {"min dim 1", [](auto& v) { return std::get<0>(v[0].min(1)); }},
    {"argmax dim 0", [](auto& v) { return v[0].argmax(0); }},
    {"argmin dim 1", [](auto& v) { return v[0].argmin(1); }},
    {"index_select dim 0", [](auto& v) { return v[0].index_select(0, v[1]); }},
    {"index_select dim 1", [](auto& v) { return v[0].index_select(1, v[1]); }},
    {"gather dim 0", [](auto& v) { return v[0].gather(0, v[1]); }},
    {"gather dim 1", [](auto& v) { return v[0].gather(1, v[1]); }},
    {"layer_norm",
     [](auto& v) { return torch::layer_norm(v[0], {v[0].size(-1)}, v[1], v[2], 1e-5); }},
    {"rms_norm", [](auto& v) { return rms_norm(v[0], v[1]); }},
    {"linear", [](auto& v) { return torch::linear(v[0], v[1], v[2]); }},
    {"matmul", [](auto& v) { return v[0].matmul(v[1]); }},
    {"matmul batched", [](auto& v) { return v[0].matmul(v[1]); }},
    {"conv2d", [](auto& v) { return torch::conv2d(v[0], v[1], v[2], 1, 1); }},
    {"max_pool2d", [](auto& v) { return torch::max_pool2d(v[0], 2); }},
    {"avg_pool2d", [](auto& v) { return torch::avg_pool2d(v[0], 2); }},
    {"attention", [](auto& v) { return attention(v, false); }},
    {"attention causal", [](auto& v) { return attention(v, true); }},
    {"sum", [](auto& v) { return v[0].sum(); }},
    {"sum dim 0", [](auto& v) { return v[0].sum(0); }},
    {"sum dim 1", [](auto& v) { return v[0].sum(1); }},
    {"mean", [](auto& v) { return v[0].mean(); }},
    {"mean dim 1", [](auto& v) { return v[0].mean(1); }},
    {"norm", [](auto& v) { return v[0].norm(); }},
    {"norm dim 0", [](auto& v) { return v[0].norm(2, 0); }},
    {"norm dim 1", [](auto& v) { return v[0].norm(2, 1); }},
    {"softmax dim 0", [](auto& v) { return v[0].softmax(0); }},
    {"softmax dim 1", [](auto& v) { return v[0].softmax(1); }},
    {"log_softmax", [](auto& v) { return v[0].log_softmax(1); }},
    {"cross_entropy", [](auto& v) { return torch::cross_entropy_loss(v[0], v[1]); }},
    {"linear_cross_entropy",
     [](auto& v) { return torch::cross_entropy_loss(torch::linear(v[0], v[1]), v[2]); }},
    {"mse", [](auto& v) { return torch::mse_loss(v[0], v[1]); }},
    {"cat dim 0",
     [](auto& v) {
       return torch::cat({v[0], v[1]}, 0);
     }},
    {"cat dim 1",
     [](auto& v) {
       return torch::cat({v[0], v[1]}, 1);
     }},
    {"reshape",
     [](auto& v) {
       return v[0].reshape({-1, 16});
     }},
    {"flatten a transpose", [](auto& v) { return v[0].transpose(0, 1).flatten(); }},
    {"flatten a permutation",
     [](auto& v) {
       return v[0].permute({0, 2, 1, 3}).flatten();
     }},
    {"flatten an expansion",
     [](auto& v) {
       return v[0].expand({32, -1, -1}).flatten();
     }},
    {"flatten a narrow", [](auto& v) { return v[0].narrow(1, 8, 16).flatten(); }},
    {"flatten a slice", [](auto& v) { return v[0].slice(1, 0, 1 << 20, 2).flatten(); }},
    {"flatten a select", [](auto& v) { return v[0].select(1, 3).flatten(); }},
};

torch::Dtype dtype_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::boolean) return torch::kBool;
  return tensor.dtype() == DType::int64 ? torch::kInt64 : torch::kFloat32;
}

torch::Tensor to_torch(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const void* data = nullptr;
  if (dense.dtype() == DType::boolean) data = dense.data<bool>();
  if (dense.dtype() == DType::int64) data = dense.data<std::int64_t>();
  if (dense.dtype() == DType::float32) data = dense.data<float>();
  const torch::IntArrayRef sizes(tensor.shape().begin(), static_cast<std::size_t>(tensor.rank()));
  return torch::from_blob(const_cast<void*>(data), sizes, dtype_of(tensor)).clone();
}

Tensor from_torch(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().to(torch::kFloat32).contiguous();
  const Shape shape(std::span(dense.sizes().data(), dense.sizes().size()));
  const float* const first = dense.data_ptr<float>();
  return Tensor::from(std::vector<float>(first, first + dense.numel()), shape);
}

}  // namespace

std::string start_op_peer(int num_threads) {
  at::set_num_threads(num_threads);
  if (openblas_set_num_threads) openblas_set_num_threads(num_threads);
  return TORCH_VERSION;
}

OpRun peer_op(const std::string& name,
              const std::vector<Tensor>& operands,
              const Tensor& gradient) {
  const auto op = kOps.at(name);
  Operands plain, inputs, wanted;
  for (const Tensor& operand : operands) {
    plain.push_back(to_torch(operand));
    inputs.push_back(plain.back().clone());
    if (!gradient.defined() || operand.dtype() != DType::float32) continue;
    wanted.push_back(inputs.back().set_requires_grad(true));
  }
  const Operands dy = {gradient.defined() ? to_torch(gradient) : torch::Tensor()};
  const auto call = [=] {
    Operands results = {op(inputs)};
    if (wanted.empty()) return results;
    for (torch::Tensor& dx : torch::autograd::grad(results, wanted, dy)) results.push_back(dx);
    return results;
  };
  const auto results = [=] {
    torch::manual_seed(1);
    std::vector<Tensor> tensors;
    for (const torch::Tensor& result : call()) tensors.push_back(from_torch(result));
    return tensors;
  };
  return {[=] { op(plain); }, [=] { call(); }, results};
}

}  // namespace accrue::bench
