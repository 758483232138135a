"""Measures in torch what kernel_rates measured: reads its lines from stdin, prints a line for each.

Run: torch_rates.py [cuda|cpu] < rates.jsonl. The CPU takes one call each, which measures nothing.
A line {"kernel", "sizes"} gives {"kernel", "sizes", "seconds"}, or "left_out" with a reason.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
TURN, BUDGET = 2e-3, 0.2  # seconds, as kernel_rates

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def numbers(*shape, leaf=False):
    return torch.rand(shape, device=DEVICE).mul_(2).sub_(1).requires_grad_(leaf)


def indices(count, limit):
    return torch.randint(limit, (count,), device=DEVICE)


def backward(y, x):
    """The gradient of what was computed before: a call of it measures backward alone."""
    dy = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, x, dy, retain_graph=True)


def linear(n, i, o):
    x, w = numbers(n, i), numbers(o, i)
    return lambda: F.linear(x, w)


def linear_input_grad(n, i, o):
    dy, w = numbers(n, o), numbers(o, i)
    return lambda: dy @ w


def linear_weight_grad(n, i, o):
    dy, x = numbers(n, o), numbers(n, i)
    return lambda: dy.t() @ x


def linear_bias_grad(n, o):
    dy = numbers(n, o)
    return lambda: dy.sum(0)


def batched_matmul(batches, m, k, n):
    a, b = numbers(batches, m, k), numbers(batches, k, n)
    return lambda: torch.bmm(a, b)


def attend(heads, positions, width, leaf):
    q, k, v = (numbers(1, heads, positions, width, leaf=leaf) for _ in range(3))
    return q, k, v, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention(*sizes):
    return attend(*sizes, leaf=False)[3]


def attention_backward(*sizes):
    q, k, v, call = attend(*sizes, leaf=True)
    return backward(call(), (q, k, v))


def cross_entropy(rows, classes):
    x, target = numbers(rows, classes, leaf=True), indices(rows, classes)
    dloss = numbers(rows)
    return lambda: torch.autograd.grad(F.cross_entropy(x, target, reduction="none"), x, dloss)


def images(count, channels, side):
    return numbers(count, channels, side, side)


def conv2d(count, channels, outputs, side):
    x, w = images(count, channels, side), images(outputs, channels, 3)
    return lambda: F.conv2d(x, w, padding=1)


def conv2d_input_grad(count, channels, outputs, side):
    dy, w = images(count, outputs, side), images(outputs, channels, 3)
    size = (count, channels, side, side)
    return lambda: torch.nn.grad.conv2d_input(size, w, dy, padding=1)


def conv2d_weight_grad(count, channels, outputs, side):
    dy, x = images(count, outputs, side), images(count, channels, side)
    return lambda: torch.nn.grad.conv2d_weight(x, (outputs, channels, 3, 3), dy, padding=1)


def conv2d_bias_grad(count, channels, outputs, side):
    dy = images(count, outputs, side)
    return lambda: dy.sum((0, 2, 3))


def max_pool2d(planes, side):
    x = images(1, planes, side)
    return lambda: F.max_pool2d(x, 2, return_indices=True)


def max_pool2d_grad(planes, side):
    x = numbers(1, planes, side, side, leaf=True)
    return backward(F.max_pool2d(x, 2), x)


def avg_pool2d(planes, side):
    x = images(1, planes, side)
    return lambda: F.avg_pool2d(x, 2)


def avg_pool2d_grad(planes, side):
    x = numbers(1, planes, side, side, leaf=True)
    return backward(F.avg_pool2d(x, 2), x)


def linear_then_cross_entropy(tokens, vocabulary, width):
    x, w = numbers(tokens, width, leaf=True), numbers(vocabulary, width, leaf=True)
    target, dloss = indices(tokens, vocabulary), torch.ones(tokens, device=DEVICE)

    def call():
        loss = F.cross_entropy(F.linear(x, w), target, reduction="none")
        return torch.autograd.grad(loss, (x, w), dloss)

    return call


def softmax(rows, columns):
    x = numbers(rows, columns)
    return lambda: F.softmax(x, 1)


def softmax_backward(rows, columns):
    x = numbers(rows, columns, leaf=True)
    return backward(F.softmax(x, 1), x)


def mse(rows, columns):
    x, y = numbers(rows, columns), numbers(rows, columns)
    return lambda: F.mse_loss(x, y)


def mse_and_gradient(rows, columns):
    x, y = numbers(rows, columns, leaf=True), numbers(rows, columns)
    return lambda: torch.autograd.grad(F.mse_loss(x, y), x)


def layer_norm(rows, columns):
    x, w, b = numbers(rows, columns), numbers(columns), numbers(columns)
    return lambda: F.layer_norm(x, (columns,), w, b)


def layer_norm_backward(rows, columns):
    x, w, b = numbers(rows, columns, leaf=True), numbers(columns), numbers(columns)
    return backward(F.layer_norm(x, (columns,), w, b), x)


def row_sum(rows, columns):
    x = numbers(rows, columns)
    return lambda: x.sum(1)


def column_sum(rows, columns):
    x = numbers(rows, columns)
    return lambda: x.sum(0)


def max_of_rows(rows, columns):
    x = numbers(rows, columns)
    return lambda: x.max(1)


def square_sum(rows, columns):
    x = numbers(rows, columns)
    return lambda: torch.norm(x)


def gather(rows, columns):
    x, index = numbers(rows, columns), indices(rows * columns, columns).view(rows, columns)
    return lambda: x.gather(1, index)


def embedding(tokens, vocabulary, width):
    table, index = numbers(vocabulary, width), indices(tokens, vocabulary)
    return lambda: F.embedding(index, table)


def embedding_grad(tokens, vocabulary, width):
    table = numbers(vocabulary, width, leaf=True)
    return backward(F.embedding(indices(tokens, vocabulary), table), table)


def unary(function):
    def of(count):
        x = numbers(count)
        return lambda: function(x)

    return of


def gelu_backward(count):
    x = numbers(count, leaf=True)
    return backward(F.gelu(x), x)


def add(count):
    a, b = numbers(count), numbers(count)
    return lambda: a + b


def transpose(rows, columns):
    x, y = numbers(columns, rows).t(), numbers(rows, columns)
    return lambda: y.copy_(x)


def dropout_mask(rows, columns):
    mask = numbers(rows, columns)
    return lambda: mask.bernoulli_(0.9)


def step(optimizer, **options):
    def of(count):
        x = numbers(count, leaf=True)
        x.grad = numbers(count)
        try:
            return optimizer([x], fused=DEVICE == "cuda", **options).step
        except (TypeError, RuntimeError):  # an older torch
            return optimizer([x], **options).step

    return of


TWINS = {
    "linear": linear,
    "linear_input_grad": linear_input_grad,
    "linear_weight_grad": linear_weight_grad,
    "linear_weight_grad_8_lanes": linear_weight_grad,
    "linear_bias_grad": linear_bias_grad,
    "batched_matmul": batched_matmul,
    "attention": attention,
    "attention_backward": attention_backward,
    "conv2d": conv2d,
    "conv2d_input_grad": conv2d_input_grad,
    "conv2d_weight_grad": conv2d_weight_grad,
    "conv2d_bias_grad": conv2d_bias_grad,
    "max_pool2d": max_pool2d,
    "max_pool2d_grad": max_pool2d_grad,
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_grad": avg_pool2d_grad,
    "linear_cross_entropy": linear_then_cross_entropy,
    "linear_then_cross_entropy": linear_then_cross_entropy,
    "cross_entropy": cross_entropy,
    "softmax": softmax,
    "softmax_backward": softmax_backward,
    "mse": mse,
    "mse_and_gradient": mse_and_gradient,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "row_sum": row_sum,
    "column_sum": column_sum,
    "max_of_rows": max_of_rows,
    "square_sum": square_sum,
    "embedding": embedding,
    "embedding_grad": embedding_grad,
    "gelu": unary(F.gelu),
    "gelu_backward": gelu_backward,
    "exp": unary(torch.exp),
    "add": add,
    "transpose": transpose,
    "dropout_mask": dropout_mask,
    "gather": gather,
    "adamw": step(torch.optim.AdamW, weight_decay=0.01),
    "sgd": step(torch.optim.SGD, lr=1e-3, momentum=0.9),
}


def turn(call, calls):
    """Seconds of one call, where so many follow each other."""
    if DEVICE == "cpu":
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - begin) / calls
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def seconds_of(call):
    turn(call, 1)
    if DEVICE == "cpu":
        return turn(call, 1)
    turn(call, 1)  # the first calls allocate and choose algorithms
    first = turn(call, 1)
    calls = int(min(max(TURN / first, 1), 100))
    turns = int(min(max(BUDGET / first / calls, 3), 15))
    return statistics.median(turn(call, calls) for _ in range(turns))


def measure(kernel, sizes):
    line = {"kernel": kernel, "sizes": sizes}
    try:
        line["seconds"] = seconds_of(TWINS[kernel](*sizes))
    except KeyError:
        line["left_out"] = "torch_rates.py has no twin"
    except (AttributeError, RuntimeError) as error:  # not in this torch, or out of memory
        line["left_out"] = f"torch: {error}".splitlines()[0][:120]
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
    print(json.dumps(line), flush=True)


print(json.dumps({"torch": torch.__version__}), flush=True)
for text in sys.stdin:
    asked = json.loads(text)
    if "kernel" in asked:
        measure(asked["kernel"], asked["sizes"])
