"""Writes torch_generator.txt: hashes of what torch's CPU generator draws.

Run with the system Python of Debian 12 (python3-torch 1.13.1) on a CPU with AVX2:
    python3 make_generator.py > torch_generator.txt

Each line is one call on one generator, in order: operation, seed (- continues the stream), number
of elements, two arguments, and the hash of the result by accrue::hash_bits.
"""
import random

import numpy as np
import torch

DTYPES = {"float": torch.float32, "double": torch.float64, "uint8": torch.uint8}


def hash_bits(values):
    words = values.numpy()
    if words.dtype == np.float32:
        words = words.view(np.uint32)
    elif words.dtype == np.float64:
        words = words.view(np.uint64)
    state = 0xCBF29CE484222325
    for word in words.tolist():
        state = ((state ^ (word & (2**64 - 1))) * 0x9E3779B97F4A7C15) & (2**64 - 1)
        state ^= state >> 32
    return state


def draw(generator, operation, n, a, b):
    name, _, suffix = operation.partition("_")
    empty = lambda: torch.empty(n, dtype=DTYPES[suffix])
    if name == "uniform":
        return empty().uniform_(a, b, generator=generator)
    if name == "normal":
        return empty().normal_(a, b, generator=generator)
    if name == "bernoulli" and suffix == "each":
        return torch.bernoulli(torch.arange(n, dtype=torch.float32) / n, generator=generator)
    if name == "bernoulli":
        return empty().bernoulli_(a, generator=generator)
    if name == "randint":
        return torch.randint(int(a), int(b), (n,), generator=generator)
    if name == "randperm":
        return torch.randperm(n, generator=generator)
    if name == "random":
        return torch.empty(n, dtype=torch.int64).random_(generator=generator)
    return generator.get_state()


def arguments(operation):
    if operation.startswith("uniform"):
        return random.uniform(-3, 1), random.uniform(1, 5)
    if operation.startswith("normal"):
        return random.uniform(-3, 3), random.uniform(0, 5)
    if operation.startswith("bernoulli"):
        return random.random(), 0.0
    low = float(random.randrange(-10**6, 10**6))
    return low, low + random.choice([1, 7, 1000, 2**32 - 1, 2**32, 2**40, 2**50])


def main():
    random.seed(0)
    generator = torch.Generator()
    operations = ["uniform_float", "uniform_double", "normal_float", "normal_double",
                  "bernoulli_float", "bernoulli_double", "bernoulli_uint8", "bernoulli_each",
                  "randint", "randperm", "random", "state"]
    sizes = [0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 100, 1003]
    for _ in range(600):
        operation = random.choice(operations)
        seed = random.choice([None, None, random.randrange(2**63), random.randrange(100)])
        if seed is not None:
            generator.manual_seed(seed)
        n = random.choice(sizes)
        a, b = arguments(operation)
        result = hash_bits(draw(generator, operation, n, a, b))
        print(operation, "-" if seed is None else seed, n, repr(a), repr(b), f"{result:016x}")


main()
