"""census.py TRAINYARD DATA - the example deploy/examples/census.yaml has the same AUC with `trainyard run` as with Keras, which trains
the same model.json on the same tables: the mean of three seeds is at most 0.003 smaller. DATA has train.csv and test.csv. The words
of the columns become numbers here as the manifest says: in the order of their bytes, from 1, and 0 for all others."""

import csv
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
MANIFEST, MODEL = f"{EXAMPLES}/census.yaml", f"{EXAMPLES}/census/model.json"
SEEDS = 7, 8, 9
LESS = 0.003
INPUTS = {name: re.findall(r"\w+", columns) for name, columns in re.findall(r"^        (\w+): \[([^\]]*)\]$", open(MANIFEST).read(), re.M)}


def of_manifest(pattern):
    return float(re.search(pattern, open(MANIFEST).read()).group(1))


def table(name):
    with open(f"{DATA}/{name}.csv", newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, zip(*rows)))


def numbers(words, vocabulary):
    place = {word: i + 1 for i, word in enumerate(vocabulary)}
    return np.array([place.get(word, 0) for word in words])


def read(name, words):
    columns = table(name)
    if not words:
        words.update((column, sorted(set(values), key=str.encode)) for column, values in columns.items())
    x = {
        "numbers": np.array([columns[column] for column in INPUTS["numbers"]], dtype="float32").T,
        "facts": np.concatenate(
            [np.eye(len(words[column]) + 1, dtype="float32")[numbers(columns[column], words[column])] for column in INPUTS["facts"]], axis=1
        ),
    }
    for word in INPUTS.keys() - x.keys():
        x[word] = numbers(columns[word], words[word])[:, None].astype("float32")
    return x, (np.array(columns["income"]) == "above").astype("float32")[:, None]


def with_keras(seed, train, test):
    keras.utils.set_random_seed(seed)
    model = keras.models.model_from_json(open(MODEL).read())
    model.get_layer("norm").adapt(train[0]["numbers"])
    metric = keras.metrics.AUC(name="auc")
    model.compile(optimizer=keras.optimizers.Adam(of_manifest(r"learning_rate: ([0-9.]+)")), loss="binary_crossentropy", metrics=[metric])
    model.fit(*train, batch_size=int(of_manifest(r"batchSize: (\d+)")), epochs=int(of_manifest(r"epochs: (\d+)")), verbose=0)
    return model.evaluate(*test, batch_size=4096, verbose=0, return_dict=True)["auc"]


def with_trainyard(seed, folder):
    output = f"{folder}/run-{seed}"
    command = [TRAINYARD, "run", MANIFEST, "--data-dir", folder, "--output-dir", output, "--set", f"fit.seed={seed}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL census: {' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return json.load(open(f"{output}/history.json"))["final"]["AUC"]


def seconds_and_areas(name, train):
    began = time.monotonic()
    areas = [train(seed) for seed in SEEDS]
    seconds = (time.monotonic() - began) / len(SEEDS)
    print(f"census: {name}: AUC {' '.join(f'{a:.4f}' for a in areas)}, mean {np.mean(areas):.4f}, {seconds:.1f} s each")
    return np.mean(areas)


words = {}
train, test = read("train", words), read("test", words)
with tempfile.TemporaryDirectory() as folder:
    for path in (f"{DATA}/train.csv", f"{DATA}/test.csv", MODEL):
        shutil.copy(path, folder)
    ours = seconds_and_areas("trainyard", lambda seed: with_trainyard(seed, folder))
theirs = seconds_and_areas(f"Keras {keras.__version__}", lambda seed: with_keras(seed, train, test))
if not ours >= theirs - LESS:
    print(f"FAIL census: the AUC is {ours:.4f}, that of Keras {theirs:.4f}")
    sys.exit(1)
