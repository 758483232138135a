"""Writes torch_print.txt: tensors and what torch prints for them.

Run with the system Python of Debian 12 (python3-torch 1.13.1):
    python3 make_print.py > torch_print.txt

A case is one line `dtype shape suffix elements`, then the printed lines, each after `| `. The shape
is `()` or sizes joined by x, the suffix `-` when there is none. Elements are `ramp start step` (the
i-th is start + step * i in double, then cast) or a list: integers in decimal, floats as hex bits.
"""
import random

import numpy as np
import torch

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
SHAPES = [(), (1,), (2,), (5,), (12,), (30,), (0,), (0, 3), (3, 0), (2, 0, 2), (1, 1), (4, 5),
          (2, 17), (9, 1), (1, 2, 3), (2, 3, 4), (3, 1, 20), (2, 1, 3, 2), (1, 2, 1, 1, 3)]
BIG_SHAPES = [(1000,), (1001,), (40, 30), (7, 150), (6, 200), (5, 201), (10, 11, 12), (2, 3, 180),
              (3, 7, 60), (8, 2, 9, 8), (1, 1, 1, 1001), (501, 2)]
INF, NAN = float("inf"), float("nan")


def spelled(tensor):
    values = tensor.detach().reshape(-1).numpy()
    if values.dtype == np.float32:
        return [f"{bits:08x}" for bits in values.view(np.uint32).tolist()]
    if values.dtype == np.float64:
        return [f"{bits:016x}" for bits in values.view(np.uint64).tolist()]
    return [str(int(value)) for value in values.tolist()]


def show(tensor, elements=None, suffix="-"):
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape = "x".join(map(str, tensor.shape)) or "()"
    print(dtype, shape, suffix, *(spelled(tensor) if elements is None else elements))
    for line in str(tensor).split("\n"):
        print("| " + line)


def show_ramp(dtype, shape, start, step):
    count = int(np.prod(shape, dtype=np.int64))
    values = torch.from_numpy(start + step * np.arange(count, dtype=np.float64))
    show(values.to(DTYPES[dtype]).reshape(shape), ["ramp", repr(start), repr(step)])


def show_with_graph(values, dtype, product):
    leaf = torch.tensor(values, dtype=dtype, requires_grad=True)
    if product:
        show(leaf * 1, suffix="grad_fn=<MulBackward0>")
    else:
        show(leaf, suffix="requires_grad=True")


def documented():
    """The rows of the specification, and values on both sides of each threshold."""
    floats = [
        [-0.0075, 0.5364], [1.0, 2.0], [0.0, 0.0], [-0.0], [1.0, 2.5], [-5.0, 100.0], [1e-5, 1.0],
        [0.0001, 0.5], [1000.0, 1.0], [1001.0, 1.0], [1e8, 1e8], [2e8, 2e8], [100000008.0],
        [123456.789, 200000.5], [INF, 1.5], [NAN, 1.0], [INF, -INF], [NAN, -1.0, 100.0],
        [0.03125, 0.5], [0.09375], [-0.03125, 2.5], [NAN], [-INF], [0.0, NAN, INF], [-0.0, 1.5],
        [1e-4], [9.9999e-5], [1.0001e-4], [0.1, 100.0], [0.1, 100.01], [0.1, 101.0], [1e-45],
        [3.4e38, 1.0], [3.4028234663852886e38], [-1e-38, 0.0], [0.99995], [0.99994999],
        [9.99995, 1.0], [999.99995], [1e8, 1e5], [1e8, 0.5e8], [99999999.0, 100000.5],
    ]
    for values in floats:
        for dtype in (torch.float32, torch.float64):
            show(torch.tensor(values, dtype=dtype))
    for value in [3.14159, 2.0, -0.0, 1e-9, INF, NAN, 1e9, 0.5]:
        show(torch.tensor(value))
        show(torch.tensor(value, dtype=torch.float64))
    show(torch.tensor([1e-4, 1.0], dtype=torch.float64))
    show(torch.tensor([5e-324, 1.7976931348623157e308], dtype=torch.float64))
    show(torch.tensor([1, -20, 300]))
    show(torch.tensor([-(2**63), 2**63 - 1]))
    show(torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32))
    show(torch.tensor([True, False]))
    show(torch.tensor(5))
    show(torch.tensor(False))


def values_for(dtype, kind, count):
    if dtype == torch.bool:
        return [random.random() < 0.5 for _ in range(count)]
    if dtype == torch.uint8:
        return [random.randrange(256) for _ in range(count)]
    if not dtype.is_floating_point:
        limit = 10 ** random.randrange(1, 10)
        return [random.randrange(-limit, limit) for _ in range(count)]
    return [float_for(kind) for _ in range(count)]


def float_for(kind):
    if kind == "whole":
        return float(random.randrange(-999, 1000))
    if kind == "wide whole":
        return float(random.randrange(-10**5, 10**5))
    if kind == "normal":
        return random.gauss(0, 1)
    if kind == "wide":
        return random.gauss(0, 1) * 10 ** random.randrange(-9, 10)
    if kind == "large":
        return random.uniform(1e5, 9e7)
    if kind == "ties":
        return random.randrange(-500, 500) / 32
    return random.choice([NAN, INF, -INF, -0.0, 0.0, 1.0, -12.0, 0.25])


def drawn():
    for name, dtype in DTYPES.items():
        kinds = ["whole", "wide whole", "normal", "wide", "large", "ties", "special"]
        for kind in kinds if dtype.is_floating_point else ["integers"]:
            for shape in SHAPES:
                count = int(np.prod(shape, dtype=np.int64))
                show(torch.tensor(values_for(dtype, kind, count), dtype=dtype).reshape(shape))


def summarised():
    ramps = {
        "float32": [(0.0, 1.0), (-3.0, 0.125), (1e-6, 1.0), (0.5, 0.0)],
        "float64": [(0.0, 1.0), (-2.0, 1.5)],
        "int64": [(0.0, 1.0), (500.0, -1.0), (-1e9, 1e6)],
        "int32": [(0.0, -7.0)],
        "uint8": [(5.0, 0.0)],
        "bool": [(0.0, 1.0)],
    }
    for dtype, pairs in ramps.items():
        for start, step in pairs:
            for shape in random.sample(BIG_SHAPES, 5):
                show_ramp(dtype, shape, start, step)


def suffixes():
    for count in range(1, 14):
        for dtype in (torch.float32, torch.float64):
            values = [i + 0.5 for i in range(count)]
            show_with_graph(values, dtype, product=False)
            show_with_graph(values, dtype, product=True)
    show_with_graph([[1.0, 2.0], [3.0, 4.0]], torch.float32, product=True)
    show_with_graph(1.5, torch.float32, product=True)
    show_with_graph([], torch.float64, product=False)
    for dtype in DTYPES.values():
        show(torch.zeros((0,) + (123456789,) * 2, dtype=dtype))
        show(torch.zeros((0,) + (12345678901,), dtype=dtype))


def main():
    random.seed(0)
    documented()
    drawn()
    summarised()
    suffixes()


main()
