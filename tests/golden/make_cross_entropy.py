"""Writes torch_cross_entropy.txt: row losses and gradients of torch's cross-entropy.

Run with the system Python of Debian 12 (python3-torch 1.13.1):
    python3 make_cross_entropy.py > torch_cross_entropy.txt

Each line is one case: rows, classes, label smoothing, number of class weights, then logits,
targets, class weights, gradients of the row losses, row losses, gradients of the logits. Losses and
gradients are computed in double.
"""
import torch
from torch.nn.functional import cross_entropy


def main():
    generator = torch.Generator().manual_seed(0)
    for rows, classes in [(1, 1), (4, 3), (5, 40)]:
        for weighted in [False, True]:
            for smoothing in [0.0, 0.1, 1.0]:
                logits = (torch.randn(rows, classes, generator=generator) * 4).double()
                logits.requires_grad_()
                target = torch.randint(0, classes, (rows,), generator=generator)
                target[2:3] = -100
                weights = torch.rand(classes, generator=generator) + 0.25 if weighted else None
                upstream = torch.randn(rows, generator=generator)
                loss = cross_entropy(logits, target, None if weights is None else weights.double(),
                                     label_smoothing=smoothing, reduction="none")
                loss.backward(upstream.double())
                numbers = [rows, classes, smoothing, classes if weighted else 0]
                for part in [logits, target, weights, upstream, loss, logits.grad]:
                    numbers += [] if part is None else part.flatten().tolist()
                print(*[f"{number:.9g}" for number in numbers])


main()
