"""Writes test/data/data/{learn,valid}: what Keras's TextVectorization makes of texts.

    python3 test/interop/golden_text.py test/data/data

learn/text-NAME is a job that leaves the vocabulary to its data, valid/csv-text-NAME the same texts with the words that
get_vocabulary() says.
"""
import csv
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras

TEXTS = [
    "Don't panic, it's \"fine\" -- really FINE!",
    "The quick brown fox; the lazy dog.",
    "the fox panics\tand\nthe dog does not",
    "Zoë ÀLA naïve Straße 東京 東京 ñandú",
    "snake_case e-mail@x.org 3.14 1,000 [UNK] a/b \\ ^~`{|}",
    " leading and trailing   ",
    "... !!!",
    "no-break\u00a0space and\x0bvertical\x0ctabs",
    "of all the words none",
]
FORMS = {
    "default": {"outputSequenceLength": 6},
    "lower": {"outputSequenceLength": 9, "standardize": "lower"},
    "strip": {"outputSequenceLength": 9, "standardize": "strip_punctuation"},
    "as-it-is": {"outputSequenceLength": 9, "standardize": "none"},
    "characters": {"outputSequenceLength": 30, "split": "character"},
    "max-tokens": {"outputSequenceLength": 8, "maxTokens": 7},
    "multi-hot": {"encoding": "multi_hot"},
    "multi-hot-max-tokens": {"encoding": "multi_hot", "maxTokens": 7},
    "count": {"encoding": "count", "split": "character"},
    "tf-idf": {"encoding": "tf_idf"},
    "tf-idf-max-tokens": {"encoding": "tf_idf", "maxTokens": 7, "ngrams": 2},
    "ngrams": {"outputSequenceLength": 14, "ngrams": 2},
    "ngrams-in-another-order": {"encoding": "count", "ngrams": [3, 1], "maxTokens": 20},
    "ngrams-of-characters": {"encoding": "multi_hot", "ngrams": [2], "split": "character", "standardize": "none", "maxTokens": 30},
}


def keras_layer(form):
    standardize = form.get("standardize", "lower_and_strip_punctuation")
    ngrams = form.get("ngrams")
    return keras.layers.TextVectorization(
        ngrams=tuple(ngrams) if isinstance(ngrams, list) else ngrams,
        max_tokens=form.get("maxTokens"), standardize=None if standardize == "none" else standardize,
        split=form.get("split", "whitespace"), output_mode=form.get("encoding", "int"),
        output_sequence_length=form.get("outputSequenceLength"))


def put(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", newline="") as f:
        f.write(text)


def put_texts(folder, texts):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "t.csv"), "w", newline="") as f:
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow(["text", "y"])
        rows.writerows([text, i % 2] for i, text in enumerate(texts))


def flow(value):
    """JSON, which is YAML, too."""
    return json.dumps(value, ensure_ascii=False)


def weights_of(layer):
    return [float(f"{v:.9g}") for v in layer._lookup_layer.idf_weights.numpy()]


def put_valid(folder, form, layer):
    column = {"name": "text", "type": "text", "vocabulary": layer.get_vocabulary(),
              **{k: v for k, v in form.items() if k != "maxTokens"}}
    if form.get("encoding") == "tf_idf":
        column["idfWeights"] = weights_of(layer)
    rows = layer(TEXTS).numpy()
    lines = [f"{len(TEXTS)} examples of ({rows.shape[1]},), integer labels of () up to 1"]
    lines += [" ".join(f"{v:.9g}" for v in row) + f" -> {i % 2}" for i, row in enumerate(rows)]
    put_texts(folder, TEXTS)
    put(folder, "job.yaml", f"format: csv\nfiles: t.csv\nlabel: y\ncolumns: [{flow(column)}]\n")
    put(folder, "expected", "\n".join(lines) + "\n")


def put_learn(folder, form, layer):
    """`words`, and `weights`, is what `expected`, which is written by hand, must list; remove it then."""
    column = {"name": "text", "type": "text", "vocabulary": "auto", **form}
    special = 2 if form.get("encoding", "int") == "int" else 1
    put_texts(folder, TEXTS)
    put(folder, "job.yaml", "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: learn}\nspec:\n"
        "  model: {layers: [Dense: {units: 1}]}\n  compile: {optimizer: SGD, loss: mse}\n  fit: {epochs: 1}\n  data:\n"
        f"    train: {{format: csv, files: t.csv, label: y, columns: [{flow(column)}]}}\n")
    put(folder, "words", flow(layer.get_vocabulary()[special:]))
    if form.get("encoding") == "tf_idf":
        put(folder, "weights", flow(weights_of(layer)[1:]))


if __name__ == "__main__":
    for name, form in FORMS.items():
        layer = keras_layer(form)
        layer.adapt(TEXTS[:-1] if name != "characters" else TEXTS)
        put_valid(os.path.join(sys.argv[1], "valid", f"csv-text-{name}"), form, layer)
        layer = keras_layer(form)
        layer.adapt(TEXTS)
        put_learn(os.path.join(sys.argv[1], "learn", f"text-{name}"), form, layer)
