"""The time of an all-reduce of floats between processes of this machine: Trainyard (bench_collective), PyTorch's gloo and OpenMPI.

Every contender runs once a round, in turns; the medians and their ratios are printed and written into a page between
<!-- allreduce --> and <!-- /allreduce -->. A round's time runs from a barrier until the last process has the sums. OpenMPI is
measured where mpicc and mpirun are installed.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import report
from roles import addresses

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {"64 KiB": 64 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20, "64 MiB": 64 << 20}
PROCESSES = (2, 4)
# ours, theirs, at least so many times as fast, of these sizes and 2 processes
TARGETS = [("TCP", "gloo, TCP", 1.5, ("16 MiB", "64 MiB")), ("shared memory", "OpenMPI, shared memory", 1.5, ("16 MiB", "64 MiB"))]
SMALL_MS = 0.040  # 64 KiB through shared memory, at most


def ours(a, processes, size, *more):
    return [a.bench, "--members", str(processes), "--seconds", str(a.seconds), "--only", str(size >> 10), *more]


def mpi(a, processes, size, transport):
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(processes), "--mca", "btl", transport + ",self"]
    return [*words, a.mpi, str(size), str(a.seconds)]


def gloo(a, processes, size):
    return [sys.executable, __file__, "--child", str(processes), str(size), str(a.seconds)]


CONTENDERS = {
    "Trainyard, shared memory": ours,
    "OpenMPI, shared memory": lambda *w: mpi(*w, "vader"),
    "Trainyard, TCP": lambda *w: ours(*w, "--tcp"),
    "Trainyard, TCP with TLS": lambda *w: ours(*w, "--tcp", "--tls"),
    "gloo, TCP": gloo,
    "OpenMPI, TCP": lambda *w: mpi(*w, "tcp"),
}


def gloo_rank(rank, processes, size, seconds):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=processes)
    x, ms, begun, more = torch.zeros(size // 4), [], time.perf_counter(), torch.ones(1)
    while more.item():
        dist.barrier()
        t = time.perf_counter()
        dist.all_reduce(x)
        last = torch.tensor([(time.perf_counter() - t) * 1000])
        dist.all_reduce(last, op=dist.ReduceOp.MAX)
        ms.append(last.item())
        more.fill_(float(len(ms) < 5 or time.perf_counter() - begun < seconds))
        dist.broadcast(more, 0)
    if rank == 0:
        print(f"{statistics.median(ms):.4f} ms", flush=True)


def gloo_launch(processes, size, seconds):
    port = addresses(1)[0].rsplit(":", 1)[1]
    where = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    words = [sys.executable, __file__, "--rank"]
    ranks = [subprocess.Popen([*words, str(r), str(processes), str(size), str(seconds)], env=where) for r in range(processes)]
    sys.exit(max(r.wait() for r in ranks))


def run_once(a, name, processes, size):
    a.worst = max(a.worst, report.wait_for_quiet())
    p = subprocess.run(CONTENDERS[name](a, processes, size), capture_output=True, text=True, timeout=300)
    found = re.search(r"([\d.]+) ms", p.stdout)
    if found is None:
        sys.exit(f"{name}: no result\n" + "\n".join(p.stderr.splitlines()[-10:]))
    return float(found[1])


def run_all(a):
    names = [n for n in CONTENDERS if a.mpi or not n.startswith("OpenMPI")]
    results = {}
    for processes in PROCESSES:
        for label, size in SIZES.items():
            for turn in range(a.rounds):
                for name in names[turn % len(names):] + names[: turn % len(names)]:
                    ms = run_once(a, name, processes, size)
                    results.setdefault((name, processes, label), []).append(ms)
                    print(f"{name}, {processes} processes, {label}: {ms:.3f} ms", flush=True)
    return names, results


def table(names, results):
    yield "| ms: median (range) | processes | " + " | ".join(SIZES) + " |"
    yield "|---|---|" + "---|" * len(SIZES)
    for processes in PROCESSES:
        for name in names:
            cells = [results[name, processes, label] for label in SIZES]
            yield f"| {name} | {processes} | " + " | ".join(f"{statistics.median(c):.3f} ({min(c):.3f}-{max(c):.3f})" for c in cells) + " |"


def ratios(names, results):
    median = {key: statistics.median(values) for key, values in results.items()}
    yield "| 2 processes: time of theirs : ours | size | ratio | target |"
    yield "|---|---|---|---|"
    for how, theirs, target, sizes in TARGETS:
        for label in SIZES if theirs in names else ():
            ratio = median[theirs, 2, label] / median[f"Trainyard, {how}", 2, label]
            yield f"| {theirs} : Trainyard, {how} | {label} | {ratio:.2f} | {report.verdict(ratio, target if label in sizes else None)} |"
    small = median["Trainyard, shared memory", 2, "64 KiB"]
    yield f"| Trainyard, shared memory, in us | 64 KiB | {small * 1000:.0f} | {SMALL_MS * 1000:.0f} us: {'reached' if small <= SMALL_MS else '**missed**'} |"


def main():
    if sys.argv[1:2] == ["--child"]:
        return gloo_launch(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    if sys.argv[1:2] == ["--rank"]:
        return gloo_rank(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True, help="the program bench_collective")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--page", help="write the tables into this page")
    a = parser.parse_args()
    a.worst, load = 0.0, os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        a.mpi = None
        if shutil.which("mpicc") and shutil.which("mpirun"):
            a.mpi = folder + "/allreduce_mpi"
            subprocess.run(["mpicc", "-O2", "-o", a.mpi, HERE + "/allreduce_mpi.c"], check=True)
        names, results = run_all(a)
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.split("\n")[0] if a.mpi else "no OpenMPI"
    import torch

    lines = [
        f"* {report.now()}, `test/bench/peers/allreduce.py`: {a.rounds} rounds of {a.seconds:g} s, in turns.",
        report.machine(),
        f"* PyTorch {torch.__version__}; {version}.",
        report.load(load, a.worst),
        "",
        *table(names, results),
        "",
        *ratios(names, results),
    ]
    print("\n".join(lines))
    if a.page:
        report.write(a.page, "allreduce", lines)


if __name__ == "__main__":
    main()
