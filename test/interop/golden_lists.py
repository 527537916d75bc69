"""Writes test/data/data/valid/{tfrecord,jsonl}-lists-*: what TensorFlow makes of lists of different lengths.

    python3 test/interop/golden_lists.py test/data/data/valid

The same lists are feature lists of tf.train.SequenceExample, plain features of tf.train.Example, and JSON. TensorFlow
parses, cuts and pads them.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf

STEPS = [0, 1, 3, 4, 5, 7]
LENGTH = 4
PADDING = {"word": -1}
SHAPES = {"rgb": [3], "sound": [2], "word": [], "tags": []}


def feature(value):
    if isinstance(value[0] if len(value) else 0, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if np.asarray(value).dtype.kind == "f" and len(value):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def features(values):
    return tf.train.Features(feature={k: feature(v) for k, v in values.items()})


def rows():
    rng = np.random.default_rng(7)
    for i, n in enumerate(STEPS):
        yield {"rgb": rng.integers(0, 256, (n, 3), dtype=np.uint8),
               "sound": (rng.integers(-99, 99, (n, 2)) / 4).astype(np.float32),
               "word": rng.integers(1, 9, n), "tags": np.arange(1, i + 1), "label": i % 2}


def sequence_example(row):
    lists = {"rgb": [[step.tobytes()] for step in row["rgb"]], "sound": row["sound"], "word": row["word"][:, None]}
    return tf.train.SequenceExample(
        context=features({"label": [row["label"]], "tags": row["tags"], "id": [b"of no column"]}),
        feature_lists=tf.train.FeatureLists(feature_list={
            k: tf.train.FeatureList(feature=[feature(step) for step in v]) for k, v in lists.items()}))


def example(row):
    lists = {"word": feature(row["word"]), "tags": feature(row["tags"]), "label": feature([row["label"]])}
    lists["rgb"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[step.tobytes() for step in row["rgb"]]))
    lists["sound"] = tf.train.Feature(float_list=tf.train.FloatList(value=row["sound"].ravel()))
    return tf.train.Example(features=tf.train.Features(feature=lists))


def parse_sequence(record):
    context, lists = tf.io.parse_single_sequence_example(
        record, context_features={"label": tf.io.FixedLenFeature([], tf.int64), "tags": tf.io.VarLenFeature(tf.int64)},
        sequence_features={"rgb": tf.io.FixedLenSequenceFeature([], tf.string),
                           "sound": tf.io.FixedLenSequenceFeature([2], tf.float32),
                           "word": tf.io.FixedLenSequenceFeature([], tf.int64)})
    return {**context, **lists, "tags": tf.sparse.to_dense(context["tags"])}


def parse_example(record):
    return tf.io.parse_single_example(record, {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "rgb": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
        "sound": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "word": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "tags": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)})


def expected(path, parse):
    """The batch of all examples, as tf.data pads it."""
    def cut(record):
        row = parse(record)
        row["rgb"] = tf.reshape(tf.io.decode_raw(row["rgb"], tf.uint8), [-1, 3])
        return {k: tf.cast(row[k][:LENGTH], tf.float32) for k in SHAPES} | {"label": row["label"]}

    data = tf.data.TFRecordDataset(path).map(cut)
    batch = next(iter(data.padded_batch(
        len(STEPS), {k: [LENGTH] + s for k, s in SHAPES.items()} | {"label": []},
        {k: tf.constant(PADDING.get(k, 0), tf.float32) for k in SHAPES} | {"label": tf.constant(0, tf.int64)})))
    flat = np.concatenate([batch[k].numpy().reshape(len(STEPS), -1) for k in SHAPES], axis=1)
    return [" ".join(f"{v:.9g}" for v in row) + f" -> {y}" for row, y in zip(flat, batch["label"].numpy())]


def put(folder, data_format, types, lines, suffix=""):
    columns = [{"name": k, "type": types[k], **({"shape": s} if s else {}), "outputSequenceLength": LENGTH,
                **({"default": PADDING[k]} if k in PADDING else {})} for k, s in SHAPES.items()]
    columns += [{"name": "label", "type": types["word"]}]
    with open(os.path.join(folder, "job.yaml"), "w") as f:
        f.write(f"format: {data_format}\nfiles: t.{data_format}\ncolumns:\n")
        f.writelines(f"  - {json.dumps(c)}\n" for c in columns)
    width = len(lines[0].split()) - 2
    with open(os.path.join(folder, "expected"), "w") as f:
        f.write("\n".join([f"{len(lines)} examples of ({width},), integer labels of (){suffix}", *lines]) + "\n")


if __name__ == "__main__":
    of_records = {"rgb": "bytes", "sound": "float", "word": "int64", "tags": "int64"}
    for name, write, parse in [("sequence-example", sequence_example, parse_sequence),
                               ("example", example, parse_example)]:
        folder = os.path.join(sys.argv[1], f"tfrecord-lists-{name}")
        os.makedirs(folder, exist_ok=True)
        with tf.io.TFRecordWriter(os.path.join(folder, "t.tfrecord")) as out:
            for row in rows():
                out.write(write(row).SerializeToString(deterministic=True))
        lines = expected(os.path.join(folder, "t.tfrecord"), parse)
        put(folder, "tfrecord", of_records, lines)
    folder = os.path.join(sys.argv[1], "jsonl-lists-any-length")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "t.jsonl"), "w") as out:
        out.writelines(json.dumps({k: np.asarray(v).tolist() for k, v in row.items()}) + "\n" for row in rows())
    put(folder, "jsonl", {**of_records, "rgb": "float", "word": "int", "tags": "int"}, lines, " up to 1")
