"""The four IDX files of MNIST, and how well a set of weights of the 784-128-10 network reads the test digits."""

import numpy as np


def idx(path):
    with open(path, "rb") as f:
        magic = f.read(4)
        if magic[:3] != b"\0\0\x08":
            raise ValueError(f"{path} is no IDX file of bytes")
        shape = np.frombuffer(f.read(4 * magic[3]), ">u4").astype(int)
        return np.frombuffer(f.read(), np.uint8).reshape(shape)


def part(folder, name):
    """name: train or t10k -> images float32 [n, 784] in 0..1, labels int64 [n]"""
    images, labels = idx(f"{folder}/{name}-images-idx3-ubyte"), idx(f"{folder}/{name}-labels-idx1-ubyte")
    return images.reshape(len(images), -1).astype(np.float32) / 255, labels.astype(np.int64)


def accuracy(weights, folder):
    """weights: the four arrays in any order, kernels as [in, out]. The same judge for every contender."""
    by_shape = {w.shape: w for w in weights}
    x, y = part(folder, "t10k")
    hidden = np.maximum(x @ by_shape[784, 128] + by_shape[128,], 0)
    guess = np.argmax(hidden @ by_shape[128, 10] + by_shape[10,], axis=1)
    return float(np.mean(guess == y))
