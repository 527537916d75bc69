"""PyTorch, one process, one thread: eager, batches cut from a shuffled tensor in memory (quicker than its DataLoader)."""

import time

import torch

import mnist
from roles import arguments, cpu_seconds, report

BATCH = 64


def batches(x, y):
    while True:
        for index in torch.randperm(len(x)).split(BATCH):
            yield x[index], y[index]


def main():
    a = arguments(__doc__, fused={"action": "store_true", "help": "Adam in one kernel, which is not PyTorch's default on a CPU"})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = (torch.from_numpy(v) for v in mnist.part(a.data, "train"))
    first, last = torch.nn.Linear(784, 128), torch.nn.Linear(128, 10)
    model = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **({"fused": True} if a.fused else {}))
    loss_of = torch.nn.CrossEntropyLoss()

    for done, (images, labels) in enumerate(batches(x, y)):
        if done == a.warm:
            begun, cpu = time.perf_counter(), cpu_seconds()
        if done == a.warm + a.steps:
            break
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    seconds, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
    weights = [w.detach().numpy() for w in (first.weight.T, first.bias, last.weight.T, last.bias)]
    report(a.steps, seconds, mnist.accuracy(weights, a.data), cpu=cpu)


main()
