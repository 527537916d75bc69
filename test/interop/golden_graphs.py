"""Writes test/data/nn/graphs.json: training runs of functional models by Keras, for test_exec.

    python3 test/interop/golden_graphs.py > test/data/nn/graphs.json

Each case has the model's JSON, a batch, the weights before and after each step, and f64_diff: the largest difference
of the same run in float64, relative to the larger of 1 and the value.
"""
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np
from keras import layers as L

STEPS, BATCH, RATE = 3, 4, 0.1


def shared_dense():
    """A layer that is called twice, the second time with what is computed from the first."""
    x = keras.Input((6,), name="in")
    shared, middle = L.Dense(4, activation="tanh", name="shared"), L.Dense(6, activation="tanh", name="middle")
    a = shared(x)
    b = shared(middle(a))
    return keras.Model(x, L.Dense(2, name="out")(L.Add(name="add")([a, b])), name="shared_dense")


def shared_norm():
    """BatchNormalization three times in a step: each call moves the averages."""
    x = keras.Input((5,), name="in")
    norm, act = L.BatchNormalization(momentum=0.7, name="norm"), L.Activation("tanh", name="act")
    a = act(norm(L.Dense(5, name="first")(x)))
    b = act(norm(L.Dense(5, name="second")(a)))
    c = act(norm(b))
    return keras.Model(x, L.Dense(1, name="out")(L.Concatenate(name="all")([a, b, c])), name="shared_norm")


def siamese():
    """A nested model that is called twice, and one within a nested model."""
    inner = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh", name="dense")], name="inner")
    y = keras.Input((6,), name="y")
    z = inner(L.Dense(4, activation="tanh", name="dense")(y))
    tower = keras.Model(y, L.Add(name="add")([z, inner(z)]), name="tower")
    x = keras.Input((6,), name="x")
    left = tower(x)
    right = tower(L.Dense(6, activation="sigmoid", name="turn")(x))
    return keras.Model(x, L.Dense(3, name="out")(L.Concatenate(name="both")([left, right])), name="siamese")


def two_outputs():
    """A nested model with two inputs and two outputs."""
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    both = L.Concatenate(name="both")([a, b])
    pair = keras.Model([a, b], [L.Dense(4, activation="tanh", name="p")(both), L.Dense(4, name="q")(both)], name="pair")
    x = keras.Input((6,), name="x")
    p, q = pair([L.Dense(3, name="u")(x), L.Dense(2, name="v")(x)])
    return keras.Model(x, L.Dense(2, name="out")(L.Add(name="add")([q, p])), name="two_outputs")


def stacked():
    """Models within a Sequential, the second frozen."""
    first = keras.Sequential([keras.Input((6,)), L.Dense(5, activation="tanh", name="dense")], name="first")
    frozen = keras.Sequential([keras.Input((5,)), L.Dense(4, activation="tanh", name="dense")], name="frozen")
    frozen.trainable = False
    return keras.Sequential([keras.Input((6,)), first, frozen, L.Dense(2, name="out")], name="stacked")


def nested_output():
    """The output is the second call of a nested functional model."""
    y = keras.Input((3,), name="y")
    z = L.Dense(3, activation="tanh", name="dense")(y)
    twice = keras.Model(y, L.Add(name="add")([y, z]), name="twice")
    x = keras.Input((3,), name="x")
    return keras.Model(x, twice(L.Dense(3, activation="sigmoid", name="turn")(twice(x))), name="nested_output")


def nested_outputs():
    """A nested model: another model with two outputs makes one of its outputs, a Sequential the other."""
    z = keras.Input((4,), name="z")
    pair = keras.Model(z, [L.Dense(3, name="p")(z), L.Dense(3, activation="sigmoid", name="q")(z)], name="pair")
    y = keras.Input((4,), name="y")
    p, q = pair(L.Dense(4, activation="tanh", name="first")(y))
    last = keras.Sequential([keras.Input((3,)), L.Dense(3, name="dense")], name="last")
    heads = keras.Model(y, [q, last(last(p))], name="heads")
    x = keras.Input((4,), name="x")
    return keras.Model(x, L.Add(name="add")(heads(x)), name="nested_outputs")


def wide_and_deep():
    """Two inputs, one of them used twice."""
    wide, deep = keras.Input((3,), name="wide"), keras.Input((4,), name="deep")
    hidden = L.Dense(5, activation="tanh", name="hidden")(L.Concatenate(name="join")([deep, wide]))
    both = L.Concatenate(name="both")([wide, hidden])
    return keras.Model([wide, deep], L.Dense(2, name="out")(both), name="wide_and_deep")


def three_inputs():
    """In another order than they are used in, one an image, one through a nested model with inputs of its own."""
    image, mark, row = keras.Input((2, 2, 1), name="image"), keras.Input((1,), name="mark"), keras.Input((3,), name="row")
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    pair = keras.Model([a, b], L.Add(name="add")([L.Dense(3, name="p")(a), b]), name="pair")
    seen = L.Flatten(name="flatten")(image)
    joined = pair([L.Activation("tanh", name="act")(seen), L.Multiply(name="scale")([row, mark])])
    return keras.Model([mark, row, image], L.Dense(2, name="out")(L.Add(name="last")([joined, row])), name="three_inputs")


def two_heads():
    """Two outputs with losses, weights and metrics of their own; one of them is read by another layer."""
    x = keras.Input((5,), name="x")
    hidden = L.Dense(6, activation="tanh", name="hidden")(x)
    price = L.Dense(1, name="price")(hidden)
    kind = L.Dense(3, activation="softmax", name="kind")(L.Concatenate(name="both")([hidden, price]))
    return keras.Model(x, [kind, price], name="two_heads")


def read_head():
    """The activation of an output, which its loss could compute, is read by the layer of the other."""
    x = keras.Input((5,), name="x")
    kind = L.Dense(3, activation="softmax", name="kind")(x)
    return keras.Model(x, [L.Dense(2, activation="tanh", name="rest")(kind), kind], name="read_head")


def one_loss():
    """One loss for outputs of several shapes, the first of a nested model with two."""
    a = keras.Input((4,), name="a")
    pair = keras.Model(a, [L.Dense(2, name="p")(a), L.Dense(3, activation="sigmoid", name="q")(a)], name="pair")
    x = keras.Input((4,), name="x")
    p, q = pair(L.Dense(4, activation="tanh", name="first")(x))
    return keras.Model(x, [q, L.Dense(1, name="last")(p)], name="one_loss")


def recommendation():
    """Two tables of vectors, one of them read twice."""
    user, film, last = keras.Input((1,), name="user"), keras.Input((1,), name="film"), keras.Input((1,), name="last")
    films = L.Embedding(7, 3, embeddings_regularizer=keras.regularizers.L2(0.01), name="films")
    a = L.Flatten(name="a")(L.Embedding(5, 3, name="users")(user))
    b, c = L.Flatten(name="b")(films(film)), L.Flatten(name="c")(films(last))
    score = L.Dot(axes=1, name="score")([a, b])
    return keras.Model([user, film, last], L.Dense(1, name="out")(L.Concatenate(name="all")([score, a, b, c])), name="recommendation")


def bag_of_words():
    """The mean of words without padding, through layers that keep the mask."""
    words, title = keras.Input((6,), dtype="int32", name="words"), keras.Input((3,), name="title")
    table, place = L.Embedding(8, 4, mask_zero=True, name="table"), L.Embedding(8, 4, mask_zero=True, name="place")
    x = L.Add(name="sum")([table(words), L.Dropout(0.0, name="drop")(place(words))])
    x = L.Dense(5, activation="tanh", name="dense")(L.LayerNormalization(name="norm")(x))
    x = L.Concatenate(name="beside")([x, L.ReLU(name="relu")(table(words))])
    mean = L.GlobalAveragePooling1D(name="mean")(x)
    short = L.Flatten(name="flat")(L.GlobalAveragePooling1D(keepdims=True, name="short")(table(title)))
    lost = L.GlobalMaxPooling1D(name="largest")(table(title))
    joined = L.Concatenate(name="both")([mean, short, lost])
    return keras.Model([words, title], L.Dense(2, name="out")(joined), name="bag_of_words")


def masked_norm():
    """Layers that leave padding out and keep the mask: BatchNormalization, Multiply, Maximum and Minimum."""
    words = keras.Input((6,), dtype="int32", name="words")
    a, b = (L.Embedding(8, 4, mask_zero=True, name=n)(words) for n in ("table", "place"))
    x = L.BatchNormalization(momentum=0.75, name="norm")(L.Dense(4, activation="tanh", name="dense")(a))
    most, least = L.Maximum(name="most")([x, b, a]), L.Minimum(name="least")([b, x])
    x = L.Multiply(name="product")([most, least, L.Dense(1, name="weight")(b)])
    x = L.BatchNormalization(scale=False, epsilon=0.5, name="last")(L.Add(name="sum")([x, most, least]))
    joined = L.Concatenate(name="both")([L.GlobalAveragePooling1D(name="mean")(x), L.Flatten(name="flat")(x)])
    return keras.Model(words, L.Dense(2, name="out")(joined), name="masked_norm")


def tagging():
    """Outputs that a mask reaches: each has that of its own input."""
    words, title = keras.Input((6,), dtype="int32", name="words"), keras.Input((3,), dtype="int32", name="title")
    table = L.Embedding(8, 4, mask_zero=True, name="table")
    steps = L.BatchNormalization(momentum=0.75, name="norm")(L.Dense(4, activation="tanh", name="dense")(table(words)))
    tag = L.Dense(3, activation="softmax", name="tag")(steps)
    size = L.Dense(2, name="size")(table(title))
    known = L.Dense(1, activation="sigmoid", name="known")(L.Dropout(0.0, name="drop")(steps))
    return keras.Model([words, title], [tag, size, known], name="tagging")


def joined_masks():
    """Tensors with different masks, and without one, that are joined, also along the steps."""
    words, more, title = (keras.Input((n,), dtype="int32", name=name) for n, name in ((6, "words"), (6, "more"), (1, "kind")))
    a, b = (L.Embedding(8, 4, mask_zero=True, name=n)(x) for n, x in (("table", words), ("place", more)))
    c, one = L.Embedding(8, 4, name="plain")(more), L.Embedding(4, 4, mask_zero=True, name="one")(title)
    both = L.Add(name="sum")([a, b])
    steps = L.Concatenate(axis=1, name="steps")([a, c, L.Dense(4, name="dense")(b)])
    joined = [
        both,
        L.Multiply(name="product")([a, b, c]),
        L.BatchNormalization(name="norm")(L.Multiply(name="masked_product")([a, b])),
        L.Maximum(name="most")([c, a, b]),
        L.Minimum(name="least")([a, both, b]),
        L.BatchNormalization(name="long")(steps),
        L.Concatenate(name="beside_plain")([a, c]),
        L.Concatenate(name="beside")([a, b]),
        L.Average(name="wide")([both, one]),
        L.Multiply(name="wide_product")([a, one]),
        L.Maximum(name="wide_most")([a, one, both]),
    ]
    means = [L.GlobalAveragePooling1D()(x) for x in joined]
    out, tag = L.Dense(2, name="out")(L.Concatenate(name="all")(means)), L.Dense(2, activation="softmax", name="tag")(L.Subtract(name="less")([both, b]))
    return keras.Model([words, more, title], [out, tag, L.Dense(1, name="size")(steps)], name="joined_masks")


def masking():
    """Steps of floats that are padding, of an input and of what a layer makes."""
    x = keras.Input((6, 2), name="steps")
    a = L.Masking(mask_value=0.5, name="padding")(x)
    b = L.Masking(name="zeros")(L.Dense(1, activation="relu", name="dense")(x))
    norm = L.BatchNormalization(name="norm")(L.Dense(3, name="wide")(a))
    mean = L.GlobalAveragePooling1D(name="mean")(L.Multiply(name="product")([norm, b, L.Dense(1, name="one")(a)]))
    return keras.Model(x, [L.Dense(1, name="out")(mean), L.Dense(2, name="each")(b), L.Add(name="sum")([a, b])], name="masking")


def encoded():
    """Whole numbers that go into a table and into encodings of all modes, on their own and joined."""
    tags, kind = keras.Input((3,), dtype="int32", name="tags"), keras.Input((1,), dtype="int32", name="kind")
    encode = L.CategoryEncoding
    every = L.Permute((2, 1), name="turn")(L.RepeatVector(2, name="twice")(L.Concatenate(name="every")([tags, kind])))
    many, counts = encode(5, name="many")(tags), encode(6, output_mode="count", name="counts")(L.Flatten(name="row")(every))
    steps, one = encode(5, output_mode="one_hot", name="steps")(tags), encode(4, output_mode="one_hot", name="one")(kind)
    table = L.Flatten(name="rows")(L.Embedding(6, 2, name="table")(L.Identity(name="same")(tags)))
    joined = L.Concatenate(name="all")([many, counts, L.Flatten(name="flat")(steps), one, table])
    return keras.Model([tags, kind], L.Dense(2, name="out")(joined), name="encoded")


# Inputs that are rows of a table, and how many rows it has.
ROWS = {"user": 5, "film": 7, "last": 7, "words": 8, "title": 8, "more": 8, "tags": 5, "kind": 4}

COMPILED = {
    "two_heads": {
        "loss": {"price": "mse", "kind": "sparse_categorical_crossentropy"},
        "loss_weights": {"kind": 0.25, "price": 2.0},
        "metrics": {"kind": ["accuracy", "sparse_categorical_crossentropy"], "price": "mae"},
        "weighted_metrics": {"price": "mae"},
    },
    "tagging": {
        "loss": {"tag": "sparse_categorical_crossentropy", "size": "mse", "known": "binary_crossentropy"},
        "loss_weights": {"tag": 1.0, "size": 0.5, "known": 2.0},
        "metrics": {"tag": ["accuracy", "sparse_categorical_crossentropy"], "size": ["mae", "RootMeanSquaredError"], "known": ["accuracy", "AUC"]},
        "weighted_metrics": {"size": ["cosine_similarity"]},
    },
    "joined_masks": {"loss": ["mse", "sparse_categorical_crossentropy", "mse"], "metrics": [[], ["accuracy"], ["mae"]]},
    "masking": {"loss": ["mse", "mse", "mae"], "metrics": [[], ["mae"], ["mse"]]},
    "read_head": {"loss": ["mae", "categorical_crossentropy"], "metrics": [None, ["accuracy"]]},
    "one_loss": {"loss": "mse", "metrics": [["mae"], []]},
}


def named_weights(model, prefix=""):
    """The names of variables here: those of nested models begin with the model's."""
    for layer in model.layers:
        if isinstance(layer, (keras.Sequential, keras.Model)):
            yield from named_weights(layer, f"{prefix}{layer.name}/")
        else:
            for w in layer.weights:
                yield f"{prefix}{layer.name}/{w.name}", w


def tensor(value):
    value = np.asarray(value)
    return {"shape": list(value.shape), "dtype": "float32", "data": [float(np.float32(v)) for v in value.flatten()]}


def run(make, weights, x, y):
    keras.utils.clear_session()
    model = make()
    compiled = COMPILED.get(make.__name__, {"loss": "mse"})
    model.compile(keras.optimizers.SGD(RATE), **compiled)
    for name, w in named_weights(model):
        w.assign(weights[name])
    text = json.loads(model.to_json())
    del text["compile_config"]
    predicted = model.predict(x, batch_size=BATCH, verbose=0)
    out = {"outputs": predicted if isinstance(predicted, list) else [predicted], "losses": [], "after": []}
    if compiled != {"loss": "mse"}:
        out["logs"] = model.evaluate(x, y, batch_size=BATCH, verbose=0, return_dict=True)
    for _ in range(STEPS):
        model.reset_metrics()
        out["losses"].append(model.train_on_batch(x, y, return_dict=True)["loss"])
        out["after"].append({name: np.array(w) for name, w in named_weights(model)})
    return text, out


def flat(out):
    values = [*out["outputs"], out["losses"]] + [v for step in out["after"] for v in step.values()]
    return np.concatenate([np.asarray(v, "float64").flatten() for v in values])


def input_values(rng, tensor):
    shape, rows = (BATCH,) + tensor.shape[1:], ROWS.get(tensor.name)
    if tensor.name == "steps":  # the first step is not padding
        return np.where(np.arange(6)[:, None] * rng.integers(0, 2, (BATCH, 6, 1)) > 0, 0.5, rng.normal(size=shape)).astype("float32")
    if rows is None:
        return rng.normal(size=shape).astype("float32")
    x = rng.integers(0, rows, shape).astype("float32")
    if shape[1] > 1:  # half of it is padding, the first number never
        x[:, 1:] *= rng.integers(0, 2, x[:, 1:].shape)
        x[:, 0] = rng.integers(1, rows, BATCH)
    return x


def case(make, seed):
    rng = np.random.default_rng(seed)
    keras.config.set_floatx("float32")
    model = make()
    weights = {}
    for name, w in named_weights(model):
        drawn = rng.normal(0, 0.5, w.shape).astype("float32")
        weights[name] = np.abs(drawn) + 0.5 if "variance" in name else drawn
    x = [input_values(rng, i) for i in model.inputs]
    losses = COMPILED.get(make.__name__, {}).get("loss")
    y = []
    for name, o in zip(getattr(model, "output_names", [""]), model.outputs):
        loss = losses[name] if isinstance(losses, dict) else losses[len(y)] if isinstance(losses, list) else "mse"
        if loss.startswith("sparse"):
            y.append(rng.integers(0, o.shape[-1], (BATCH,) + o.shape[1:-1]))
        elif loss.startswith("binary"):
            y.append(rng.integers(0, 2, (BATCH,) + o.shape[1:]).astype("float32"))
        elif loss.startswith("categorical"):
            y.append(np.eye(o.shape[-1], dtype="float32")[rng.integers(0, o.shape[-1], BATCH)])
        else:
            y.append(rng.normal(size=(BATCH,) + o.shape[1:]).astype("float32"))
    text, single = run(make, weights, x, y)
    keras.config.set_floatx("float64")
    _, double = run(make, weights, [v.astype("float64") for v in x], [v if v.dtype.kind == "i" else v.astype("float64") for v in y])
    keras.config.set_floatx("float32")
    diff = float(np.max(np.abs(flat(single) - flat(double)) / np.maximum(1, np.abs(flat(double)))))
    return {
        "name": make.__name__,
        "model": text,
        "x": [tensor(v) for v in x],
        "y": [tensor(v) for v in y],
        "weights": {k: tensor(v) for k, v in weights.items()},
        "outputs": [tensor(v) for v in single["outputs"]],
        "losses": tensor(single["losses"]),
        "after": [{k: tensor(v) for k, v in step.items()} for step in single["after"]],
        "f64_diff": diff,
        **({"compile": COMPILED[make.__name__], "logs": single["logs"]} if "logs" in single else {}),
    }


def main():
    makers = [shared_dense, shared_norm, siamese, two_outputs, stacked, nested_output, nested_outputs, wide_and_deep, three_inputs]
    makers += [two_heads, read_head, one_loss, recommendation, bag_of_words, masked_norm, encoded, tagging, joined_masks, masking]
    about = f"test/interop/golden_graphs.py: SGD {RATE}, mse, {STEPS} steps of one batch"
    cases = [case(make, 7 + i) for i, make in enumerate(makers)]
    print(f'{{"about": {json.dumps(about)}, "versions": {json.dumps({"keras": keras.__version__})}, "cases": [')
    print(",\n".join(json.dumps(c) for c in cases) + "\n]}")


main()
