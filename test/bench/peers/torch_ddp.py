"""PyTorch's DistributedDataParallel over gloo: 2 workers of one thread each."""

import os
import time

from roles import Roles, addresses, arguments, die_with_signal, report


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


def train(a, rank):
    import torch

    import torch_net

    marks = iter(("begun", "ended"))

    def mark():
        now = time.perf_counter()
        print(next(marks), flush=True)
        return now

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(rank)
    net = torch_net.Net()
    model = torch.nn.parallel.DistributedDataParallel(net.model)
    begun, ended = torch_net.train(a, model, net.loss_of, torch.optim.Adam(model.parameters(), lr=1e-3), mark)
    report(a.steps, ended - begun, net.accuracy(a.data))


def main():
    a = arguments(__doc__, role={})
    if a.role is None:
        return launch()
    train(a, int(a.role))
    os._exit(0)  # the other one may be in its last step


main()
