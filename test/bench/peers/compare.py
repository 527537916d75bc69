"""Trainyard, TensorFlow's parameter servers and PyTorch train the same network on the same machine, in turns, in one run.

Every contender runs once a round, in an order that moves on with the rounds; the medians and their ratios are printed and
written into a page between <!-- peers --> and <!-- /peers -->. docs/benchmarks.md says how steps are counted.
"""

import argparse
import json
import operator
import os
import statistics
import subprocess
import sys

import report
from roles import die_with_signal

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_SECONDS = 300

# name: (steps to measure, script and its arguments). Steps are chosen for some 5 to 20 seconds each.
CONTENDERS = {
    "Trainyard, one process": (20000, ["ours.py"]),
    "Trainyard, two jobs of one process at once": (20000, ["ours.py", "--twice"]),
    "PyTorch eager, one thread": (8000, ["one_torch.py"]),
    "PyTorch eager, one thread, fused Adam": (8000, ["one_torch.py", "--fused"]),
    "Trainyard, 1 ps + 2 workers": (20000, ["ours.py", "--ps"]),
    "Trainyard, 1 ps + 2 workers, all through TCP": (20000, ["ours.py", "--ps", "--tcp"]),
    "Trainyard, 1 ps + 2 workers, all through TCP, no TLS": (20000, ["ours.py", "--ps", "--tcp", "--insecure"]),
    "TensorFlow 1 parameter server, 1 ps + 2 workers": (4690, ["ps_tf1.py"]),
    "Trainyard, synchronous": (10000, ["ours.py", "--ps", "--sync"]),
    "Trainyard, synchronous, all through TCP": (5000, ["ours.py", "--ps", "--sync", "--tcp"]),
    "Trainyard, synchronous, all through TCP, no TLS": (10000, ["ours.py", "--ps", "--sync", "--tcp", "--insecure"]),
    "TensorFlow 1 SyncReplicasOptimizer": (1500, ["ps_tf1.py", "--sync"]),
    "Trainyard, MultiWorkerMirrored": (10000, ["ours.py", "--members"]),
    "Trainyard, MultiWorkerMirrored, all through TCP": (5000, ["ours.py", "--members", "--tcp"]),
    "Trainyard, MultiWorkerMirrored, all through TCP, no TLS": (10000, ["ours.py", "--members", "--tcp", "--insecure"]),
    "TensorFlow MultiWorkerMirroredStrategy, 1 step a call": (1500, ["tf_mwms.py", "--per", "1"]),
    "TensorFlow MultiWorkerMirroredStrategy, 10 steps a call": (2500, ["tf_mwms.py", "--per", "10"]),
    "PyTorch DistributedDataParallel, gloo": (3000, ["torch_ddp.py"]),
    "TF2 ParameterServerStrategy, 1 step a closure": (3000, ["ps_tf2.py", "--per", "1"]),
    "TF2 ParameterServerStrategy, 10 steps a closure": (4690, ["ps_tf2.py", "--per", "10"]),
}
# ours, theirs, at least
RATIOS = [
    ("Trainyard, one process", "PyTorch eager, one thread", 3.5),
    ("Trainyard, one process", "PyTorch eager, one thread, fused Adam", None),
    ("Trainyard, 1 ps + 2 workers", "Trainyard, two jobs of one process at once", 0.8),
    ("Trainyard, 1 ps + 2 workers", "TensorFlow 1 parameter server, 1 ps + 2 workers", 10),
    ("Trainyard, 1 ps + 2 workers", "TF2 ParameterServerStrategy, 1 step a closure", 20),
    ("Trainyard, 1 ps + 2 workers", "TF2 ParameterServerStrategy, 10 steps a closure", None),
    ("Trainyard, 1 ps + 2 workers, all through TCP", "TensorFlow 1 parameter server, 1 ps + 2 workers", 6.8),
    ("Trainyard, 1 ps + 2 workers, all through TCP, no TLS", "TensorFlow 1 parameter server, 1 ps + 2 workers", 8),
    ("Trainyard, 1 ps + 2 workers, all through TCP", "TF2 ParameterServerStrategy, 1 step a closure", None),
    ("Trainyard, synchronous", "TensorFlow 1 SyncReplicasOptimizer", None),
    ("Trainyard, synchronous, all through TCP", "TensorFlow 1 SyncReplicasOptimizer", None),
    ("Trainyard, synchronous, all through TCP, no TLS", "TensorFlow 1 SyncReplicasOptimizer", 8),
    ("Trainyard, MultiWorkerMirrored", "TensorFlow MultiWorkerMirroredStrategy, 1 step a call", None),
    ("Trainyard, MultiWorkerMirrored", "PyTorch DistributedDataParallel, gloo", None),
    ("Trainyard, MultiWorkerMirrored, all through TCP", "TensorFlow MultiWorkerMirroredStrategy, 1 step a call", None),
    ("Trainyard, MultiWorkerMirrored, all through TCP", "PyTorch DistributedDataParallel, gloo", None),
    ("Trainyard, MultiWorkerMirrored, all through TCP, no TLS", "TensorFlow MultiWorkerMirroredStrategy, 1 step a call", 8),
    ("Trainyard, MultiWorkerMirrored, all through TCP, no TLS", "TensorFlow MultiWorkerMirroredStrategy, 10 steps a call", None),
    ("Trainyard, MultiWorkerMirrored, all through TCP, no TLS", "PyTorch DistributedDataParallel, gloo", 5),
]
# ours, theirs, at most: CPU time of a step
CPU_RATIOS = [("Trainyard, 1 ps + 2 workers", "Trainyard, one process", 1.3)]


def run_once(name, a):
    steps, words = CONTENDERS[name]
    command = [sys.executable, os.path.join(HERE, words[0]), *words[1:], "--data", a.data, "--steps", str(int(steps * a.scale))]
    if words[0] == "ours.py":
        command += ["--trainyard", a.trainyard]
    busy = report.wait_for_quiet()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, errors = p.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        out, errors = "", f"not done after {TIMEOUT_SECONDS} s"
    finally:
        p.terminate()  # if it still runs: it stops its roles
        p.wait()
    if not out.startswith("{"):
        sys.exit(f"{name}: no result\n" + "\n".join(errors.splitlines()[-10:]))
    result = json.loads(out)
    print(f"{name}: {result['rate']:.0f} steps/s, accuracy {result['accuracy']:.4f}; machine {busy:.0%} busy before", flush=True)
    return {**result, "busy": busy}


def run_all(a):
    names, results = list(CONTENDERS), {name: [] for name in CONTENDERS}
    for turn in range(a.rounds):
        shift = turn * 3 % len(names)
        for name in names[shift:] + names[:shift]:
            results[name].append(run_once(name, a))
    return results


def rate_table(results):
    yield "| 784-128 relu-10 softmax, Adam, batch 64 | steps/s: median (range) | a round | CPU ms a step | cores busy | test accuracy then |"
    yield "|---|---|---|---|---|---|"
    for name, runs in results.items():
        rates = [r["rate"] for r in runs]
        accuracy = statistics.median(r["accuracy"] for r in runs)
        cpu, cores = (statistics.median(r["cpu"] / r[by] for r in runs) for by in ("steps", "seconds"))
        yield (f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) | "
               f"{runs[0]['steps']:,} steps, {statistics.median(r['seconds'] for r in runs):.1f} s | {cpu * 1000:.2f} | {cores:.2f} | {accuracy:.3f} |")


def ratio_row(results, ours, theirs, value, what, reaches, target):
    mine, other = ([value(r) for r in results[name]] for name in (ours, theirs))
    ratio, each = statistics.median(mine) / statistics.median(other), [m / o for m, o in zip(mine, other)]
    verdict = report.verdict(ratio, target, reaches)
    return f"| {ours} : {theirs}{what} | {ratio:.2f} | {min(each):.2f}-{max(each):.2f} | {verdict} |"


def ratio_table(results):
    yield "| ratio | of the medians | of each round | target |"
    yield "|---|---|---|---|"
    for ours, theirs, target in RATIOS:
        yield ratio_row(results, ours, theirs, lambda r: r["rate"], "", operator.ge, target)
    for ours, theirs, target in CPU_RATIOS:
        yield ratio_row(results, ours, theirs, lambda r: r["cpu"] / r["steps"], ", CPU time of a step", operator.le, target)


def machine(a, results):
    core = next(iter(results.values()))[0].get("core", "?")
    worst = max(r["busy"] for runs in results.values() for r in runs)
    part = "" if a.scale == 1 else f", {a.scale:.0%} of the steps"
    yield f"* {report.now()}, `make bench-peers`: {a.rounds} rounds{part}, contenders in turns."
    yield report.machine()
    yield report.programs(a.trainyard, core, ("tensorflow-cpu", "tf-keras", "torch", "numpy"))
    yield report.load(a.load, worst)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainyard", required=True)
    parser.add_argument("--data", required=True, help="folder of MNIST's IDX files")
    parser.add_argument("--page", help="write the tables into this page")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1, help="this part of the steps, for a trial")
    a = parser.parse_args()
    die_with_signal()
    a.load = os.getloadavg()
    results = run_all(a)
    lines = [*machine(a, results), "", *rate_table(results), "", *ratio_table(results)]
    print("\n".join(["", *lines]))
    if a.page:
        report.write(a.page, "peers", lines)


main()
