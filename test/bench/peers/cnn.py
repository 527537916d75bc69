"""Trainyard and TensorFlow train two small image networks on the same machine, in turns, in one run.

usage: cnn.py --trainyard PROGRAM [--rounds N] [--page FILE]

The examples are random numbers in memory: the time of a step does not depend on their values. TensorFlow takes its step
(tf.function, GradientTape, Adam) on tensors that are there already. Trainyard is `trainyard run`, which reads npy files and
writes summaries. Both have one thread, or two: TensorFlow's intra-op threads, and Trainyard's Mirrored with two batches for each
update. Examples a second therefore compare. The best round of each counts, because TensorFlow with two threads has slow rounds of
which the machine is the cause. The table is printed, and written into FILE between <!-- cnn --> and <!-- /cnn -->.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

import report

BATCH, EXAMPLES = 64, 6400
NETS = {
    # name: input, layers, classes: Keras's names
    "CIFAR-shaped": (
        [32, 32, 3],
        [
            ("Conv2D", {"filters": 32, "kernel_size": 3, "activation": "relu"}),
            ("MaxPooling2D", {}),
            ("Conv2D", {"filters": 64, "kernel_size": 3, "activation": "relu"}),
            ("MaxPooling2D", {}),
            ("Conv2D", {"filters": 64, "kernel_size": 3, "activation": "relu"}),
            ("Flatten", {}),
            ("Dense", {"units": 64, "activation": "relu"}),
            ("Dense", {"units": 10, "activation": "softmax"}),
        ],
    ),
    "MNIST-shaped": (
        [28, 28, 1],
        [
            ("Conv2D", {"filters": 32, "kernel_size": 3, "activation": "relu"}),
            ("Conv2D", {"filters": 64, "kernel_size": 3, "activation": "relu"}),
            ("MaxPooling2D", {}),
            ("Flatten", {}),
            ("Dense", {"units": 128, "activation": "relu"}),
            ("Dense", {"units": 10, "activation": "softmax"}),
        ],
    ),
}
TARGETS = {"CIFAR-shaped": 2.3, "MNIST-shaped": 2.0}


def write_data(folder, net):
    import numpy as np

    r = np.random.default_rng(7)
    shape = NETS[net][0]
    np.save(f"{folder}/{net}-x.npy", r.random([EXAMPLES, *shape], dtype=np.float32))
    np.save(f"{folder}/{net}-y.npy", r.integers(0, 10, EXAMPLES).astype(np.int32))


def tensorflow_child(folder, net, threads):
    """Prints examples a second: the best of five turns over all batches."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    shape, layers = NETS[net]
    model = keras.Sequential([keras.Input(shape), *(getattr(keras.layers, name)(**config) for name, config in layers)])
    x, y = np.load(f"{folder}/{net}-x.npy"), np.load(f"{folder}/{net}-y.npy")
    batches = [(tf.constant(x[i : i + BATCH]), tf.constant(y[i : i + BATCH])) for i in range(0, EXAMPLES, BATCH)]
    loss_of, optimizer = keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            loss = loss_of(b, model(a, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    for a, b in batches[:10]:
        step(a, b)
    rates = []
    for _ in range(5):
        begin = time.perf_counter()
        for a, b in batches:
            loss = step(a, b)
        loss.numpy()
        rates.append(EXAMPLES / (time.perf_counter() - begin))
    print("examples/s", max(rates))


def manifest(net, threads):
    shape, layers = NETS[net]
    lines = [f"      - {name}: {{{', '.join(f'{k}: {v}' for k, v in config.items())}}}" for name, config in layers]
    strategy = "  strategy: {name: Mirrored, replicas: 2}\n" if threads == 2 else ""
    return (
        "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: cnn}\nspec:\n"
        f"  model:\n    inputShape: {shape}\n    layers:\n" + "\n".join(lines) + "\n"
        "  compile: {optimizer: {Adam: {learning_rate: 0.001}}, loss: sparse_categorical_crossentropy}\n"
        f"  data: {{train: {{format: npy, features: {net}-x.npy, labels: {net}-y.npy}}}}\n"
        f"{strategy}  fit: {{epochs: {4 * threads}, batchSize: {BATCH}, seed: 7}}\n"
    )


def measure(command):
    """What the program prints, and the peak of resident memory in MiB."""
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        sys.exit(f"cnn.py: {' '.join(command)} failed:\n{output[-2000:]}")
    return output, usage.ru_maxrss / 1024


def pinned(threads):
    return ["taskset", "-c", ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:threads])]


def ours(a, folder, net, threads):
    path = f"{folder}/{net}-{threads}.yaml"
    with open(path, "w") as f:
        f.write(manifest(net, threads))
    command = [a.trainyard, "run", path, "--data-dir", folder, "--output-dir", f"{folder}/out", "--fresh"]
    output, memory = measure(pinned(threads) + command)
    steps, seconds = re.search(r"(\d+) steps in ([\d.]+) s", output).groups()
    a.core = re.search(r"BLAS core (\w+)", output)[1]
    return int(steps) * threads * BATCH / float(seconds), memory


def theirs(folder, net, threads):
    output, memory = measure(pinned(threads) + [sys.executable, __file__, "--child", folder, net, str(threads)])
    return float(re.search(r"examples/s ([\d.]+)", output)[1]), memory


def turn(a, folder, net, threads):
    a.worst = max(a.worst, report.wait_for_quiet())
    return ours(a, folder, net, threads), theirs(folder, net, threads)


def table(a, folder):
    yield "| network, batch 64, Adam | threads | Trainyard, examples/s | TensorFlow, examples/s | ratio of the best rounds (of each round) | target | peak resident MiB, with the mapped data files |"
    yield "|---|---|---|---|---|---|---|"
    for net in NETS:
        write_data(folder, net)
        for threads in (1, 2):
            us, them = zip(*(turn(a, folder, net, threads) for _ in range(a.rounds)))
            ratios = [u[0] / t[0] for u, t in zip(us, them)]
            u, t = max(v[0] for v in us), max(v[0] for v in them)
            yield (
                f"| {net} | {threads} | {u:,.0f} | {t:,.0f} | {u / t:.2f} ({min(ratios):.2f}-{max(ratios):.2f}) | "
                f"{report.verdict(u / t, TARGETS[net])} | {max(v[1] for v in us):.0f}, {max(v[1] for v in them):.0f} |"
            )


def main():
    if sys.argv[1:2] == ["--child"]:
        return tensorflow_child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainyard", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page")
    a = parser.parse_args()
    a.worst, load = 0.0, os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(table(a, folder))
    lines = [
        f"* {report.now()}, `test/bench/peers/cnn.py`: {a.rounds} rounds, in turns.",
        report.machine(),
        report.programs(a.trainyard, a.core, ("tensorflow-cpu", "keras", "numpy")),
        report.load(load, a.worst),
        "",
        *rows,
    ]
    print("\n".join(lines))
    if a.page:
        report.write(a.page, "cnn", lines)


if __name__ == "__main__":
    main()
