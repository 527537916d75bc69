"""How both kinds of TensorFlow worker read MNIST: tf.data over the IDX files, kept in memory after the first pass."""

import tensorflow as tf

BATCH = 64


def to_floats(images, labels):
    images = tf.cast(tf.io.decode_raw(images, tf.uint8), tf.float32) / 255.0
    return tf.reshape(images, (BATCH, 784)), tf.cast(tf.reshape(tf.io.decode_raw(labels, tf.uint8), (BATCH,)), tf.int32)


def dataset(folder, seed):
    images = tf.data.FixedLengthRecordDataset(folder + "/train-images-idx3-ubyte", 784, header_bytes=16)
    labels = tf.data.FixedLengthRecordDataset(folder + "/train-labels-idx1-ubyte", 1, header_bytes=8)
    shuffled = tf.data.Dataset.zip((images, labels)).cache().shuffle(20000, seed=seed).repeat()
    return shuffled.batch(BATCH, drop_remainder=True).map(to_floats).prefetch(tf.data.AUTOTUNE)
