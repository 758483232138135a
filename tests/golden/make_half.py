"""Writes torch_half.txt: how torch rounds floats to bfloat16 and float16, and prints both.

Run with the system Python of Debian 12 (python3-torch 1.13.1):
    python3 make_half.py > torch_half.txt

A line `round <float32 bits> <bfloat16 bits> <float16 bits>`, or `print <dtype> <bits>...` for a
tensor of one dimension, then the printed lines, each after `| `.
"""
import random

import numpy as np
import torch

BORDERS = [0.0, 2.0**-24, 2.0**-25, 2.0**-14, 2.0**-126, 2.0**-133, 2.0**-134, 2.0**-149, 1.0, 65504.0, 65520.0,
           65536.0, 3.3895313892515355e38, 3.4028234663852886e38, float("inf")]


def float_bits(value):
    return int(np.float32(value).view(np.uint32))


def rounded(bits, dtype):
    value = torch.from_numpy(np.array([bits], dtype=np.uint32).view(np.float32))
    return int(value.to(dtype).view(torch.int16).item()) & 0xFFFF


def round_line(bits):
    print(f"round {bits:08x} {rounded(bits, torch.bfloat16):04x} {rounded(bits, torch.float16):04x}")


def print_lines(values, dtype):
    tensor = torch.tensor(values, dtype=dtype)
    bits = [f"{b & 0xFFFF:04x}" for b in tensor.view(torch.int16).tolist()]
    print("print", str(dtype).removeprefix("torch."), *bits)
    for line in str(tensor).split("\n"):
        print("| " + line)


random.seed(0)
for border in BORDERS:
    for step in range(-2, 3):
        bits = float_bits(border) + step
        if 0 <= bits <= 0x7F800000:
            round_line(bits)
            round_line(bits | 0x80000000)
for _ in range(400):
    round_line(random.randrange(0x7F800001))
    exponent = random.randrange(100, 144)
    tie = exponent << 23 | random.randrange(1 << 10) << 13 | 1 << 12
    round_line(tie + random.randrange(-1, 2))
    round_line((exponent << 23 | random.randrange(1 << 7) << 16 | 1 << 15) + random.randrange(-1, 2))
for kind in (torch.bfloat16, torch.float16):
    for values in ([1.0, 2.5], [0.1, 0.2, 0.3], [1.0, 2.0], [1e-3, 1.0, 100.0], [float("nan"), 1.0],
                   [float("inf"), -0.5], [-0.0], [60000.0, 1e-4], [i / 7 for i in range(20)]):
        print_lines(values, kind)
