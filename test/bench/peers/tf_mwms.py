"""TensorFlow's MultiWorkerMirroredStrategy: 2 workers, ring all-reduce over its gRPC.

--per N: training steps in one call of the compiled function. One is what Keras's fit does by default; more spare Python's part of
a step. The optimizer is tf_keras's Adam.
"""

import json
import os
import time

from roles import Roles, addresses, arguments, die_with_signal, measure


def launch():
    die_with_signal()
    workers = addresses(2)

    def start(index):
        config = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})
        return roles.again("--role", str(index), env=dict(os.environ, TF_CONFIG=config))

    with Roles() as roles:
        chief = start(0)
        start(1)
        roles.pass_on_result(chief)


def train_as(tf, a, index):
    import mnist
    import tf_input
    import tf_keras as keras

    implementation = tf.distribute.experimental.CommunicationImplementation.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    with strategy.scope():
        model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
        optimizer = keras.optimizers.Adam(1e-3)
        optimizer.build(model.trainable_variables)
    variables = model.trainable_variables

    def one_step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=2 * tf_input.BATCH)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @tf.function
    def call(iterator):
        for _ in tf.range(a.per):
            strategy.run(one_step, args=next(iterator))

    batches = iter(strategy.distribute_datasets_from_function(lambda _: tf_input.dataset(a.data, index)))

    def train(steps):
        for _ in range(-(-steps // a.per)):
            call(batches)
        return int(optimizer.iterations.numpy()), time.perf_counter()

    measure(a, train, lambda: mnist.accuracy([v.numpy() for v in variables], a.data))


def main():
    a = arguments(__doc__, role={}, per={"type": int, "default": 1})
    if a.role is None:
        return launch()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow as tf

    train_as(tf, a, int(a.role))
    os._exit(0)


main()
