"""TensorFlow 2's ParameterServerStrategy: a coordinator that schedules closures, 1 ps, 2 workers.

--per N: training steps in one closure. One is what its documentation shows; more spare the coordinator's round trips.
The optimizer is tf_keras's legacy Adam: Keras 3 does not know this strategy.
"""

import json
import os
import time

from roles import Roles, addresses, arguments, die_with_signal, measure


def launch():
    die_with_signal()
    ps, worker_0, worker_1, chief = addresses(4)
    cluster = {"ps": [ps], "worker": [worker_0, worker_1], "chief": [chief]}

    def start(role, index=0):
        config = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
        return roles.again("--role", role, env=dict(os.environ, TF_CONFIG=config, GRPC_FAIL_FAST="use_caller"))

    with Roles() as roles:
        for role, index in (("ps", 0), ("worker", 0), ("worker", 1)):
            start(role, index)
        roles.pass_on_result(start("chief"))


def coordinate(tf, a, resolver):
    import mnist
    import tf_input
    import tf_keras as keras

    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
        variables = model.trainable_variables
        optimizer = keras.optimizers.legacy.Adam(1e-3)
        optimizer.iterations  # created here, so that it is on the ps
        optimizer._create_all_weights(variables)

    def one_step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
            loss = tf.reduce_mean(losses)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @tf.function
    def closure(iterator):
        for _ in tf.range(a.per):
            strategy.run(one_step, args=next(iterator))

    batches = iter(coordinator.create_per_worker_dataset(lambda: tf_input.dataset(a.data, None)))

    def train(steps):
        for _ in range(-(-steps // a.per)):
            coordinator.schedule(closure, args=(batches,))
        coordinator.join()
        return int(optimizer.iterations.numpy()), time.perf_counter()

    measure(a, train, lambda: mnist.accuracy([v.numpy() for v in variables], a.data))


def main():
    a = arguments(__doc__, role={}, per={"type": int, "default": 1})
    if a.role is None:
        return launch()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if a.role == "chief":
        coordinate(tf, a, resolver)
    else:
        tf.distribute.Server(resolver.cluster_spec(), job_name=a.role, task_index=resolver.task_id, protocol="grpc").join()
    os._exit(0)  # the coordinator's threads would wait for the workers


main()
