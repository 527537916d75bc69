"""TensorFlow 1's parameter server: replica_device_setter and MonitoredTrainingSession, 1 ps, 2 workers.

--sync: SyncReplicasOptimizer, so that the gradients of both workers make one update; steps are updates.

A worker that finds the model not initialised sleeps 30 s. So that both train while the clock runs, worker 1 is started when
worker 0, the chief, has made its first step (with --sync: has initialised the model, because a step needs both), and the clock
starts when worker 1 has made its own.
"""

import json
import os
import sys
import threading
import time

from roles import Roles, addresses, arguments, die_with_signal


def launch():
    die_with_signal()
    ps, *workers = addresses(3)
    cluster = json.dumps({"ps": [ps], "worker": workers})
    with Roles() as roles:
        roles.again("--role", "ps", "--cluster", cluster)
        chief = roles.again("--role", "worker", "--cluster", cluster)
        chief.stdout.readline()
        roles.again("--role", "worker", "--index", "1", "--cluster", cluster).stdout.readline()
        print("both", file=chief.stdin, flush=True)
        roles.pass_on_result(chief)


def network(tf, images, labels):
    def weights(name, *shape):
        make = tf.glorot_uniform_initializer() if len(shape) == 2 else tf.zeros_initializer()
        return tf.get_variable(name, shape, initializer=make)

    w1, b1, w2, b2 = weights("w1", 784, 128), weights("b1", 128), weights("w2", 128, 10), weights("b2", 10)
    logits = tf.matmul(tf.nn.relu(tf.matmul(images, w1) + b1), w2) + b2
    return tf.losses.sparse_softmax_cross_entropy(labels, logits), [w1, b1, w2, b2]


def work(tf, a, cluster, server):
    import mnist
    import tf_input
    from roles import report

    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{a.index}", cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        images, labels = tf.data.make_one_shot_iterator(tf_input.dataset(a.data, a.index)).get_next()
        loss, weights = network(tf, images, labels)
        optimizer, hooks = tf.train.AdamOptimizer(1e-3), []
        if a.sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2, total_num_replicas=2)
        train = optimizer.minimize(loss, global_step=step)
        if a.sync:
            hooks = [optimizer.make_session_run_hook(a.index == 0)]

    both = threading.Event()
    if a.index == 0:
        threading.Thread(target=lambda: sys.stdin.readline() and both.set(), daemon=True).start()
    # A worker connects to the ps and to itself only: it neither waits for the other workers nor sends them requests.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{a.index}"])
    begun = None
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=a.index == 0, hooks=hooks, config=config) as session:
        early = a.sync and a.index == 0
        if early:
            print("stepping", flush=True)
        session.run([train, step, loss])
        if not early:
            print("stepping", flush=True)
        while True:
            _, now, _ = session.run([train, step, loss])  # `step` is the ps's counter, which both workers move
            if begun is None and both.is_set() and now >= a.warm:
                begun, first = time.perf_counter(), int(now)
                print("begun", flush=True)
            if begun is not None and now >= first + a.steps:
                break
        seconds = time.perf_counter() - begun
        print("ended", flush=True)
        values = session.run(weights + [train])[:4]
    if begun is None:
        return  # the chief has ended, and with it the queue of SyncReplicasOptimizer
    report(int(now) - first, seconds, mnist.accuracy(values, a.data))


def main():
    a = arguments(__doc__, role={}, index={"type": int, "default": 0}, cluster={}, sync={"action": "store_true"})
    if a.role is None:
        return launch()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.disable_resource_variables()
    tf.logging.set_verbosity(tf.logging.ERROR)
    cluster = tf.train.ClusterSpec(json.loads(a.cluster))
    server = tf.train.Server(cluster, job_name=a.role, task_index=a.index)
    if a.role == "ps":
        server.join()
    work(tf, a, cluster, server)
    os._exit(0)  # TensorFlow would wait for the ps


main()
