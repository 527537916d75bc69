"""What the comparisons with other programs have in common: the machine, the versions, whether it was quiet, and the page."""

import importlib.metadata
import operator
import os
import platform
import re
import subprocess
import sys
import time

QUIET = 0.10  # of the machine
QUIET_WAIT_SECONDS = 5


def busy_share(seconds=1.0):
    def read():
        with open("/proc/stat") as f:
            ticks = [int(t) for t in f.readline().split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]

    all_before, idle_before = read()
    time.sleep(seconds)
    all_after, idle_after = read()
    return 1 - (idle_after - idle_before) / max(1, all_after - all_before)


def wait_for_quiet():
    """Gives up after a while: how busy the machine was is part of the result."""
    end = time.monotonic() + QUIET_WAIT_SECONDS
    while (busy := busy_share()) > QUIET and time.monotonic() < end:
        pass
    return busy


def field(path, name, default="?"):
    with open(path) as f:
        found = re.search(rf"^{name}\s*[:=]\s*\"?([^\"\n]*)", f.read(), re.M)
    return found[1] if found else default


def now():
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def machine():
    cpu = "{}, family {}, model {}".format(*(field("/proc/cpuinfo", n) for n in ("model name", "cpu family", "model")))
    memory = int(field("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    return f"* {cpu}: {os.cpu_count()} cores, {memory:.0f} GiB; {field('/etc/os-release', 'PRETTY_NAME')}, Linux {platform.release()}."


def programs(trainyard, core, packages):
    """core: OpenBLAS's, as our programs print it."""
    version = subprocess.run([trainyard, "version"], capture_output=True, text=True, check=True).stdout.split("\n")
    ours = "; ".join(line.strip() for line in version if line.strip())
    theirs = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
    return f"* {ours}, OpenBLAS core {core}. Python {platform.python_version()}, {theirs}."


def load(averages, worst):
    text = " ".join(f"{x:.1f}" for x in averages)
    return f"* Load average when it began: {text}. Busiest second before any turn: {worst:.0%} of the machine."


def verdict(ratio, target, reaches=operator.ge):
    if target is None:
        return "published, no target"
    return f"{target} x: {'reached' if reaches(ratio, target) else '**missed**'}"


def write(path, name, lines):
    """Puts the lines between <!-- name --> and <!-- /name -->."""
    with open(path) as f:
        page = f.read()
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"{path}: needs the lines {begin.strip()} and {end} once each")
    text = page[: page.index(begin) + len(begin)] + "\n".join(lines) + "\n" + page[page.index(end) :]
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)
