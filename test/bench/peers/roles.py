"""Processes of one job on this machine: free ports, start, end, CPU time. And the line of JSON that every contender prints."""

import argparse
import glob
import json
import os
import signal
import socket
import subprocess
import sys


def arguments(description, **more):
    """--data, --warm and --steps, which all contenders have, and those named in `more`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, help="folder of MNIST's IDX files")
    parser.add_argument("--warm", type=int, default=300, help="steps before the clock starts")
    parser.add_argument("--steps", type=int, default=4690, help="steps the clock runs for, at least")
    for name, settings in more.items():
        parser.add_argument("--" + name, **settings)
    return parser.parse_args()


def report(steps, seconds, accuracy, **more):
    """more: cpu, the seconds of CPU time of the whole job meanwhile; a role of TensorFlow leaves it to its launcher"""
    print(json.dumps({"steps": steps, "seconds": seconds, "rate": steps / seconds, "accuracy": accuracy, **more}), flush=True)


def measure(a, train, accuracy):
    """For a role of TensorFlow with --per. train(steps) makes at least so many; returns (steps so far, when)."""
    train(a.per)  # builds the graph
    first, begun = train(a.warm)
    print("begun", flush=True)
    last, ended = train(a.steps)
    print("ended", flush=True)
    report(last - first, ended - begun, accuracy())


def words_of(path):
    """[] when the process or thread has ended meanwhile"""
    try:
        with open(path) as f:
            return f.read().rsplit(")", 1)[-1].split()
    except OSError:
        return []


def cpu_seconds(pid=None):
    """CPU time of this process and all that live below it."""
    pid = pid or os.getpid()
    own = sum(map(int, words_of(f"/proc/{pid}/stat")[11:13])) / os.sysconf("SC_CLK_TCK")
    children = [child for path in glob.glob(f"/proc/{pid}/task/*/children") for child in words_of(path)]
    return own + sum(map(cpu_seconds, children))


def addresses(count):
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    names = ["127.0.0.1:%d" % h.getsockname()[1] for h in holders]
    for h in holders:
        h.close()
    return names


class Roles:
    """with Roles() as r: p = r.start([...]). Whatever still runs at the end of the block is killed."""

    def __init__(self):
        self.processes = []

    def __enter__(self):
        return self

    def start(self, command, **settings):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        p = subprocess.Popen(command, text=True, **{**pipes, **settings})
        self.processes.append(p)
        return p

    def again(self, *more, **settings):
        """This script once more, with further arguments."""
        return self.start([sys.executable, *sys.argv, *more], **settings)

    def pass_on_result(self, process):
        """The role that measures says `begun`, `ended`, and then its result, to which the CPU time of all roles is added."""
        marks = {}
        for line in process.stdout:
            marks.setdefault(line.strip(), cpu_seconds())
            if line.startswith("{"):
                result = json.loads(line)
                print(json.dumps({**result, "cpu": marks["ended"] - marks["begun"]}), flush=True)
                return

    def __exit__(self, *_):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
        for p in self.processes:
            p.wait()


def die_with_signal():
    """So that a contender that is told to stop leaves its `with` blocks, and kills its roles."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
