"""The peer of ddp_bench: DistributedDataParallel of PyTorch over gloo, on two processes.

Reads numbers of steps, a line each, and answers with the seconds per step of rank 0. First of all it
prints the version of PyTorch.
"""
import os
import sys
import tempfile
import time

folder = tempfile.TemporaryDirectory()
rank = 0 if os.fork() else 1
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402: after fork(), so that both start together
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", init_method=f"file://{folder.name}/store", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x = torch.tensor([[1.0], [2.0]]) + 2 * rank
y = 2 * x


def step():
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()


if rank == 0:
    print(torch.__version__, flush=True)
while True:
    line = sys.stdin.readline() if rank == 0 else ""
    count = torch.tensor([int(line) if line.strip() else 0])
    dist.broadcast(count, 0)
    if not count:
        break
    start = time.perf_counter()
    for _ in range(int(count)):
        step()
    if rank == 0:
        print((time.perf_counter() - start) / int(count), flush=True)
if rank == 0:
    os.wait()
else:
    os._exit(0)  # the folder is rank 0's
