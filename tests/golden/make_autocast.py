"""Writes torch_autocast.txt: products and their gradients under torch.autocast, and the scales of
torch's GradScaler.

Run with the system Python of Debian 12 (python3-torch 1.13.1):
    python3 make_autocast.py > torch_autocast.txt

`linear <rows> <in> <out>` or `matmul <M> <K> <N>`, then one line each: operands, the gradient of
the result, the result, the gradients of the operands. Operands round to whole numbers so small that
no sum rounds, since torch's CPU adds in bfloat16 where it has no unit for it. `scaler <init> <growth> <backoff>
<interval>`, then a line of steps, `1` where the gradient overflows, and one of scales after each.
"""
import importlib.util
import os
import random

import torch
import torch.cuda.amp.grad_scaler

# torch's only GradScaler that runs on a CPU, loaded alone: its package does not import here.
path = os.path.join(os.path.dirname(torch.__file__), "distributed/fsdp/sharded_grad_scaler.py")
spec = importlib.util.spec_from_file_location("sharded_grad_scaler", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
# Without a GPU the class would switch itself off.
torch.cuda.amp.grad_scaler.amp_definitely_not_available = lambda: False


class Scaler(module.ShardedGradScaler):
    """Without the exchange between ranks, which needs a GPU."""

    def unscale_(self, optimizer):
        state = self._per_optimizer_states[id(optimizer)]
        inverse = self._scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, torch.zeros(1), True)
        state["stage"] = torch.cuda.amp.grad_scaler.OptState.UNSCALED


def draw(*shape):
    whole = [random.randrange(-3, 4) for _ in range(torch.Size(shape).numel())]
    values = [k + random.choice([-1, 0, 1]) / 1024 if k else 0.0 for k in whole]
    return torch.tensor(values).view(*shape)


def show(*tensors):
    for tensor in tensors:
        print(*(repr(value) for value in tensor.detach().float().flatten().tolist()))


def product(name, function, operands, sizes):
    for operand in operands:
        operand.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = function(*operands)
    assert result.dtype == torch.bfloat16
    gradient = draw(*result.shape)
    result.float().backward(gradient)
    print(name, *sizes)
    show(*operands, gradient, result, *(operand.grad for operand in operands))


def scales(init, growth, backoff, interval):
    scaler = Scaler(init_scale=init, growth_factor=growth, backoff_factor=backoff, growth_interval=interval)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1)
    overflows = [int(random.random() < 0.15) for _ in range(60)]
    line = []
    for overflow in overflows:
        optimizer.zero_grad()
        scaler.scale(parameter.sum()).backward()
        if overflow:
            parameter.grad.fill_(float("inf"))
        before = parameter.item()
        scaler.step(optimizer)
        scaler.update()
        assert parameter.item() == before - (1 - overflow)
        line.append(repr(scaler.get_scale()))
    print("scaler", init, growth, backoff, interval)
    print(*overflows)
    print(*line)


random.seed(0)
for rows, inputs, outputs in ((1, 1, 1), (4, 6, 3), (7, 16, 5)):
    operands = [draw(rows, inputs), draw(outputs, inputs), draw(outputs)]
    product("linear", torch.nn.functional.linear, operands, (rows, inputs, outputs))
    operands = [draw(rows, inputs), draw(inputs, outputs)]
    product("matmul", torch.matmul, operands, (rows, inputs, outputs))
for options in ((65536, 2, 0.5, 2000), (65536, 2, 0.5, 4), (1000, 4, 0.25, 3), (4096, 2, 0.5, 1)):
    scales(*options)
