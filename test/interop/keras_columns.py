"""keras_columns.py TRAINYARD - `trainyard export --preprocessing` of runs on csv files: keras.models.load_model() opens the file, its
inputs are the columns as they stand in the csv, it predicts what `trainyard predict` predicts, and its weights are in the groups in
which Keras itself saves them."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import h5py
import keras
import numpy as np
import tensorflow as tf

TRAINYARD = os.path.abspath(sys.argv[1])
L = keras.layers
TOLERANCE = 1e-6

TEXTS = ["The dog runs!", "a [UNK] cat and the dog", "nothing of all that is KNOWN here", "Don't panic, the Zoë", "dog dog DOG.", "cat\tdog"]
CITIES = ["b", "a", "Bonn", "[UNK]", "c", "b"]
COUNTRIES = ["x", "y", "y", "x", "x", "y"]


def number(i):
    return f"{(i * 37 % 19) / 4 - 2:g}"


def rows(*columns):
    """Twelve examples; a column is a list of texts, or a function of the example's number. The last one is the label."""
    return [[c(i) if callable(c) else c[i % len(c)] for c in columns] for i in range(12)]


def two_inputs():
    words, row = keras.Input((4,), name="words"), keras.Input((5,), name="row")
    tower = keras.Sequential([keras.Input((4,)), L.Embedding(20, 3, mask_zero=True), L.GlobalAveragePooling1D()], name="tower")
    both = L.Concatenate(name="both")([tower(words), L.Normalization(name="norm")(row)])
    return keras.Model([row, words], [L.Dense(1, name="price")(both), L.Dense(2, "tanh", name="place")(both)], name="n")


HIDDEN = "{layers: [Dense: {units: 5, activation: tanh}, Dense: {units: 1}]}"
WORDS = "{layers: [Embedding: {input_dim: 12, output_dim: 3, mask_zero: true}, GlobalAveragePooling1D: {}, Dense: {units: 2, activation: softmax}]}"
NUMBER = "{inputShape: [1], layers: [Embedding: {input_dim: 4, output_dim: 3}, Flatten: {}, Dense: {units: 1}]}"

# name: (model, loss, fields of data.train, header or None, rows)
CASES = {
    "words that are counted, categories, numbers": (
        HIDDEN, "mse",
        "columns: [{name: text, type: text, vocabulary: auto, encoding: count}, {name: city, type: category, vocabulary: [a, b], "
        "numOovIndices: 1, encoding: one_hot}, {name: country, type: category, vocabulary: auto, encoding: one_hot}, {name: n}, "
        "{name: i, type: int}]",
        ["country", "text", "i", "n", "city", "y"], rows(COUNTRIES, TEXTS, lambda i: str(i), number, CITIES, number)),
    "numbers of words": (
        WORDS, "sparse_categorical_crossentropy",
        "columns: [{name: text, type: text, vocabulary: auto, maxTokens: 12, outputSequenceLength: 5}]",
        ["text", "y"], rows(TEXTS, ["0", "1"])),
    "characters, several hot": (
        HIDDEN, "mse",
        "columns: [{name: text, type: text, vocabulary: [T, d, o, g, ë], standardize: none, split: character, encoding: multi_hot}]",
        ["text", "y"], rows(TEXTS, number)),
    "lower case only, punctuation only": (
        HIDDEN, "mse",
        "columns: [{name: a, type: text, vocabulary: [dog., '[UNK]', the, dog], standardize: lower, encoding: count}, "
        "{name: b, type: text, vocabulary: [The, dog, DOG], standardize: strip_punctuation, outputSequenceLength: 3}]",
        ["a", "b", "y"], rows(TEXTS, TEXTS[::-1], number)),
    "n-grams": (
        HIDDEN, "mse",
        "columns: [{name: a, type: text, vocabulary: auto, ngrams: 2, encoding: count}, "
        "{name: b, type: text, vocabulary: auto, maxTokens: 9, ngrams: [3, 1], encoding: multi_hot}, "
        "{name: c, type: text, vocabulary: auto, ngrams: [2], split: character, outputSequenceLength: 7}]",
        ["a", "b", "c", "y"], rows(TEXTS, TEXTS[::-1], TEXTS, number)),
    "tf-idf": (
        HIDDEN, "mse",
        "columns: [{name: a, type: text, vocabulary: auto, encoding: tf_idf}, "
        "{name: b, type: text, vocabulary: auto, maxTokens: 9, ngrams: 2, encoding: tf_idf}, "
        "{name: city, type: category, vocabulary: auto, maxTokens: 4, numOovIndices: 1, encoding: tf_idf}, "
        "{name: country, type: category, vocabulary: auto, encoding: tf_idf}]",
        ["a", "b", "city", "country", "y"], rows(TEXTS, TEXTS[::-1], CITIES, COUNTRIES, number)),
    "salted hashes": (
        HIDDEN, "mse",
        "columns: [{name: city, type: category, numBins: 5, salt: 1337, encoding: one_hot}, "
        "{name: country, type: category, numBins: 97, salt: [-3, 9], encoding: int}]",
        ["city", "country", "y"], rows(CITIES, TEXTS, number)),
    "one number of a category": (
        NUMBER, "mse", "columns: [{name: city, type: category, vocabulary: ['[UNK]', b, a], numOovIndices: 1, encoding: int}]",
        ["city", "y"], rows(CITIES, number)),
    "a category without other words": (
        HIDDEN, "mse",
        "columns: [{name: k, type: category, vocabulary: auto, encoding: int}, {name: size (m), type: category, vocabulary: auto, "
        "encoding: one_hot}, {name: größe}, {name: sequential}]",
        ["k", "size (m)", "größe", "sequential", "y"], rows(CITIES, ["1", "2", "30"], number, number, number)),
    "numbers without a header": (HIDDEN, "mse", "header: false", None, rows(number, lambda i: str(i), number)),
    "columns without a header": (
        HIDDEN, "mse", "header: false, label: 0, columns: [{name: '2', type: category, vocabulary: auto, encoding: one_hot}, {name: '1'}]",
        None, rows(number, lambda i: str(i), COUNTRIES)),
    "two inputs and two outputs": (
        two_inputs(), "{price: mse, place: mse}",
        "inputs: {words: text, row: [k, country, city, m]}, label: {price: y, place: [n, i]}, columns: [{name: y, type: float}, "
        "{name: n, type: float}, {name: i, type: float}, {name: m}, {name: text, type: text, vocabulary: auto, outputSequenceLength: 4}, "
        "{name: country, type: category, vocabulary: auto, encoding: one_hot}, {name: unused, type: date}, "
        "{name: city, type: category, vocabulary: [a, '[UNK]', b, c, Bonn], encoding: int}, {name: k}]",
        ["text", "m", "n", "i", "country", "city", "k", "y", "unused"],
        rows(TEXTS, number, number, lambda i: str(i), COUNTRIES, CITIES, lambda i: number(i + 3), number, ["2026-11-30"])),
    "hashed words and ranges": (
        HIDDEN, "mse",
        "columns: [{name: city, type: category, numBins: 5, encoding: one_hot}, {name: country, type: category, numBins: 9, encoding: int}, "
        "{name: n, binBoundaries: [-1, 0, 1.5], encoding: one_hot}, {name: i, type: int, binBoundaries: [3, 8], encoding: int}]",
        ["city", "country", "n", "i", "y"], rows(CITIES, COUNTRIES, number, lambda i: str(i), number)),
}


def write_job(folder, model, loss, data):
    text = model if isinstance(model, str) else "{kerasFile: model.json}"
    label = "" if "label:" in data or "header:" in data else "label: y, "
    with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
        file.write(f"apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {{name: j}}\nspec:\n  model: {text}\n"
                   f"  compile: {{optimizer: Adam, loss: {loss}}}\n"
                   f"  data: {{train: {{format: csv, files: t.csv, {label}{data}}}}}\n  fit: {{epochs: 3, batchSize: 4, seed: 7}}\n")
    if not isinstance(model, str):
        with open(os.path.join(folder, "model.json"), "w", encoding="utf-8") as file:
            file.write(model.to_json())


def write_csv(folder, header, lines):
    with open(os.path.join(folder, "t.csv"), "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(([header] if header else []) + lines)


def trainyard(folder, *arguments):
    done = subprocess.run([TRAINYARD, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"trainyard {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout


def valid_name(column):
    """The rule of docs/keras.md."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in column)
    return name if column[:1].isascii() and column[:1].isalpha() else "column_" + name


def columns_of(model, header, lines):
    """What the csv has for each input."""
    place = {valid_name(name): i for i, name in enumerate(header or map(str, range(len(lines[0]))))}
    return {t.name: tf.constant([[line[place[t.name]] if t.dtype == "string" else float(line[place[t.name]])] for line in lines],
                                dtype=t.dtype) for t in model.inputs}


def variables(path):
    """The variables, and the groups of all layers but those of the model within, of which we write only what has variables."""
    with zipfile.ZipFile(path) as archive, h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
        found = []
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) or name.count("/") < 2 else None)
        return sorted(found)


def check(name, model, loss, data, header, lines):
    with tempfile.TemporaryDirectory() as folder:
        write_job(folder, model, loss, data)
        write_csv(folder, header, lines)
        trainyard(folder, "run", "job.yaml", "--output-dir", "run")
        trainyard(folder, "export", "run", "-o", "model.keras", "--preprocessing")
        theirs = list(csv.reader(io.StringIO(trainyard(folder, "predict", "run", "t.csv"))))[1:]
        ours = np.array(theirs, dtype="float64")
        path, again = os.path.join(folder, "model.keras"), os.path.join(folder, "again.keras")
        loaded = keras.models.load_model(path)
        assert all(t.shape == (None, 1) for t in loaded.inputs)
        x = columns_of(loaded, header, lines)
        loaded.save(again)
        assert variables(path) == variables(again), sorted(set(variables(path)) ^ set(variables(again)))
        worst = 0.0
        for m in (loaded, keras.models.load_model(again)):
            for given in (x, list(x.values())):
                y = np.concatenate(keras.tree.flatten(m.predict(given, verbose=0)), axis=1)
                assert y.shape == ours.shape, (y.shape, ours.shape)
                worst = max(worst, float(np.abs(y - ours).max() / max(1, np.abs(ours).max())))
        print(f"{name}: {', '.join(x)}: largest difference {worst:.1e}")
        return worst <= TOLERANCE


def main():
    warnings.simplefilter("ignore")
    failed, skipped = [], 0
    for name, case in CASES.items():
        try:
            if not check(name, *case):
                failed.append(name)
        except RuntimeError as why:
            if "numBins" not in case[2] or "is not known" not in str(why):
                raise
            skipped += 1
            print(f"SKIP {name}: this trainyard has no numBins")
    if failed:
        sys.exit(f"FAILED: Keras {keras.__version__} predicts otherwise from columns: {', '.join(failed)}")
    print(f"passed: Keras {keras.__version__} predicts the same from the columns of {len(CASES) - skipped} runs")


main()
