"""keras_json.py KERAS PROGRAM CATALOG - to_json() of every layer, loss, metric and optimizer that docs/layers.md lists, written
by KERAS (keras or tf_keras), read and written by ours, and read by Keras again: what comes out must be what went in."""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

NAME, PROGRAM, CATALOG = sys.argv[1:]
K = importlib.import_module(NAME)
OLD = NAME == "tf_keras"
L = K.layers
# What an object cannot be made without.
NEEDED = {"Embedding": {"input_dim": 5, "output_dim": 3}, "CategoryEncoding": {"num_tokens": 5}, "Dense": {"units": 3}, "Reshape": {"target_shape": (2, 2)}, "Activation": {"activation": "tanh"},
          "Dot": {"axes": -1}, "Dropout": {"rate": 0.25}, "Rescaling": {"scale": 0.5}, "Conv1D": {"filters": 3, "kernel_size": 2},
          "Conv2D": {"filters": 3, "kernel_size": 2}, "AveragePooling1D": {"pool_size": 2}, "AveragePooling2D": {"pool_size": 2},
          "Conv1DTranspose": {"filters": 3, "kernel_size": 2}, "Conv2DTranspose": {"filters": 3, "kernel_size": 2},
          "DepthwiseConv1D": {"kernel_size": 2}, "DepthwiseConv2D": {"kernel_size": 2},
          "SeparableConv1D": {"filters": 3, "kernel_size": 2}, "SeparableConv2D": {"filters": 3, "kernel_size": 2},
          "GroupNormalization": {"groups": 2}, "Permute": {"dims": (2, 1)}, "RepeatVector": {"n": 3},
          "SpatialDropout1D": {"rate": 0.25}, "SpatialDropout2D": {"rate": 0.25}, "GaussianNoise": {"stddev": 0.5},
          "RandomTranslation": {"height_factor": 0.25, "width_factor": 0.5}, "RandomRotation": {"factor": 0.25},
          "RandomZoom": {"height_factor": 0.25}, "RandomContrast": {"factor": 0.25}, "RandomBrightness": {"factor": 0.25},
          "RandomCrop": {"height": 3, "width": 4}, "CenterCrop": {"height": 3, "width": 4}, "Resizing": {"height": 3, "width": 4}}
# Other arguments than the defaults, so that these travel too.
OTHER = {
    "Dense": [{"units": 2, "use_bias": False, "activation": "gelu", "kernel_initializer": "he_normal", "kernel_regularizer": "l2"},
              {"units": 2, "activation": L.ReLU(6.0)}, {"units": 2, "activation": L.LeakyReLU()}, {"units": 2, "activation": L.ELU(0.5)},
              {"units": 2, "activation": L.Softmax()}, {"units": 2, "activation": L.Activation("tanh")},
              {"units": 2, "bias_initializer": K.initializers.RandomNormal(stddev=0.5, seed=3), "trainable": False},
              {"units": 2, "kernel_initializer": K.initializers.VarianceScaling(2.0, "fan_out", "uniform")},
              {"units": 2, "bias_regularizer": K.regularizers.L1L2(0.5, 0.25)}],
    "BatchNormalization": [{"momentum": 0.5, "epsilon": 0.25, "center": False}, {"scale": False}] + ([] if OLD else [{"synchronized": True}]),
    "Normalization": [{"mean": [1.0, 2.0, 3.0, 4.0], "variance": [4.0, 3.0, 2.0, 1.0]}, {"axis": None},
                      {"mean": [1.0, 2.0, 3.0, 4.0], "variance": [4.0, 3.0, 2.0, 1.0], "invert": True},
                      {"axis": None, "mean": 1.0, "variance": 4.0}],
    "Dot": [{"axes": (1, -1), "normalize": True}], "Dropout": [{"rate": 0.5, "seed": 7}],
    "ReLU": [{"max_value": 6.0, "negative_slope": 0.5, "threshold": 0.25}],
    "LeakyReLU": [{"alpha": 0.5} if OLD else {"negative_slope": 0.5}], "ELU": [{"alpha": 0.5}],
    "Rescaling": [{"scale": 2.0, "offset": -1.0}, {"scale": [1.0, 2.0, 3.0, 4.0]}, {"scale": 2.0, "offset": np.arange(4.0)}],
    "Activation": [{"activation": "gelu"}],
    "Conv1D": [{"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu", "use_bias": False},
               {"filters": 2, "kernel_size": 3, "dilation_rate": 2, "padding": "causal", "kernel_regularizer": "l2"}],
    "Conv2D": [{"filters": 2, "kernel_size": (3, 2), "strides": (2, 1), "padding": "same", "kernel_initializer": "he_normal"},
               {"filters": 2, "kernel_size": 2, "dilation_rate": (1, 2), "activation": L.LeakyReLU()}],
    "Conv1DTranspose": [{"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same", "use_bias": False}],
    "Conv2DTranspose": [{"filters": 2, "kernel_size": (3, 2), "strides": 2, "padding": "same", "activation": "relu"}],
    "DepthwiseConv1D": [{"kernel_size": 3, "strides": 2, "depth_multiplier": 2, "depthwise_initializer": "he_normal"}],
    "DepthwiseConv2D": [{"kernel_size": (3, 2), "padding": "same", "dilation_rate": 2, "depthwise_regularizer": "l2"}],
    "SeparableConv1D": [{"filters": 2, "kernel_size": 3, "padding": "same", "depthwise_regularizer": "l1", "use_bias": False}],
    "SeparableConv2D": [{"filters": 2, "kernel_size": 3, "strides": 2, "depth_multiplier": 2, "activation": "gelu",
                         "pointwise_initializer": "he_uniform", "pointwise_regularizer": "l2"}],
    "LayerNormalization": [{"epsilon": 0.25, "center": False}, {"scale": False}, {"gamma_regularizer": "l2"}],
    "GroupNormalization": [{"groups": -1, "epsilon": 0.25, "center": False, "scale": False}],
    "PReLU": [{"alpha_initializer": K.initializers.Constant(0.25), "shared_axes": [1]}], "GaussianNoise": [{"stddev": 0.25, "seed": 7}],
    "RandomFlip": [{"mode": "vertical", "seed": 7}], "RandomRotation": [{"factor": (-0.5, 0.25), "fill_mode": "wrap", "seed": 7}],
    "RandomTranslation": [{"height_factor": (-0.5, 0.25), "width_factor": (0.0, 0.5), "fill_mode": "constant", "fill_value": 0.5}],
    "RandomZoom": [{"height_factor": (-0.25, 0.5), "width_factor": 0.125, "interpolation": "nearest", "fill_mode": "nearest"}],
    "RandomContrast": [{"factor": (0.25, 0.5), "seed": 7}], "RandomBrightness": [{"factor": (-0.5, 0.25), "value_range": (0, 1)}],
    "RandomCrop": [{"height": 9, "width": 3, "seed": 7}], "Resizing": [{"height": 9, "width": 3, "interpolation": "nearest",
                                                                       "crop_to_aspect_ratio": True}],
    "MaxPooling1D": [{"pool_size": 3, "strides": 1, "padding": "same"}], "AveragePooling1D": [{"pool_size": 3, "strides": 1}],
    "MaxPooling2D": [{"pool_size": (3, 2), "strides": (1, 2), "padding": "same"}], "AveragePooling2D": [{"pool_size": 3, "padding": "same"}],
    "CategoryEncoding": [{"num_tokens": 5, "output_mode": "one_hot"}, {"num_tokens": 5, "output_mode": "count"}],
    "Embedding": [{"input_dim": 5, "output_dim": 3, "embeddings_initializer": "he_uniform", "embeddings_regularizer": "l2"}],
    "GlobalMaxPooling1D": [{"keepdims": True}], "GlobalMaxPooling2D": [{"keepdims": True}],
    "GlobalAveragePooling1D": [{"keepdims": True}], "GlobalAveragePooling2D": [{"keepdims": True}],
    "ZeroPadding1D": [{"padding": (2, 0)}], "ZeroPadding2D": [{"padding": (2, 1)}, {"padding": ((1, 0), (2, 3))}],
    "Cropping1D": [{"cropping": (2, 0)}], "Cropping2D": [{"cropping": 1}, {"cropping": ((1, 0), (2, 1))}],
    "UpSampling1D": [{"size": 3}], "UpSampling2D": [{"size": (1, 3)}],
    "SGD": [{"momentum": 0.5, "nesterov": True, "clipnorm": 1.0}], "RMSprop": [{"centered": True, "momentum": 0.5}],
    "Adam": [{"amsgrad": True, "global_clipnorm": 2.0}, {"learning_rate": K.optimizers.schedules.ExponentialDecay(0.5, 100, 0.5)},
             {"learning_rate": K.optimizers.schedules.CosineDecay(0.5, 100)},
             {"learning_rate": K.optimizers.schedules.PiecewiseConstantDecay([10, 20], [0.5, 0.25, 0.125])}],
    "Huber": [{"delta": 0.5}], "CategoricalCrossentropy": [{"from_logits": True, "label_smoothing": 0.25}],
    "AUC": [{"num_thresholds": 50, "curve": "PR"}], "Precision": [{"thresholds": 0.25}], "TopKCategoricalAccuracy": [{"k": 2}],
}
IMAGES = ("RandomFlip", "RandomTranslation", "RandomRotation", "RandomZoom", "RandomContrast", "RandomBrightness", "RandomCrop",
          "CenterCrop", "Resizing")
SHAPES = {"": (4,), "1": (8, 2), "2": (6, 7, 2)}  # of inputs, by dimensions
SPARSE_METRICS = re.compile("^Sparse")
REFUSED = {"activation hard_sigmoid": "Keras 2's hard_sigmoid is"} if OLD else {}  # computes something else in Keras 3
MERGES = {"Add", "Concatenate", "Dot", "Subtract", "Multiply", "Average", "Maximum", "Minimum"}  # layers of several inputs
ONLY_HERE = {"Counting"}  # an optimizer of ours
# Arguments that are not kept: they change nothing in what is trained, or only one Keras knows them.
DROPPED = {"registered_name", "module", "build_config", "keras_version", "backend", "name", "renorm", "renorm_clipping",
           "renorm_momentum", "input_axes", "output_axes", "quantization_config", "activity_regularizer", "ema_momentum",
           "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer", "loss_scale_factor", "gradient_accumulation_steps", "use_ema",
           "fn", "sparse", "ragged", "optional", "build_input_shape", "noise_shape", "dtype", "data_format", "rms_scaling", "input_length",
           "batch_input_shape"}


SAME = {("thresholds", None): 0.5, ("reduction", "auto"): "sum_over_batch_size"}  # what None and auto stand for


def classes(heading):
    """The class names of a table in docs/layers.md."""
    text = open(CATALOG, encoding="utf-8").read()
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
    return [n for n in re.findall(r"^\| `(\w+)`", section, re.M) if n not in ONLY_HERE]


def variants(name):
    return [NEEDED.get(name, {}), *OTHER.get(name, [])]


def sequential(layers, shape=(4,)):
    first = L.InputLayer(shape) if OLD else K.Input(shape)
    return K.Sequential([first, *layers])


def shape_for(name):
    """The shape of an input for a layer of that class: a vector, a sequence or an image."""
    dimensions = re.search(r"[12](?=D)", name)
    return SHAPES[dimensions.group() if dimensions else "2" if name == "GroupNormalization" or name in IMAGES else "1" if name == "Permute" else ""]


def model_cases():
    for name in classes("Layers"):
        for i, arguments in enumerate(variants(name)):
            layer = getattr(L, name)(**arguments)
            yield f"{name} {i}", branches(layer) if name in MERGES else sequential([layer], shape_for(name))
    for name in classes("Activations"):
        function = name.lower()
        if hasattr(K.activations, function):
            yield f"activation {function}", sequential([L.Dense(2, activation=function)])
    for name in classes("Initializers"):
        if name != "Constant":
            yield f"initializer {name}", sequential([L.Dense(2, kernel_initializer=name)])
    embedding = L.Embedding(5, 3, mask_zero=True)
    yield "a mask", sequential([embedding, L.Dropout(0.5), L.GlobalAveragePooling1D(), L.Dense(2)])
    yield "a mask of floats", sequential([L.Masking(-1.5), L.BatchNormalization(), L.GlobalAveragePooling1D(), L.Dense(2)], (4, 3))
    yield "a functional chain", chain()


def branches(join):
    """A tensor that two layers read, and a layer of several inputs that joins them."""
    first = K.Input((4,), name="pixels")
    a, b = L.Dense(3, name="a")(first), L.Dense(3, name="b")(first)
    return K.Model(first, L.Dense(2, name="last")(join([a, b])), name="branches")


def chain():
    first = K.Input((4,), name="pixels")
    out = L.Dense(2, name="last")(L.Dropout(0.5)(L.Dense(3, name="first")(first)))
    return K.Model(first, out, name="chain")


def compile_cases():
    model = json.loads(sequential([L.Dense(3)]).to_json())
    for name in classes("Losses"):
        for i, arguments in enumerate(variants(name)):
            yield f"{name} {i}", model, {"loss": K.losses.serialize(getattr(K.losses, name)(**arguments))}
    for name in classes("Metrics"):
        loss = "sparse_categorical_crossentropy" if SPARSE_METRICS.match(name) else "categorical_crossentropy"
        for i, arguments in enumerate(variants(name)):
            metric = getattr(K.metrics, name, None)
            if metric is not None:
                yield f"metric {name} {i}", model, {"loss": loss, "metrics": [K.metrics.serialize(metric(**arguments))]}
    for name in classes("Optimizers"):
        for i, arguments in enumerate(variants(name)):
            yield f"{name} {i}", model, {"loss": "mse", "optimizer": K.optimizers.serialize(getattr(K.optimizers, name)(**arguments))}


def plain(value):
    """Without what is not kept, and floats as float32 holds them."""
    if isinstance(value, dict) and value.get("class_name") == "__numpy__":
        return plain(value["config"]["value"])
    if isinstance(value, dict):
        return {k: SAME.get((k, v), plain(v)) if isinstance(v, (str, type(None))) else plain(v) for k, v in value.items()
                if k not in DROPPED and (k, v) != ("gain", 1.0)}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def normal_image_layer(name, config):
    """One number of a factor is its range; only some versions have the other keys."""
    factor = config.get("factor")
    if isinstance(factor, float):
        config["factor"] = [factor if name == "RandomContrast" else -factor, factor]
    if name == "RandomContrast":
        config.setdefault("value_range", [0.0, 255.0])
    if name == "RandomCrop" and config["seed"] != 7:
        del config["seed"]  # Keras 3 draws one
    for key in ("rng_type", "antialias", "pad_to_aspect_ratio", *(("fill_mode", "fill_value") if name == "Resizing" else ())):
        config.pop(key, None)


def normal_layer(layer):
    """One spelling for what the two write differently."""
    config = layer["config"]
    if layer["class_name"] == "LeakyReLU" and "alpha" in config:
        config["negative_slope"] = config.pop("alpha")
    if layer["class_name"] == "BatchNormalization":
        config.setdefault("synchronized", False)  # tf_keras reads it and does not write it
    if layer["class_name"] in IMAGES:
        normal_image_layer(layer["class_name"], config)
    if layer["class_name"].startswith("SpatialDropout"):
        config.pop("trainable", None)  # only Keras 2 writes it, and the next ones
    if layer["class_name"] not in ("Conv1D", "Conv2D", "GroupNormalization"):
        config.pop("groups", None)
    if layer["class_name"].startswith("SeparableConv"):
        for key in ("kernel_initializer", "kernel_regularizer", "kernel_constraint"):
            config.pop(key, None)
    if "axis" in config:
        config["axis"] = None if config["axis"] in (None, []) else -1  # of a last axis: [1], [-1], -1
    if isinstance(config.get("activation"), dict):
        inner = config["activation"]
        inner.get("config", {}).pop("trainable", None)
        if inner["class_name"] == "Activation":
            config["activation"] = inner["config"]["activation"]
        elif inner["class_name"] == "ReLU" and inner["config"] == {"max_value": None, "negative_slope": 0.0, "threshold": 0.0}:
            config["activation"] = "relu"
        elif inner["class_name"] == "Softmax":
            config["activation"] = "softmax"
        elif inner["class_name"] == "LeakyReLU" and "alpha" in inner["config"]:
            inner["config"]["negative_slope"] = inner["config"].pop("alpha")
    return layer


def layers_of(model):
    out = []
    for layer in model["config"]["layers"]:
        if layer["class_name"] != "InputLayer":
            name = layer["config"]["name"]
            layer = plain({k: v for k, v in layer.items() if k != "inbound_nodes"})
            out.append((name, normal_layer(layer)))
    return out


def same_compile(given, ours):
    """Ours has everything that Keras wrote, with the values it wrote."""
    given, ours = plain(given), plain(ours)
    given = given.get("config", given) if isinstance(given, dict) else given
    ours = ours.get("config", ours) if isinstance(ours, dict) else ours
    if isinstance(given, dict):
        return all(k in ours and same_compile(v, ours[k]) for k, v in given.items() if k not in ("decay", "ignore_class"))
    return given == ours


def run(cases):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([{"name": n, "model": m, "compile": c} for n, m, c in cases], file)
        file.flush()
        return json.loads(subprocess.run([PROGRAM, file.name], check=True, capture_output=True, text=True).stdout)


def read_again(ours):
    """By Keras 3, whatever wrote it first: what we write is its form."""
    import keras

    return json.loads(keras.models.model_from_json(json.dumps(ours)).to_json())


def main():
    faults = []
    models = [(name, json.loads(model.to_json()), {}) for name, model in model_cases()]
    for (name, keras, _), ours in zip(models, run([(n, m, None) for n, m, _ in models])):
        if name in REFUSED:
            if REFUSED[name] not in ours.get("error", ""):
                faults.append(f"{name}: should be refused: {ours}")
            continue
        if "error" in ours:
            faults.append(f"{name}: refused: {ours['error']}")
            continue
        again = layers_of(read_again(ours))
        if layers_of(keras) != again:
            faults.append(f"{name}: Keras wrote\n  {layers_of(keras)}\nand reads back\n  {again}")
    compiles = list(compile_cases())
    full = [(n, m, {"optimizer": "SGD", **c}) for n, m, c in compiles]
    for (name, _, compile_), ours in zip(compiles, run(full)):
        if "error" in ours:
            faults.append(f"{name}: refused: {ours['error']}")
            continue
        written = ours["compile_config"]
        for key, value in compile_.items():
            got = written[key]
            given = value[0] if isinstance(value, list) else value
            got = got[0] if isinstance(got, list) else got
            if isinstance(given, dict) and not same_compile(given, got):
                faults.append(f"{name}: Keras wrote\n  {given}\nwe write\n  {got}")
    for fault in faults:
        print("FAILED", fault)
    print(f"{NAME} {K.__version__}: {len(models)} models, {len(compiles)} losses, metrics and optimizers, {len(faults)} faults")
    if faults or len(models) < 40 or len(compiles) < 50:
        sys.exit("FAILED: round trip of Keras's JSON")


main()
