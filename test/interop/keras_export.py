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


def wide_and_deep():
    wide, deep = keras.Input((3,), name="wide"), keras.Input((2, 2), name="deep")
    norm = L.Normalization(mean=[1.0, 2.0, 3.0], variance=[2.0, 1.0, 3.0])(wide)
    hidden = L.Dense(4, "relu", name="hidden")(L.Flatten(name="flat")(deep))
    return keras.Model([deep, wide], L.Dense(2, name="out")(L.Concatenate(name="both")([norm, hidden])), name="wide_and_deep")


def cosine():
    """Two inputs through one nested model."""
    tower = keras.Sequential([keras.Input((3,)), L.Dense(4, "tanh", name="dense")], name="tower")
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    return keras.Model([a, b], L.Dot(axes=1, normalize=True, name="cosine")([tower(a), tower(b)]), name="cosine")


def heads():
    """Three outputs: one of the second call of a nested model with two outputs, and one that other layers read."""
    y = keras.Input((4,), name="y")
    pair = keras.Model(y, [L.Dense(4, "tanh", name="p")(y), L.Dense(3, "softmax", name="q")(y)], name="pair")
    x = keras.Input((6,), name="x")
    first = L.Dense(4, name="first")(x)
    p, q = pair(first)
    again, last = pair(p)
    return keras.Model(x, [last, first, L.Dense(2, name="join")(L.Concatenate(name="both")([q, again]))], name="heads")


def pictures():
    return sequential(
        L.ZeroPadding2D(((1, 0), (0, 2))),
        L.Conv2D(5, 3, padding="same", activation="relu", name="first"),
        L.MaxPooling2D(),
        L.Conv2D(4, (2, 3), dilation_rate=(1, 2), use_bias=False),
        L.BatchNormalization(),
        L.UpSampling2D((2, 1)),
        L.Cropping2D(((1, 0), (0, 1))),
        L.Conv2D(6, 3, strides=2, padding="same", activation="gelu"),
        L.AveragePooling2D((2, 1), strides=1, padding="same"),
        L.GlobalAveragePooling2D(),
        L.Dense(3),
        shape=(9, 14, 2),
    )


def steps():
    return sequential(
        L.ZeroPadding1D((2, 1)),
        L.Conv1D(5, 3, padding="causal", dilation_rate=2, activation="relu"),
        L.MaxPooling1D(2),
        L.UpSampling1D(2),
        L.Conv1D(4, 2, strides=2),
        L.Cropping1D((1, 0)),
        L.AveragePooling1D(2, strides=1, padding="same"),
        L.GlobalMaxPooling1D(keepdims=True),
        L.Flatten(),
        L.Dense(2),
        shape=(14, 3),
    )


def blocks():
    """Blocks as in mobile and generative networks."""
    return sequential(
        L.DepthwiseConv2D(3, padding="same", depth_multiplier=2),
        L.GroupNormalization(2),
        L.PReLU(shared_axes=[1, 2]),
        L.SeparableConv2D(6, (2, 3), strides=2, depth_multiplier=2, activation="gelu"),
        L.LayerNormalization(),
        L.SpatialDropout2D(0.25),
        L.Conv2DTranspose(5, 3, strides=2, padding="same", activation="relu"),
        L.Conv2DTranspose(4, (1, 2), strides=3, use_bias=False),
        L.Permute((3, 1, 2)),
        L.GaussianNoise(0.5),
        L.Flatten(),
        L.Dense(3),
        shape=(7, 6, 2),
    )


def augmented():
    """Predictions see the images as they are, but for the sizes."""
    return sequential(
        L.RandomFlip(),
        L.RandomRotation(0.25, fill_mode="constant"),
        L.RandomTranslation(0.25, (-0.125, 0.25)),
        L.RandomZoom(0.25),
        L.RandomContrast(0.25),
        L.RandomBrightness((-0.25, 0.5)),
        L.Resizing(9, 5, crop_to_aspect_ratio=True),
        L.CenterCrop(4, 5),
        L.Resizing(8, 8, "nearest"),
        L.Conv2D(3, 3),
        L.Flatten(),
        L.Dense(2),
        shape=(7, 6, 3),
    )


def block_steps():
    return sequential(
        L.RepeatVector(8),
        L.DepthwiseConv1D(3, depth_multiplier=2, activation="tanh"),
        L.LayerNormalization(scale=False, epsilon=0.25),
        L.SeparableConv1D(5, 2, dilation_rate=2, padding="same"),
        L.SpatialDropout1D(0.25),
        L.PReLU(),
        L.Conv1DTranspose(4, 3, strides=2),
        L.GroupNormalization(-1, center=False),
        L.Flatten(),
        L.Dense(2),
        shape=(4,),
    )


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
    "two inputs": wide_and_deep(),
    "two inputs of one tower": cosine(),
    "several outputs": heads(),
    "pictures": pictures(),
    "steps": steps(),
    "blocks": blocks(),
    "augmented": augmented(),
    "blocks of steps": block_steps(),
    "image": sequential(L.Rescaling(1 / 255), L.Flatten(), L.Dense(16, "relu"), L.Dense(10, "softmax"), shape=(8, 8, 1)),
}


def parts(folder, name, tensors):
    """One array for each of the model's inputs or outputs; the file has them one after the other."""
    shapes = [t.shape[1:] for t in tensors]
    sizes = [int(np.prod(s)) for s in shapes]
    flat = np.fromfile(os.path.join(folder, name), "<f4")
    rows = len(flat) // sum(sizes)
    return [p.reshape(rows, *s) for p, s in zip(np.split(flat, np.cumsum([rows * n for n in sizes])[:-1]), shapes)]


def one_or_all(arrays):
    return arrays if len(arrays) > 1 else arrays[0]


def predictions(model, folder):
    return keras.tree.flatten(model.predict(one_or_all(parts(folder, "x.f32", model.inputs)), verbose=0))


def difference(model, predicted, folder):
    """The largest relative difference to what our kernels predicted."""
    ours = parts(folder, "y.f32", model.outputs)
    assert len(ours) == len(predicted)
    return max(float(np.abs(p - y).max() / max(1, np.abs(y).max())) for p, y in zip(predicted, ours))


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
    worst = max(difference(m, predictions(m, folder), folder) for m in (loaded, model))
    print(f"{name}: largest difference {worst:.1e}")
    return worst <= TOLERANCE


def check_back(name, model, folder):
    """Keras trains and saves; our kernels with these weights predict what Keras predicts."""
    model.compile("adam", "mse")
    x = [np.random.rand(16, *i.shape[1:]) for i in model.inputs]
    y = [np.random.rand(16, *o.shape[1:]) for o in model.outputs]
    model.fit(one_or_all(x), one_or_all(y), verbose=0)
    worst = 0.0
    for file in ("saved.keras", "saved.weights.h5"):
        path, run = os.path.join(folder, file), os.path.join(folder, file + ".run")
        model.save(path) if file.endswith(".keras") else model.save_weights(path)
        os.mkdir(run)
        subprocess.run([MODEL, os.path.join(folder, "keras.json"), run, path], check=True, stderr=subprocess.DEVNULL)
        worst = max(worst, difference(model, predictions(model, run), run))
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
