"""PyTorch, one process, one thread: eager."""

import time

import torch

import torch_net
from roles import arguments, cpu_seconds, report


def main():
    a = arguments(__doc__, fused={"action": "store_true", "help": "Adam in one kernel, which is not PyTorch's default on a CPU"})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = torch_net.Net()
    optimizer = torch.optim.Adam(net.model.parameters(), lr=1e-3, **({"fused": True} if a.fused else {}))
    begun, ended = torch_net.train(a, net.model, net.loss_of, optimizer, lambda: (time.perf_counter(), cpu_seconds()))
    report(a.steps, ended[0] - begun[0], net.accuracy(a.data), cpu=ended[1] - begun[1])


main()
