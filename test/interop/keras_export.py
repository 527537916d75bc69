"""keras_export.py TRAINYARD MODEL - `trainyard export` of runs of all layers: keras.models.load_model() opens the .keras file, and it
and load_weights() of the .weights.h5 predict what our kernels predict; and the other way round, fit.initialWeights of what Keras
saved. MODEL (keras_model.c) makes the runs."""

import os
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np

TRAINYARD, MODEL = sys.argv[1:]
L = keras.layers
TOLERANCE = 1e-5


def sequential(*layers, shape=(6,)):
    return keras.Sequential([keras.Input(shape), *layers])


def functional():
    first = keras.Input((6,), name="pixels")
    hidden = L.Dropout(0.5)(L.Dense(5, activation="tanh", name="one")(first))
    return keras.Model(first, L.Dense(2, name="two")(hidden), name="chain")


def nested():
    """The output is the second of two calls of a nested functional model."""
    y = keras.Input((6,), name="y")
    tower = keras.Model(y, L.Add(name="add")([y, L.Dense(6, "tanh", name="dense")(y)]), name="tower")
    x = keras.Input((6,), name="x")
    return keras.Model(x, tower(L.Dense(6, "sigmoid", name="turn")(tower(x))), name="nested")


MODELS = {
    "dense": sequential(L.Dense(7, "relu", name="hidden"), L.Dense(5, "gelu", use_bias=False), L.Dense(3, "softmax", name="out")),
    "norms": sequential(L.Normalization(), L.Dense(4), L.BatchNormalization(), L.Dense(4), L.BatchNormalization(scale=False, center=False)),
    "given": sequential(L.Normalization(mean=[1.0] * 6, variance=[2.0] * 6), L.Rescaling(0.5, -1.0), L.Dense(3)),
    "shapes": sequential(L.Reshape((4, 3)), L.Dense(2), L.Flatten(), L.Dropout(0.5), L.Dense(2), shape=(12,)),
    "activations": sequential(L.Dense(6), L.ReLU(3.0, 0.25, 0.5), L.LeakyReLU(), L.ELU(0.5), L.Activation("swish"), L.Softmax()),
    "layers as activations": sequential(L.Dense(5, L.ReLU(2.0)), L.Dense(5, L.LeakyReLU()), L.Dense(5, L.ELU(0.5)), L.Dense(2, L.Softmax())),
    "frozen": sequential(L.Dense(4, trainable=False), L.BatchNormalization(trainable=False), L.Dense(2)),
    "functional": functional(),
    "nested output": nested(),
    "image": sequential(L.Rescaling(1 / 255), L.Flatten(), L.Dense(16, "relu"), L.Dense(10, "softmax"), shape=(8, 8, 1)),
}


def floats(folder, name, shape):
    return np.fromfile(os.path.join(folder, name), "<f4").reshape(-1, *shape)


def export(folder, name):
    path = os.path.join(folder, name)
    subprocess.run([TRAINYARD, "export", folder, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


def check(name, model, folder):
    text = os.path.join(folder, "keras.json")
    with open(text, "w", encoding="utf-8") as file:
        file.write(model.to_json())
    subprocess.run([MODEL, text, folder], check=True)
    loaded = keras.models.load_model(export(folder, "model.keras"))
    model.load_weights(export(folder, "model.weights.h5"))
    x, y = floats(folder, "x.f32", model.input_shape[1:]), floats(folder, "y.f32", model.output_shape[1:])
    worst = max(float(np.abs(m.predict(x, verbose=0) - y).max() / max(1, np.abs(y).max())) for m in (loaded, model))
    print(f"{name}: largest difference {worst:.1e}")
    return worst <= TOLERANCE


def check_back(name, model, folder):
    """Keras trains and saves; our kernels with these weights predict what Keras predicts."""
    model.compile("adam", "mse")
    shape = model.input_shape[1:]
    model.fit(np.random.rand(16, *shape), np.random.rand(16, *model.output_shape[1:]), verbose=0)
    worst = 0.0
    for file in ("saved.keras", "saved.weights.h5"):
        path, run = os.path.join(folder, file), os.path.join(folder, file + ".run")
        model.save(path) if file.endswith(".keras") else model.save_weights(path)
        os.mkdir(run)
        subprocess.run([MODEL, os.path.join(folder, "keras.json"), run, path], check=True, stderr=subprocess.DEVNULL)
        y = model.predict(floats(run, "x.f32", shape), verbose=0)
        worst = max(worst, float(np.abs(y - floats(run, "y.f32", model.output_shape[1:])).max() / max(1, np.abs(y).max())))
    print(f"{name}, trained by Keras: largest difference {worst:.1e}")
    return worst <= TOLERANCE


def main():
    warnings.simplefilter("ignore")
    failed = []
    for name, model in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            if not (check(name, model, folder) and check_back(name, model, folder)):
                failed.append(name)
    if failed:
        sys.exit(f"FAILED: Keras {keras.__version__} predicts otherwise: {', '.join(failed)}")
    print(f"passed: Keras {keras.__version__} opens all {len(MODELS)} exports, and both predict the same with weights of the other")


main()
