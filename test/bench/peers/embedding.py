"""Trainyard and TensorFlow 1's parameter servers train a recommender on the same machine, in turns, in one run.

usage: embedding.py --trainyard PROGRAM [--rounds N] [--scale X] [--page FILE]

Two tables of 10,000 rows of 32 numbers, one for users and one for movies, and Dense 64 relu - Dense 1 behind them; Adagrad, mean
squared error, batches of 64; 1 ps and 2 asynchronous workers. A rating is a number of the user and one of the movie, with noise
of 0.1; the error is that on other ratings. Trainyard pushes the gradients of whole tables, TensorFlow 1 the rows of a
batch (IndexedSlices), to which alone its ps applies them. With Adagrad that is the same: a row without a gradient stays. (Adam
moves all rows, and TensorFlow 1's Adam with two asynchronous workers leaves errors of 5 to 11: between the updates of its first
and of its second moment another worker may read both.) The table is printed, and written into FILE between
<!-- embedding --> and <!-- /embedding -->.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import report
from ours import wait_for, without_shared_memory
from roles import Roles, addresses, die_with_signal

ROWS, WIDTH, HIDDEN, BATCH = 10000, 32, 64, 64
EXAMPLES, TEST = 200000, 20000
WARM, RATE = 300, 0.05
# name: steps to measure, arguments of the contender
CONTENDERS = {
    "Trainyard, one process": (20000, ["ours"]),
    "Trainyard, 1 ps + 2 workers": (12000, ["ours", "--ps"]),
    "Trainyard, 1 ps + 2 workers, all through TCP": (1000, ["ours", "--ps", "--tcp"]),
    "Trainyard, 1 ps + 2 workers, all through TCP, no TLS": (1500, ["ours", "--ps", "--tcp", "--insecure"]),
    "TensorFlow 1 parameter server, 1 ps + 2 workers": (3000, ["tf1"]),
}
THEIRS = "TensorFlow 1 parameter server, 1 ps + 2 workers"


# ---- the data, and how well a model knows them ----


def write_data(folder):
    r = np.random.default_rng(7)
    users, movies = r.normal(size=ROWS) / 2**0.5, r.normal(size=ROWS) / 2**0.5
    for part, n in (("train", EXAMPLES), ("test", TEST)):
        user, movie = r.integers(0, ROWS, n), r.integers(0, ROWS, n)
        rating = users[user] + movies[movie] + r.normal(size=n) * 0.1
        for name, values in (("user", user), ("movie", movie), ("rating", rating)):
            np.save(f"{folder}/{part}-{name}.npy", values.astype(np.float32)[:, None])


def part(folder, name):
    return [np.load(f"{folder}/{name}-{what}.npy") for what in ("user", "movie", "rating")]


def error(w, folder):
    """w: the six variables by name"""
    user, movie, rating = part(folder, "test")
    x = np.concatenate([w["users"][user[:, 0].astype(int)], w["movies"][movie[:, 0].astype(int)]], axis=1)
    guess = np.maximum(x @ w["kernel1"] + w["bias1"], 0) @ w["kernel2"] + w["bias2"]
    return float(np.sqrt(np.mean((guess - rating) ** 2)))


# ---- Trainyard ----


def layer(kind, name, inputs, **config):
    nodes = [[[i, 0, 0, {}] for i in inputs]] if inputs else []
    return {"class_name": kind, "name": name, "config": {"name": name, **config}, "inbound_nodes": nodes}


def write_job(folder, data, ps):
    tables = [(name, f"{name}s") for name in ("user", "movie")]
    layers = [layer("InputLayer", name, [], batch_input_shape=[None, 1]) for name, _ in tables]
    for name, table in tables:
        layers += [layer("Embedding", table, [name], input_dim=ROWS, output_dim=WIDTH), layer("Flatten", f"{name}_row", [table])]
    layers += [
        layer("Concatenate", "both", ["user_row", "movie_row"], axis=-1),
        layer("Dense", "hidden", ["both"], units=HIDDEN, activation="relu"),
        layer("Dense", "rating", ["hidden"], units=1),
    ]
    config = {"name": "recommender", "layers": layers, "input_layers": [[n, 0, 0] for n, _ in tables], "output_layers": [["rating", 0, 0]]}
    job = {
        "apiVersion": "trainyard.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "recommender"},
        "spec": {
            "model": {"keras": {"class_name": "Functional", "config": config}},
            "compile": {"optimizer": {"Adagrad": {"learning_rate": RATE, "initial_accumulator_value": 0.1}}, "loss": "mse"},
            "data": {"train": {"format": "npy", "features": {n: f"train-{n}.npy" for n, _ in tables}, "labels": "train-rating.npy"}},
            "fit": {"epochs": 10000, "batchSize": BATCH, "seed": 7},
        },
    }
    if ps:
        job["spec"]["replicaSpecs"] = {"Chief": {}, "PS": {"replicas": 1}, "Worker": {"replicas": 2}}
    with open(f"{folder}/job.yaml", "w") as f:
        json.dump(job, f)
    return f"{folder}/job.yaml"


def ours_weights(trainyard, out):
    subprocess.run([trainyard, "export", out, "-o", out + "/weights.npz"], check=True, stdout=subprocess.DEVNULL)
    names = {"users": "users/embeddings", "movies": "movies/embeddings", "kernel1": "hidden/kernel", "bias1": "hidden/bias"}
    names |= {"kernel2": "rating/kernel", "bias2": "rating/bias"}
    with np.load(out + "/weights.npz") as file:
        return {key: file[name] for key, name in names.items()}


def ours(a):
    what = ("trainyard-ps", "trainyard_ps_step") if a.ps else ("trainyard-worker", "trainyard_worker_steps_total")
    with tempfile.TemporaryDirectory() as folder, Roles() as roles:
        out = folder + "/out"
        command = [a.trainyard, "run", write_job(folder, a.data, a.ps), "--data-dir", a.data, "--output-dir", out]
        command += ["--insecure"] if a.insecure else []
        programs = without_shared_memory(a.trainyard, folder) if a.tcp else {}
        with open(folder + "/log", "w+") as log:
            job = roles.start(command, stdout=log, stderr=log, env={**os.environ, **programs})
            wait_for(job, WARM, *what)
            first = wait_for(job, 0, *what)
            wait_for(job, first[0] + a.steps, *what)
            last = wait_for(job, 0, *what)
            job.send_signal(signal.SIGINT)
            job.wait(timeout=60)
        tell(last[0] - first[0], last[1] - first[1], error(ours_weights(a.trainyard, out), a.data))


# ---- TensorFlow 1 ----


def tf1(a):
    ps, *workers = addresses(3)
    cluster = json.dumps({"ps": [ps], "worker": workers})
    with Roles() as roles:
        roles.again("--role", "ps", "--cluster", cluster)
        chief = roles.again("--role", "worker", "--cluster", cluster)
        chief.stdout.readline()
        roles.again("--role", "worker", "--index", "1", "--cluster", cluster).stdout.readline()
        print("both", file=chief.stdin, flush=True)
        for line in chief.stdout:
            if line.startswith("{"):
                print(line, end="", flush=True)
                return


def tf1_network(tf, user, movie, rating):
    def weights(name, *shape, how=None):
        make = how or (tf.glorot_uniform_initializer() if len(shape) == 2 else tf.zeros_initializer())
        return tf.get_variable(name, shape, initializer=make)

    uniform = tf.random_uniform_initializer(-0.05, 0.05)
    w = {name: weights(name, ROWS, WIDTH, how=uniform) for name in ("users", "movies")}
    w |= {"kernel1": weights("kernel1", 2 * WIDTH, HIDDEN), "bias1": weights("bias1", HIDDEN)}
    w |= {"kernel2": weights("kernel2", HIDDEN, 1), "bias2": weights("bias2", 1)}
    rows = [tf.nn.embedding_lookup(w["users"], user), tf.nn.embedding_lookup(w["movies"], movie)]
    hidden = tf.nn.relu(tf.matmul(tf.concat(rows, 1), w["kernel1"]) + w["bias1"])
    return tf.reduce_mean(tf.square(tf.matmul(hidden, w["kernel2"]) + w["bias2"] - rating)), w


def tf1_batches(tf, folder, seed):
    user, movie, rating = part(folder, "train")
    data = tf.data.Dataset.from_tensor_slices((user[:, 0].astype(np.int32), movie[:, 0].astype(np.int32), rating))
    data = data.shuffle(20000, seed=seed).repeat().batch(BATCH, drop_remainder=True).prefetch(8)
    return tf.data.make_one_shot_iterator(data).get_next()


def tf1_role(a):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.disable_resource_variables()
    tf.logging.set_verbosity(tf.logging.ERROR)
    cluster = tf.train.ClusterSpec(json.loads(a.cluster))
    server = tf.train.Server(cluster, job_name=a.role, task_index=a.index)
    if a.role == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{a.index}", cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        loss, weights = tf1_network(tf, *tf1_batches(tf, a.data, a.index))
        train = tf.train.AdagradOptimizer(RATE, initial_accumulator_value=0.1).minimize(loss, global_step=step)
    both = threading.Event()
    if a.index == 0:
        threading.Thread(target=lambda: sys.stdin.readline() and both.set(), daemon=True).start()
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{a.index}"])
    begun = None
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=a.index == 0, config=config) as session:
        session.run([train, step, loss])
        print("stepping", flush=True)
        while True:
            _, now, _ = session.run([train, step, loss])  # `step` is the ps's counter, which both workers move
            if begun is None and both.is_set() and now >= WARM:
                begun, first = time.perf_counter(), int(now)
            if begun is not None and now >= first + a.steps:
                break
        seconds = time.perf_counter() - begun
        values = session.run(weights)
    tell(int(now) - first, seconds, error(values, a.data))
    os._exit(0)  # TensorFlow would wait for the ps


# ---- the comparison ----


def tell(steps, seconds, rmse):
    print(json.dumps({"steps": steps, "seconds": seconds, "rate": steps / seconds, "error": rmse}), flush=True)


def run_once(name, a):
    steps, words = CONTENDERS[name]
    command = [sys.executable, os.path.abspath(__file__), "--contender", *words, "--data", a.data, "--trainyard", a.trainyard]
    command += ["--steps", str(int(steps * a.scale))]
    busy = report.wait_for_quiet()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if not done.stdout.startswith("{"):
        sys.exit(f"{name}: no result\n" + "\n".join(done.stderr.splitlines()[-10:]))
    result = json.loads(done.stdout)
    print(f"{name}: {result['rate']:.0f} steps/s, error {result['error']:.3f}; machine {busy:.0%} busy before", flush=True)
    return {**result, "busy": busy}


def table(results):
    yield f"| 2 tables of {ROWS:,} x {WIDTH}, Dense {HIDDEN} relu - Dense 1, Adagrad, batch {BATCH} | steps/s: median (range) | a round | error then | : TensorFlow 1 |"
    yield "|---|---|---|---|---|"
    theirs = statistics.median(r["rate"] for r in results[THEIRS])
    for name, runs in results.items():
        rates = [r["rate"] for r in runs]
        middle = statistics.median(rates)
        yield (f"| {name} | {middle:,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) | {runs[0]['steps']:,.0f} steps, "
               f"{statistics.median(r['seconds'] for r in runs):.1f} s | {statistics.median(r['error'] for r in runs):.3f} | {middle / theirs:.2f} |")


def compare(a):
    averages, names = os.getloadavg(), list(CONTENDERS)
    results = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as a.data:
        write_data(a.data)
        for turn in range(a.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                results[name].append(run_once(name, a))
    worst = max(r["busy"] for runs in results.values() for r in runs)
    lines = [f"* {report.now()}, `embedding.py`: {a.rounds} rounds, contenders in turns.", report.machine(), report.load(averages, worst), ""]
    lines += table(results)
    print("\n".join(["", *lines]))
    if a.page:
        report.write(a.page, "embedding", lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainyard", required=True)
    parser.add_argument("--page", help="write the table into this page")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1, help="this part of the steps, for a trial")
    hidden = {"--contender": {}, "--data": {}, "--role": {}, "--cluster": {}, "--index": {"type": int, "default": 0}, "--steps": {"type": int}}
    for name in ("--ps", "--tcp", "--insecure"):
        hidden[name] = {"action": "store_true"}
    for name, settings in hidden.items():
        parser.add_argument(name, help=argparse.SUPPRESS, **settings)
    a = parser.parse_args()
    die_with_signal()
    {None: compare, "ours": ours, "tf1": tf1_role if a.role else tf1}[a.contender](a)


main()
