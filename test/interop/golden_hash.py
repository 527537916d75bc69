"""Writes test/data/codec/siphash.json: the bins that Keras's Hashing with a salt gives to texts.

    python3 test/interop/golden_hash.py test/data/codec/siphash.json
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import tensorflow as tf

BINS = 2**63 - 1
SALTS = [0, 1, -5, 2**62, [3, 9], [-(2**63), 2**63 - 1], [1337, 0]]
TEXTS = ["", "a", "Bonn", "Zoë and Straße", "東京", "0123456", "01234567", "012345678", "x" * 63, "y" * 64, "z" * 300]


def bins(salt):
    layer = keras.layers.Hashing(num_bins=BINS, salt=salt)
    return [int(v) for v in layer(tf.constant(TEXTS)).numpy()]


if __name__ == "__main__":
    cases = []
    for salt in SALTS:
        for text, number in zip(TEXTS, bins(salt)):
            cases.append({"salt": salt if isinstance(salt, list) else [salt, salt], "text": text, "bin": number})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")
