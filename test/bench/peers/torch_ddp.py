"""PyTorch's DistributedDataParallel over gloo: 2 workers of one thread each, batches cut from a shuffled tensor in memory."""

import os
import time

from roles import Roles, addresses, arguments, die_with_signal, report

BATCH = 64


def launch():
    die_with_signal()
    port = addresses(1)[0].rsplit(":", 1)[1]

    def start(rank):
        rendezvous = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE="2", RANK=str(rank), GLOO_SOCKET_IFNAME="lo")
        return roles.again("--role", str(rank), env={**os.environ, **rendezvous})

    with Roles() as roles:
        first = start(0)
        start(1)
        roles.pass_on_result(first)


def batches(torch, x, y):
    while True:
        for index in torch.randperm(len(x)).split(BATCH):
            yield x[index], y[index]


def train(a, rank):
    import torch

    import mnist

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(rank)
    x, y = (torch.from_numpy(v) for v in mnist.part(a.data, "train"))
    first, last = torch.nn.Linear(784, 128), torch.nn.Linear(128, 10)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(first, torch.nn.ReLU(), last))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()

    for done, (images, labels) in enumerate(batches(torch, x, y)):
        if done == a.warm:
            begun = time.perf_counter()
            print("begun", flush=True)
        if done == a.warm + a.steps:
            break
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    seconds = time.perf_counter() - begun
    print("ended", flush=True)
    weights = [w.detach().numpy() for w in (first.weight.T, first.bias, last.weight.T, last.bias)]
    report(a.steps, seconds, mnist.accuracy(weights, a.data))


def main():
    a = arguments(__doc__, role={})
    if a.role is None:
        return launch()
    train(a, int(a.role))
    os._exit(0)  # the other one may be in its last step


main()
