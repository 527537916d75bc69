"""keras_fit.py FOLDER [write] - the histories in test/data/keras_fit are what Keras's Model.fit() gives. Each case is a job.yaml that
`trainyard run` must train to the same history.txt (test/integration/fit.sh). `write` makes data and histories anew."""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np

FOLDER = sys.argv[1]
WRITE = "write" in sys.argv[2:]
TOLERANCE = 1e-5
FEATURES, TRAINED, TESTED = 4, 10, 5  # in batches of 4: the last one is short
STEPS, WORDS = 4, 5  # of sequences that are padded with the word 0


def data():
    r = np.random.default_rng(7)
    d = {}
    for part, n in (("", TRAINED), ("val_", TESTED)):
        label = r.integers(0, 3, n)
        d[part + "x"] = (r.integers(-100, 100, (n, FEATURES)) / 100).astype("float32")
        d[part + "classes"] = label.astype("int64")
        d[part + "binary"] = (label > 1).astype("uint8")
        d[part + "one_hot"] = np.eye(3, dtype="float32")[label]
        d[part + "numbers"] = (r.integers(-200, 200, (n, 1)) / 100).astype("float32")
        d[part + "weights"] = (r.integers(0, 40, n) / 10).astype("float32")
    d["some_weights"] = d["weights"].copy()
    d["some_weights"][4:8] = 0  # a whole batch
    r = np.random.default_rng(8)
    for part, n in (("", TRAINED), ("val_", TESTED)):
        kept = np.arange(STEPS) < r.integers(0, STEPS + 1, n)[:, None]
        d[part + "words"] = (r.integers(1, WORDS, (n, STEPS)) * kept).astype("int32")
        d[part + "tags"] = (r.integers(0, 3, (n, STEPS)) * kept).astype("int64")
    # what class_weight={0: 0.5, 2: 3.0} and these weights are together; Keras 3 takes one of them, tf_keras multiplies as we do
    d["product"] = d["weights"] * np.array([0.5, 1.0, 3.0], "float32")[d["classes"]]
    return d


def model(units, activation, regularizer=None):
    m = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(units, activation, kernel_regularizer=regularizer, name="out")])
    r = np.random.default_rng(units)
    m.set_weights([(r.integers(-50, 50, w.shape) / 100).astype("float32") for w in m.get_weights()])
    return m


def tagger():
    """Each word has a tag; padding has none."""
    layers = [keras.layers.Embedding(WORDS, 3, mask_zero=True, name="table"), keras.layers.Dense(3, "softmax", name="out")]
    m = keras.Sequential([keras.Input((STEPS,)), *layers])
    r = np.random.default_rng(9)
    m.set_weights([(r.integers(-50, 50, w.shape) / 100).astype("float32") for w in m.get_weights()])
    return m


# name: model, loss, labels, arguments of compile and of fit; a string stands for an array
SPARSE = (3, "softmax"), "sparse_categorical_crossentropy", "classes"
TAGS = "tagger", "sparse_categorical_crossentropy", "tags"
CASES = {
    "sparse_class_weight": (*SPARSE, dict(metrics=["accuracy"], weighted_metrics=["accuracy"]), dict(class_weight={0: 0.5, 2: 3.0})),
    "binary_class_weight": ((1, "sigmoid"), "binary_crossentropy", "binary", dict(metrics=["accuracy"], weighted_metrics=[keras.metrics.AUC(name="auc")]), dict(class_weight={0: 1.0, 1: 5.0})),
    "one_hot_class_weight": ((3, "softmax"), "categorical_crossentropy", "one_hot", dict(weighted_metrics=["accuracy", "mean_squared_error"]), dict(class_weight={1: 4.0})),
    "sample_weight": (
        (1, None, keras.regularizers.L2(0.01)),
        "mean_squared_error",
        "numbers",
        dict(metrics=["mean_absolute_error"], weighted_metrics=["mean_absolute_error"]),
        dict(sample_weight="some_weights", validation_weight="val_weights"),
    ),
    "sample_weight_split": (*SPARSE, dict(weighted_metrics=["accuracy"]), dict(sample_weight="weights", validation_split=0.3)),
    "both_weights": (*SPARSE, dict(metrics=["accuracy"], weighted_metrics=["accuracy"]), dict(sample_weight="product")),
    "validation_split": (*SPARSE, dict(metrics=["accuracy"]), dict(class_weight={1: 2.0}, validation_split=0.25)),
    "tags": (*TAGS, dict(metrics=["accuracy", "sparse_categorical_crossentropy"]), dict()),
    "tags_sample_weight": (*TAGS, dict(metrics=["accuracy"], weighted_metrics=["accuracy"]), dict(sample_weight="weights", validation_weight="val_weights")),
}


def history(d, case):
    make, loss, labels, compiled, fit = CASES[case]
    m = tagger() if make == "tagger" else model(*make)
    x = "words" if make == "tagger" else "x"
    m.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, **compiled)
    fit = {k: d[v] if isinstance(v, str) else v for k, v in fit.items()}
    if make == "tagger":  # Keras wants a weight for each step
        fit = {k: np.repeat(v[:, None], STEPS, 1) for k, v in fit.items()}
    if "validation_split" not in fit:
        weights = fit.pop("validation_weight", None)
        fit["validation_data"] = (d["val_" + x], d["val_" + labels]) + ((weights,) if weights is not None else ())
    h = m.fit(d[x], d[labels], batch_size=4, epochs=3, shuffle=False, verbose=0, **fit).history
    return {name: values for name, values in h.items()}


def stored(path):
    rows = (line.split() for line in open(path))
    return {name: [float(v) for v in values] for name, *values in rows}


def write(d):
    for name, array in ((n, a) for n, a in d.items() if n != "product"):
        np.save(f"{FOLDER}/{name}.npy", array)
    for units in (1, 3):
        kernel, bias = model(units, None).get_weights()
        np.savez(f"{FOLDER}/initial_{units}.npz", **{"out/kernel": kernel, "out/bias": bias})
    table, kernel, bias = tagger().get_weights()
    np.savez(f"{FOLDER}/initial_tagger.npz", **{"table/embeddings": table, "out/kernel": kernel, "out/bias": bias})
    with open(f"{FOLDER}/tags.jsonl", "w") as f:  # without the padding
        for words, tags in zip(d["words"], d["tags"]):
            n = int(np.count_nonzero(words))
            print(json.dumps({"words": words[:n].tolist(), "tags": tags[:n].tolist()}), file=f)


d = data()
if WRITE:
    write(d)
failed = 0
for case in CASES:
    got, path = history(d, case), f"{FOLDER}/{case}/history.txt"
    if WRITE:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            for name, values in got.items():
                print(name, *(f"{v:.9g}" for v in values), file=f)
    want = stored(path)
    same = got.keys() == want.keys() and all(np.allclose(got[k], want[k], rtol=TOLERANCE, atol=TOLERANCE) for k in want)
    failed += not same
    if not same:
        print(f"FAIL keras_fit {case}: {got}, not {want}")
print(f"{len(CASES) - failed} histories are those of Keras {keras.__version__}")
sys.exit(failed > 0)
