"""images.py FOLDER [write] - what test/data/image/expected.txt says of its images is what TensorFlow and Keras read from them
(test/unit/data/test_image.c: our reader does, too). `write` writes the table again."""

import functools
import os
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import tensorflow as tf

FOLDER = sys.argv[1]
TABLE = os.path.join(FOLDER, "expected.txt")
HEAD = """# What TensorFlow reads (test/interop/images.py): an image with so many channels, resized or not, as the CRC-32 of its floats,
# and their mean for the reader's eye.
# FILE CHANNELS HEIGHT WIDTH INTERPOLATION CROP CRC MEAN
"""
RESIZED = ("gray8.png", "rgb8.png", "rgba8.png", "rgb420.jpg")
SIZES = ((7, 5), (31, 90), (19, 24), (22, 23), (45, 62), (48, 61), (1, 1), (3, 200))
OPAQUE_OF_FEW_BITS = ("gray1.png", "gray2.png", "gray4.png", "gray1_interlaced.png", "palette1.png", "palette2.png", "palette4.png")


@functools.cache
def resize(height, width, interpolation, crop):
    """As image_dataset_from_directory does it: in a graph, with a shape that is not known."""

    def run(x):
        if crop:
            return keras.preprocessing.image.smart_resize(x, (height, width), interpolation)
        return tf.image.resize(x, (height, width), method=interpolation)

    return tf.function(run, input_signature=[tf.TensorSpec([None, None, None], tf.uint8)])


def row(name, channels, interpolation, crop, x):
    x = tf.cast(x, tf.float32).numpy()
    crc = zlib.crc32(x.astype("<f4").tobytes())
    return f"{name} {channels} {x.shape[0]} {x.shape[1]} {interpolation} {crop:d} {crc:08x} {x.mean():.3f}\n"


def rows(name, channels):
    with open(os.path.join(FOLDER, name), "rb") as f:
        data = f.read()
    try:
        x = tf.io.decode_image(data, channels=channels, expand_animations=False)
    except tf.errors.InvalidArgumentError:
        return  # JPEG with alpha, CMYK as gray
    yield row(name, channels, "bilinear", False, x)
    if name not in RESIZED:
        return
    for height, width in SIZES:
        for interpolation in ("bilinear", "nearest"):
            for crop in (False, True):
                yield row(name, channels, interpolation, crop, resize(height, width, interpolation, crop)(x))


table = HEAD
for name in sorted(os.listdir(FOLDER)):
    for channels in (1, 3, 4):
        if name.endswith((".png", ".jpg")) and not (channels == 4 and name in OPAQUE_OF_FEW_BITS) and name != "scans101.jpg":
            table += "".join(rows(name, channels))
if "write" in sys.argv[2:]:
    with open(TABLE, "w") as f:
        f.write(table)
with open(TABLE) as f:
    if f.read() != table:
        sys.exit(f"{TABLE} is not what TensorFlow {tf.__version__} reads")
print(f"{table.count(chr(10)) - HEAD.count(chr(10))} images are read as by TensorFlow")
