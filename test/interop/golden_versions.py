"""Adds to a file of test/data/nn/versions the cases below as the Keras that Python imports writes them.

    python3 test/interop/golden_versions.py test/data/nn/versions/keras_3.15.json

What this version of Keras does not have, and what the file has already, is left out. Versions before 2.4 need
tensorflow.compat.v1 as `tensorflow` in sys.modules, and the names of Python 3.9 in `inspect` and `collections`.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
from keras import layers as L, regularizers

E = getattr(getattr(L, "experimental", None), "preprocessing", None)


def layer(name):
    """Of this version, where preprocessing was an experiment at first."""
    return getattr(L, name, None) or getattr(E, name)


def alone(shape, name, *args, **kwargs):
    if keras.__version__ < "3":
        return keras.models.Sequential([layer(name)(*args, name="a", input_shape=shape, **kwargs)], name="model")
    return keras.Sequential([keras.Input(shape, name="input"), layer(name)(*args, name="a", **kwargs)], name="model")


def joined(name, **kwargs):
    """Of two branches of the same shape."""
    x = L.Input((4,), name="input")
    branches = [L.Dense(3, name="a")(x), L.Dense(3, name="b")(x)]
    return keras.models.Model(x, layer(name)(name="c", **kwargs)(branches), name="model")


def of_numbers(*layers):
    x = y = L.Input((5,), name="input")
    for l in layers:
        y = l(y)
    return keras.models.Model(x, y, name="model")


def bag_of_words():
    return of_numbers(L.Embedding(7, 3, mask_zero=True, name="a"), L.GlobalAveragePooling1D(name="b"))


def masked():
    x = L.Input((6, 2), name="input")
    y = L.GlobalAveragePooling1D(name="b")(L.Masking(0.5, name="a")(x))
    return keras.models.Model(x, y, name="model")


def small_cnn():
    """As in most introductions."""
    return keras.models.Sequential([
        L.Conv2D(4, (3, 3), activation="relu", input_shape=(8, 8, 1), name="a"), L.MaxPooling2D((2, 2), name="b"),
        L.Dropout(0.25, name="c"), L.Flatten(name="d"), L.Dense(3, activation="softmax", name="e")], name="model")


STEPS, IMAGE, ROW = (8, 2), (8, 6, 2), (4,)
SAME = {"padding": "same"}
ALL = {"kernel_initializer": "he_normal", "bias_initializer": "ones", "activation": "relu"}
CASES = {
    **{n.lower(): (lambda n=n: joined(n)) for n in ("Subtract", "Multiply", "Average", "Maximum", "Minimum")},
    "dot": lambda: joined("Dot", axes=1),
    "dot_normalized": lambda: joined("Dot", axes=-1, normalize=True),
    "conv1d": lambda: alone(STEPS, "Conv1D", 3, 2),
    "conv1d_arguments": lambda: alone(STEPS, "Conv1D", 3, (3,), strides=2, **SAME, **ALL),
    "conv1d_causal": lambda: alone(STEPS, "Conv1D", 3, 2, padding="causal", dilation_rate=2, use_bias=False),
    "conv2d": lambda: alone(IMAGE, "Conv2D", 3, 2),
    "conv2d_arguments": lambda: alone(IMAGE, "Conv2D", 3, (3, 2), strides=(2, 1), **SAME, **ALL),
    "conv2d_dilated": lambda: alone(IMAGE, "Conv2D", 3, 2, dilation_rate=2, use_bias=False),
    "conv1d_transpose": lambda: alone(STEPS, "Conv1DTranspose", 3, 2, strides=2),
    "conv2d_transpose": lambda: alone(IMAGE, "Conv2DTranspose", 3, 2, strides=2),
    "conv2d_transpose_arguments": lambda: alone(IMAGE, "Conv2DTranspose", 3, (3, 2), strides=2, **SAME, **ALL),
    "depthwise_conv1d": lambda: alone(STEPS, "DepthwiseConv1D", 2, depth_multiplier=2),
    "depthwise_conv2d": lambda: alone(IMAGE, "DepthwiseConv2D", 2),
    "depthwise_conv2d_arguments": lambda: alone(IMAGE, "DepthwiseConv2D", (3, 2), depth_multiplier=2, strides=(2, 2),
                                                **SAME, activation="relu", depthwise_initializer="he_normal"),
    "separable_conv1d": lambda: alone(STEPS, "SeparableConv1D", 3, 2),
    "separable_conv2d": lambda: alone(IMAGE, "SeparableConv2D", 3, 2),
    "separable_conv2d_arguments": lambda: alone(IMAGE, "SeparableConv2D", 3, (3, 2), strides=(2, 2), depth_multiplier=2,
                                                **SAME, activation="relu", pointwise_initializer="he_normal"),
    **{f"{n.lower()}{w}": (lambda n=n, s=s, k=k: alone(s, n, **k)) for n, s in
       (("MaxPooling1D", STEPS), ("MaxPooling2D", IMAGE), ("AveragePooling1D", STEPS), ("AveragePooling2D", IMAGE))
       for w, k in (("", {"pool_size": 2}), ("_arguments", {"pool_size": 3, "strides": 2, **SAME}))},
    **{n.lower(): (lambda n=n, s=s: alone(s, n)) for n, s in
       (("GlobalMaxPooling1D", STEPS), ("GlobalMaxPooling2D", IMAGE), ("GlobalAveragePooling1D", STEPS),
        ("GlobalAveragePooling2D", IMAGE))},
    "globalaveragepooling2d_kept": lambda: alone(IMAGE, "GlobalAveragePooling2D", keepdims=True),
    "zeropadding1d": lambda: alone(STEPS, "ZeroPadding1D", 2),
    "zeropadding1d_sides": lambda: alone(STEPS, "ZeroPadding1D", (1, 2)),
    "zeropadding2d": lambda: alone(IMAGE, "ZeroPadding2D"),
    "zeropadding2d_axes": lambda: alone(IMAGE, "ZeroPadding2D", (1, 2)),
    "zeropadding2d_sides": lambda: alone(IMAGE, "ZeroPadding2D", ((1, 2), (0, 1))),
    "cropping1d": lambda: alone(STEPS, "Cropping1D", (1, 2)),
    "cropping2d": lambda: alone(IMAGE, "Cropping2D", ((1, 2), (0, 1))),
    "cropping2d_axes": lambda: alone(IMAGE, "Cropping2D", (1, 2)),
    "upsampling1d": lambda: alone(STEPS, "UpSampling1D", 3),
    "upsampling2d": lambda: alone(IMAGE, "UpSampling2D", (2, 3)),
    "layer_normalization": lambda: alone(IMAGE, "LayerNormalization"),
    "layer_normalization_arguments": lambda: alone(IMAGE, "LayerNormalization", axis=[3], epsilon=0.01, scale=False),
    "group_normalization": lambda: alone(IMAGE, "GroupNormalization", groups=2),
    "prelu": lambda: alone(IMAGE, "PReLU", alpha_initializer="ones"),
    "prelu_shared": lambda: alone(IMAGE, "PReLU", alpha_initializer="he_normal", shared_axes=[1, 2]),
    "permute": lambda: alone(IMAGE, "Permute", (3, 1, 2)),
    "repeat_vector": lambda: alone(ROW, "RepeatVector", 3),
    "spatial_dropout1d": lambda: alone(STEPS, "SpatialDropout1D", 0.3),
    "spatial_dropout2d": lambda: alone(IMAGE, "SpatialDropout2D", 0.3),
    "gaussian_noise": lambda: alone(ROW, "GaussianNoise", 0.2),
    "identity": lambda: alone(ROW, "Identity"),
    "random_flip": lambda: alone(IMAGE, "RandomFlip", "horizontal"),
    "random_translation": lambda: alone(IMAGE, "RandomTranslation", 0.2, (-0.1, 0.3), fill_mode="nearest"),
    "random_rotation": lambda: alone(IMAGE, "RandomRotation", 0.1, fill_mode="wrap"),
    "random_zoom": lambda: alone(IMAGE, "RandomZoom", 0.2, fill_mode="constant"),
    "random_contrast": lambda: alone(IMAGE, "RandomContrast", (0.2, 0.3)),
    "random_brightness": lambda: alone(IMAGE, "RandomBrightness", 0.2),
    "random_crop": lambda: alone(IMAGE, "RandomCrop", 4, 3, seed=7),
    "center_crop": lambda: alone(IMAGE, "CenterCrop", 4, 3),
    "resizing": lambda: alone(IMAGE, "Resizing", 5, 4),
    "resizing_nearest": lambda: alone(IMAGE, "Resizing", 5, 4, interpolation="nearest"),
    "category_encoding": lambda: alone((1,), "CategoryEncoding", num_tokens=4, output_mode="one_hot"),
    "embedding": lambda: of_numbers(L.Embedding(7, 3, name="a"), L.Flatten(name="b")),
    "embedding_arguments": lambda: of_numbers(L.Embedding(7, 3, embeddings_initializer="he_normal", name="a")),
    "embedding_bag_of_words": bag_of_words,
    "masking": masked,
    "regularized": lambda: alone(ROW, "Dense", 3, kernel_regularizer=regularizers.l2(0.01),
                                 bias_regularizer=regularizers.l1(0.02)),
    "regularized_both": lambda: alone(ROW, "Dense", 3, kernel_regularizer=regularizers.L1L2(0.01, 0.02)),
    "small_cnn": small_cnn,
}


def to_json(make):
    """None: this version does not have it."""
    try:
        return json.loads(make().to_json())
    except (AttributeError, TypeError, ValueError) as why:
        print(f"left out: {why}"[:150], file=sys.stderr)
        return None


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        cases = json.load(f)
    have = {c["name"] for c in cases}
    for name, make in CASES.items():
        model = to_json(make) if name not in have else None
        if model is not None:
            cases.append({"name": name, "model": model})
        elif name not in have:
            print(f"  {name}", file=sys.stderr)
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
