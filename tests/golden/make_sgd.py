"""Writes torch_sgd.txt: hashes of parameters after steps of torch.optim.SGD.

Run with the system Python of Debian 12 (python3-torch 1.13.1) on a CPU with AVX2:
    python3 make_sgd.py > torch_sgd.txt

Each line is one run, in order: seed, elements, steps, lr, momentum, dampening, weight decay,
nesterov, maximize, and the hash of the parameter by accrue::hash_bits. The parameter, then the
gradient of each step, are drawn by uniform_(-1, 1); every third step has no gradient.
"""
import random

import numpy as np
import torch


def hash_bits(tensor):
    state = 0xCBF29CE484222325
    for word in tensor.detach().numpy().view(np.uint32).tolist():
        state = ((state ^ word) * 0x9E3779B97F4A7C15) & (2**64 - 1)
        state ^= state >> 32
    return state


def run(seed, n, steps, options):
    generator = torch.Generator()
    generator.manual_seed(seed)
    draw = lambda: torch.empty(n).uniform_(-1, 1, generator=generator)
    parameter = torch.nn.Parameter(draw())
    optimizer = torch.optim.SGD([parameter], foreach=False, **options)
    for step in range(steps):
        parameter.grad = draw() if step % 3 != 2 else None
        optimizer.step()
    return hash_bits(parameter)


def main():
    random.seed(0)
    for _ in range(150):
        momentum = random.choice([0, 0.5, 0.9, random.random()])
        nesterov = momentum > 0 and random.random() < 0.4
        options = {
            "lr": random.choice([0.0, 0.1, 1e-3, random.random()]),
            "momentum": momentum,
            "dampening": 0 if nesterov else random.choice([0, 0, 0.5, random.random()]),
            "weight_decay": random.choice([0, 0.01, random.random()]),
            "nesterov": nesterov,
            "maximize": random.random() < 0.3,
        }
        seed, n, steps = random.randrange(2**32), random.choice([1, 7, 33, 1003]), 7
        digest = run(seed, n, steps, options)
        print(seed, n, steps, *(repr(float(value)) for value in options.values()), f"{digest:016x}")


main()
