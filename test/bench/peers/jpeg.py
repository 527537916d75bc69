"""Trainyard trains a small image network from JPEG files, and from their pixels in a npy file, in turns, in one run.

usage: jpeg.py --trainyard PROGRAM [--rounds N] [--page FILE]

Each epoch decodes all files again, in threads. So the difference is what decoding costs a run, and the share of its time in which it
waits for data is printed, too. The table is printed, and written into FILE between <!-- jpeg --> and <!-- /jpeg -->.
"""

import argparse
import os
import re
import tempfile

import cnn
import report

SOURCES = {
    "npy": "{format: npy, features: x.npy, labels: y.npy}",
    "JPEG": "{format: images, directory: jpeg, imageSize: [32, 32]}",
}


def write_data(folder):
    """Smooth pictures, as photographs are."""
    import numpy as np
    from PIL import Image

    r = np.random.default_rng(8)
    pixels = []
    for i in range(cnn.EXAMPLES):
        path = f"{folder}/jpeg/class{i % 10}/{i:05d}.jpg"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        small = Image.fromarray((r.random((8, 8, 3)) * 255).astype(np.uint8))
        small.resize((32, 32), Image.BICUBIC).save(path, quality=90)
        pixels.append(np.asarray(Image.open(path)))
    np.save(f"{folder}/x.npy", np.stack(pixels))
    np.save(f"{folder}/y.npy", (np.arange(cnn.EXAMPLES) % 10).astype(np.int32))


def manifest(source):
    text = cnn.manifest("CIFAR-shaped", 1).replace("layers:\n", "layers:\n      - Rescaling: {scale: 0.00392156862745098}\n")
    return re.sub(r"train: {.*?}", f"train: {SOURCES[source]}", text)


def turn(a, folder, source):
    """Examples a second, and the share of the time in which training waits for data."""
    path = f"{folder}/{source}.yaml"
    with open(path, "w") as f:
        f.write(manifest(source))
    a.worst = max(a.worst, report.wait_for_quiet())
    output, _ = cnn.measure([a.trainyard, "run", path, "--data-dir", folder, "--output-dir", f"{folder}/out", "--fresh"])
    steps, seconds = re.search(r"(\d+) steps in ([\d.]+) s", output).groups()
    a.core = re.search(r"BLAS core (\w+)", output)[1]
    return int(steps) * cnn.BATCH / float(seconds), int(re.search(r"data (\d+) %", output)[1])


def table(a, folder):
    yield "| CIFAR-shaped, Single, all processors | examples/s: median (range) | share of its time that training waits for data |"
    yield "|---|---|---|"
    rounds = [{source: turn(a, folder, source) for source in SOURCES} for _ in range(a.rounds)]
    for source in SOURCES:
        rates, waits = (sorted(values) for values in zip(*(r[source] for r in rounds)))
        middle = len(rates) // 2
        yield f"| from {source} | {rates[middle]:,.0f} ({rates[0]:,.0f}-{rates[-1]:,.0f}) | {waits[middle]} % |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainyard", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page")
    a = parser.parse_args()
    a.worst, load = 0.0, os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        rows = list(table(a, folder))
    lines = [
        f"* {report.now()}, `test/bench/peers/jpeg.py`: {a.rounds} rounds, in turns.",
        report.machine(),
        report.programs(a.trainyard, a.core, ("pillow",)),
        report.load(load, a.worst),
        "",
        *rows,
    ]
    print("\n".join(lines))
    if a.page:
        report.write(a.page, "jpeg", lines)


if __name__ == "__main__":
    main()
