"""Trainyard by `trainyard run`: one process, with --ps 1 ps, 2 workers and a chief, with --members 2 workers and a chief.

--twice: two jobs of one process each at once, their steps added: the most that two trainers can do on this machine.
--sync: the gradients of both workers make one update; steps are updates.
--tcp: gradients travel through gRPC, as between two hosts. Without it processes on one host share memory for them.

Steps are counted by the ps itself (trainyard_ps_step of its /metrics; in one process trainyard_worker_steps_total; with --members the
chief's trainyard_global_step, the step that all members have made) and read from outside, every 50 ms, as a monitoring system would: when the warm-up is over, and until enough steps are done. Then the job is stopped
as by Ctrl-C, and the weights are taken from the checkpoint it leaves.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

import mnist
from roles import Roles, arguments, cpu_seconds, die_with_signal, report

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 120


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")
    except OSError:
        return [""]


def http_ports(launcher, program):
    """The ports that the replicas of this program were told to show their pages on."""
    with open(f"/proc/{launcher}/task/{launcher}/children") as f:
        replicas = [words_of(pid) for pid in f.read().split()]
    return [w[w.index("--http-port") + 1] for w in replicas if w[0].endswith(program) and "--http-port" in w]


def count(launcher, program, metric):
    """(steps, when), or None while no replica shows them yet."""
    for port in http_ports(launcher, program):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as page:
                lines = page.read().decode().splitlines()
        except OSError:
            continue
        now = time.perf_counter()
        values = [float(line.split()[1]) for line in lines if line.startswith(metric + " ")]
        if values:
            return values[0], now
    return None


def wait_for(job, least, *what):
    end = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < end and job.poll() is None:
        seen = count(job.pid, *what)
        if seen is not None and seen[0] >= least:
            return seen
        time.sleep(POLL_SECONDS)
    sys.exit(f"the job did not reach {least} steps")


def weights_of(trainyard, out):
    subprocess.run([trainyard, "export", out, "-o", out + "/weights.npz"], check=True, stdout=subprocess.DEVNULL)
    with np.load(out + "/weights.npz") as file:
        return [file[name] for name in file.files]


def manifest(out, a):
    with open(os.path.join(os.path.dirname(__file__), "ours.yaml")) as f:
        text = f.read()
    if a.members:
        text = text.replace("    PS: {replicas: 1}\n", "").replace("{updates: async}", "{name: MultiWorkerMirrored}")
    elif not a.ps:
        text = text[: text.index("  # ours.py cuts")]
    if a.sync:
        text = text.replace("updates: async", "updates: sync")
    path = out + "/job-of-peers.yaml"
    with open(path, "w") as f:
        f.write(text)
    return path


def without_shared_memory(trainyard, folder):
    """A folder of programs that are told not to share memory."""
    programs = os.path.dirname(os.path.abspath(trainyard))
    for name in ("trainyard-ps", "trainyard-worker"):
        with open(f"{folder}/{name}", "w") as f:
            f.write(f'#!/bin/sh\nexec "{programs}/{name}" --no-shared-memory "$@"\n')
        os.chmod(f"{folder}/{name}", 0o755)
    return {"TRAINYARD_BIN_DIR": folder}


class Job:
    """One `trainyard run` in a folder of its own."""

    def __init__(self, a, roles, folder):
        os.mkdir(folder)
        self.a, self.out, self.log = a, folder + "/out", open(folder + "/log", "w+")
        command = [a.trainyard, "run", manifest(folder, a), "--data-dir", a.data, "--output-dir", self.out]
        if a.insecure:
            command.append("--insecure")
        programs = without_shared_memory(a.trainyard, folder) if a.tcp else {}
        self.process = roles.start(command, stdout=self.log, stderr=self.log, env={**os.environ, **programs})

    def wait_for(self, least):
        """(steps, when)"""
        if self.a.ps:
            return wait_for(self.process, least, "trainyard-ps", "trainyard_ps_step")
        metric = "trainyard_global_step" if self.a.members else "trainyard_worker_steps_total"
        return wait_for(self.process, least, "trainyard-worker", metric)

    def end(self):
        """(accuracy, core)"""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        self.log.seek(0)
        core = re.search(r"BLAS core (\w+)", self.log.read())
        return mnist.accuracy(weights_of(self.a.trainyard, self.out), self.a.data), core[1] if core else "?"


def main():
    a = arguments(__doc__, trainyard={"required": True}, ps={"action": "store_true"}, members={"action": "store_true"}, tcp={"action": "store_true"},
                  sync={"action": "store_true"}, insecure={"action": "store_true"}, twice={"action": "store_true"})
    die_with_signal()
    with tempfile.TemporaryDirectory() as folder, Roles() as roles:
        jobs = [Job(a, roles, f"{folder}/{n}") for n in range(2 if a.twice else 1)]
        for job in jobs:
            job.wait_for(a.warm)
        first = [job.wait_for(0) for job in jobs]
        cpu = cpu_seconds()
        jobs[0].wait_for(first[0][0] + a.steps / len(jobs))
        last = [job.wait_for(0) for job in jobs]
        cpu = cpu_seconds() - cpu
        steps = sum(end[0] - begin[0] for begin, end in zip(first, last))
        rate = sum((end[0] - begin[0]) / (end[1] - begin[1]) for begin, end in zip(first, last))
        accuracy, core = [job.end() for job in jobs][0]
        report(int(steps), steps / rate, accuracy, cpu=cpu, core=core)


if __name__ == "__main__":
    main()
