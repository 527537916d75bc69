"""shakespeare.py TRAINYARD DATA - the example deploy/examples/shakespeare.yaml is as accurate with `trainyard run` as with Keras, which
trains the same layers on the same text: the mean accuracy of three seeds is at most 0.01 less, and at least 0.10 more than that of the
most frequent kind. DATA has train.csv and validation.csv. Keras numbers the words by TextVectorization, adapted on train.csv."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
from keras import layers

TRAINYARD, DATA = sys.argv[1:3]
MANIFEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/examples/shakespeare.yaml")
KINDS = ["comedy", "history", "tragedy"]
SEEDS = 7, 8, 9
LESS, MORE = 0.01, 0.10


def of_manifest(pattern):
    return float(re.search(pattern, open(MANIFEST).read()).group(1))


TOKENS, LENGTH = int(of_manifest(r"maxTokens: (\d+)")), int(of_manifest(r"outputSequenceLength: (\d+)"))


def read(name):
    with open(f"{DATA}/{name}.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [text for text, _ in rows], np.array([KINDS.index(kind) for _, kind in rows])


def with_keras(seed, train, validation):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((LENGTH,)),
            layers.Embedding(TOKENS, int(of_manifest(r"output_dim: (\d+)")), mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dropout(of_manifest(r"rate: ([0-9.]+)")),
            layers.Dense(3, activation="softmax"),
        ]
    )
    adam = keras.optimizers.Adam(of_manifest(r"learning_rate: ([0-9.]+)"))
    model.compile(optimizer=adam, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(*train, batch_size=int(of_manifest(r"batchSize: (\d+)")), epochs=int(of_manifest(r"epochs: (\d+)")), verbose=0)
    return model.evaluate(*validation, batch_size=1024, verbose=0, return_dict=True)["accuracy"]


def with_trainyard(seed, folder):
    output = f"{folder}/run-{seed}"
    command = [TRAINYARD, "run", MANIFEST, "--data-dir", DATA, "--output-dir", output, "--set", f"fit.seed={seed}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"FAIL shakespeare: {' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return json.load(open(f"{output}/history.json"))["final"]["accuracy"]


def seconds_and_accuracies(name, train):
    began = time.monotonic()
    all = [train(seed) for seed in SEEDS]
    seconds = (time.monotonic() - began) / len(SEEDS)
    print(f"shakespeare: {name}: accuracy {' '.join(f'{a:.4f}' for a in all)}, mean {np.mean(all):.4f}, {seconds:.1f} s each", flush=True)
    return np.mean(all)


train, validation = read("train"), read("validation")
most = np.mean(validation[1] == np.bincount(train[1]).argmax())
print(f"shakespeare: the most frequent kind: {most:.4f}")
vectorize = layers.TextVectorization(max_tokens=TOKENS, output_sequence_length=LENGTH)
vectorize.adapt(train[0])
numbers = [(np.array(vectorize(text)), kinds) for text, kinds in (train, validation)]
theirs = seconds_and_accuracies(f"Keras {keras.__version__}", lambda seed: with_keras(seed, *numbers))
with tempfile.TemporaryDirectory() as folder:
    ours = seconds_and_accuracies("trainyard", lambda seed: with_trainyard(seed, folder))
if not (ours >= theirs - LESS and ours >= most + MORE):
    print(f"FAIL shakespeare: the accuracy is {ours:.4f}, that of Keras {theirs:.4f}, of the most frequent kind {most:.4f}")
    sys.exit(1)
