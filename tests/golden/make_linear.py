"""Writes torch_linear.txt: hashes of the initial parameters of torch's linear layers.

Run with the system Python of Debian 12 (python3-torch 1.13.1) on a CPU with AVX2:
    python3 make_linear.py > torch_linear.txt

Each line is one layer, in order: seed (- continues the stream), inputs, outputs, whether it has a
bias, and the hash of the weight followed by the bias, by accrue::hash_bits.
"""
import random
import warnings

import numpy as np
import torch


def hash_bits(tensors):
    state = 0xCBF29CE484222325
    for tensor in tensors:
        for word in tensor.detach().numpy().view(np.uint32).ravel().tolist():
            state = ((state ^ word) * 0x9E3779B97F4A7C15) & (2**64 - 1)
            state ^= state >> 32
    return state


def main():
    random.seed(0)
    warnings.simplefilter("ignore")  # about layers without elements
    sizes = [0, 1, 2, 3, 5, 7, 8, 10, 31, 64, 100, 333]
    for i in range(200):
        seed = random.choice(["-", str(random.randrange(2**40))]) if i else "0"
        if seed != "-":
            torch.manual_seed(int(seed))
        inputs, outputs = random.choice(sizes), random.choice(sizes)
        bias = random.random() < 0.7
        layer = torch.nn.Linear(inputs, outputs, bias=bias)
        print(seed, inputs, outputs, int(bias), f"{hash_bits(layer.parameters()):016x}")


main()
