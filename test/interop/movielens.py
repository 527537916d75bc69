"""movielens.py TRAINYARD DATA - the example deploy/examples/movielens.yaml has the same error with `trainyard run` as with Keras, which
trains the same model.json on the same files: the mean of three seeds is at most 0.01 larger. DATA has train.csv and validation.csv."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np

TRAINYARD, DATA = sys.argv[1:3]
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/examples")
MANIFEST, MODEL = f"{EXAMPLES}/movielens.yaml", f"{EXAMPLES}/movielens/model.json"
SEEDS = 7, 8, 9
MORE = 0.01


def read(name):
    table = np.loadtxt(f"{DATA}/{name}.csv", delimiter=",", skiprows=1, dtype="float32")
    return {"user": table[:, :1], "movie": table[:, 1:2]}, table[:, 2:]


def of_manifest(pattern):
    return float(re.search(pattern, open(MANIFEST).read()).group(1))


def with_keras(seed, train, validation):
    keras.utils.set_random_seed(seed)
    model = keras.models.model_from_json(open(MODEL).read())
    metric = keras.metrics.RootMeanSquaredError(name="rmse")
    model.compile(optimizer=keras.optimizers.Adam(of_manifest(r"learning_rate: ([0-9.]+)")), loss="mse", metrics=[metric])
    model.fit(*train, batch_size=int(of_manifest(r"batchSize: (\d+)")), epochs=int(of_manifest(r"epochs: (\d+)")), verbose=0)
    return model.evaluate(*validation, batch_size=1024, verbose=0, return_dict=True)["rmse"]


def with_trainyard(seed, folder):
    output = f"{folder}/run-{seed}"
    command = [TRAINYARD, "run", MANIFEST, "--data-dir", folder, "--output-dir", output, "--set", f"fit.seed={seed}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL movielens: {' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return json.load(open(f"{output}/history.json"))["final"]["root_mean_squared_error"]


def seconds_and_errors(name, train):
    began = time.monotonic()
    errors = [train(seed) for seed in SEEDS]
    seconds = (time.monotonic() - began) / len(SEEDS)
    print(f"movielens: {name}: {' '.join(f'{e:.4f}' for e in errors)}, mean {np.mean(errors):.4f}, {seconds:.1f} s each")
    return np.mean(errors)


train, validation = read("train"), read("validation")
print(f"movielens: the mean rating: {np.sqrt(np.mean((validation[1] - train[1].mean()) ** 2)):.4f}")
with tempfile.TemporaryDirectory() as folder:
    for path in (f"{DATA}/train.csv", f"{DATA}/validation.csv", MODEL):
        shutil.copy(path, folder)
    ours = seconds_and_errors("trainyard", lambda seed: with_trainyard(seed, folder))
theirs = seconds_and_errors(f"Keras {keras.__version__}", lambda seed: with_keras(seed, train, validation))
if not ours <= theirs + MORE:
    print(f"FAIL movielens: the root mean squared error is {ours:.4f}, that of Keras {theirs:.4f}")
    sys.exit(1)
