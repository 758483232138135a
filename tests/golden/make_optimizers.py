"""Writes torch_optimizers.txt: hashes of parameters after steps of torch's optimizers.

Run with the system Python of Debian 12 (python3-torch 1.13.1) on a CPU with AVX2:
    python3 make_optimizers.py > torch_optimizers.txt

Each line is one run: optimizer, seed, elements, steps, its options in the order of OPTIONS, and the
hash of the parameter by accrue::hash_bits. The parameter, then the gradient of each step, are drawn
by uniform_(-1, 1); every third step has no gradient. lerp = 1 averages gradients with lerp_, as
torch does since 2.0, in place of two operations of 1.13.
"""
import math
import random

import numpy as np
import torch

OPTIONS = {
    "adam": ["lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", "maximize", "lerp"],
    "adagrad": ["lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps", "maximize"],
    "rmsprop": ["lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize"],
}
OPTIONS["adamw"] = OPTIONS["adam"]
CHOICES = {
    "lr": [0.0, 0.1, 1e-3, None],
    "beta1": [0.9, 0.9, 0.0, 0.5, None],
    "beta2": [0.999, 0.99, 0.0, None],
    "alpha": [0.99, 0.9, None],
    "eps": [1e-8, 1e-6, 0.01],
    "weight_decay": [0.0, 0.01, None],
    "lr_decay": [0.0, 0.1, None],
    "initial_accumulator_value": [0.0, 0.1, None],
    "momentum": [0.0, 0.9, None],
    "amsgrad": [False, True],
    "maximize": [False, False, True],
    "centered": [False, True],
    "lerp": [False, True],
}


def hash_bits(tensor):
    state = 0xCBF29CE484222325
    for word in tensor.detach().numpy().view(np.uint32).tolist():
        state = ((state ^ word) * 0x9E3779B97F4A7C15) & (2**64 - 1)
        state ^= state >> 32
    return state


class LerpAdam:
    """The single-tensor Adam and AdamW of torch 2, made of the operations of 1.13."""

    def __init__(self, parameter, decoupled, lr, betas, eps, weight_decay, amsgrad, maximize):
        self.p, self.decoupled, self.lr, self.betas = parameter, decoupled, lr, betas
        self.eps, self.weight_decay, self.maximize = eps, weight_decay, maximize
        self.m, self.v = torch.zeros_like(parameter), torch.zeros_like(parameter)
        self.v_max = torch.zeros_like(parameter) if amsgrad else None
        self.steps = 0

    @torch.no_grad()
    def step(self):
        if self.p.grad is None:
            return
        self.steps += 1
        beta1, beta2 = self.betas
        grad = -self.p.grad if self.maximize else self.p.grad
        if self.weight_decay != 0:
            if self.decoupled:
                self.p.mul_(1 - self.lr * self.weight_decay)
            else:
                grad = grad.add(self.p, alpha=self.weight_decay)
        self.m.lerp_(grad, 1 - beta1)
        self.v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step_size = self.lr / (1 - beta1**self.steps)
        root = math.sqrt(1 - beta2**self.steps)
        squares = self.v
        if self.v_max is not None:
            squares = torch.maximum(self.v_max, self.v, out=self.v_max)
        self.p.addcdiv_(self.m, (squares.sqrt() / root).add_(self.eps), value=-step_size)


def make(name, parameter, options):
    options = dict(options)
    if name == "adagrad":
        return torch.optim.Adagrad([parameter], foreach=False, **options)
    if name == "rmsprop":
        return torch.optim.RMSprop([parameter], foreach=False, **options)
    options["betas"] = options.pop("beta1"), options.pop("beta2")
    if options.pop("lerp"):
        return LerpAdam(parameter, name == "adamw", **options)
    adam = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return adam([parameter], foreach=False, **options)


def run(name, seed, n, steps, options):
    generator = torch.Generator()
    generator.manual_seed(seed)
    draw = lambda: torch.empty(n).uniform_(-1, 1, generator=generator)
    parameter = torch.nn.Parameter(draw())
    optimizer = make(name, parameter, options)
    for step in range(steps):
        parameter.grad = draw() if step % 3 != 2 else None
        optimizer.step()
    return hash_bits(parameter)


def choose(option):
    value = random.choice(CHOICES[option])
    return random.random() if value is None else value


def main():
    random.seed(0)
    for name in ["adam", "adamw", "adagrad", "rmsprop"]:
        for _ in range(150):
            options = {option: choose(option) for option in OPTIONS[name]}
            seed, n, steps = random.randrange(2**32), random.choice([1, 7, 33, 1003]), 7
            digest = run(name, seed, n, steps, options)
            values = (repr(float(value)) for value in options.values())
            print(name, seed, n, steps, *values, f"{digest:016x}")


main()
