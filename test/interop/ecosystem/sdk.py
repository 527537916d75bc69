"""sdk.py KUBECONFIG NAMESPACE - Kubeflow's Python SDK makes TFJobs and looks after them, on fake nodes (test/cluster, kwok).

What it expects is what the SDK gets from training-operator 1.9.3: it passes there too.
"""

import subprocess
import sys
import time

from kubeflow.training import TrainingClient, models

kubeconfig, namespace = sys.argv[1:]
client = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="TFJob")
results = []


def check(what, got, wanted):
    results.append(got == wanted)
    print(f"ok   {what}" if got == wanted else f"FAIL {what}: {got!r}, not {wanted!r}", flush=True)


def eventually(what, ask, wanted, seconds=60):
    end, got = time.monotonic() + seconds, None
    while got != wanted and time.monotonic() < end:
        try:
            got = ask()
        except (AttributeError, KeyError, TypeError):  # a status that has not all its parts yet
            got = None
        time.sleep(0.2)
    check(what, got, wanted)


def raised(call):
    try:
        call()
    except (RuntimeError, TimeoutError, ValueError) as e:
        return type(e).__name__
    return None


def tfjob(name, roles, policy="Never", **run_policy):
    container = models.V1Container(name="tensorflow", image="example/mnist", command=["python", "/opt/mnist.py"])
    template = models.V1PodTemplateSpec(spec=models.V1PodSpec(containers=[container]))
    specs = {r: models.KubeflowOrgV1ReplicaSpec(replicas=n, restart_policy=policy, template=template) for r, n in roles.items()}
    spec = models.KubeflowOrgV1TFJobSpec(run_policy=models.KubeflowOrgV1RunPolicy(**run_policy), tf_replica_specs=specs)
    meta = models.V1ObjectMeta(name=name, namespace=namespace)
    return models.KubeflowOrgV1TFJob(api_version="kubeflow.org/v1", kind="TFJob", metadata=meta, spec=spec)


def kubectl(*words):
    subprocess.run(["kubectl", "--kubeconfig", kubeconfig, "-n", namespace, *words], check=True, stdout=subprocess.DEVNULL)


def end(pod, code=0):
    kubectl("annotate", "pod", pod, "--overwrite", f"test.trainyard.dev/exit-code={code}")


def change(name, how):
    job = client.get_job(name)
    how(job.spec)
    client.update_job(job, name)


def words(name):
    return "".join(
        letter if getattr(client, f"is_job_{word}")(name=name) else "-"
        for letter, word in zip("CRrSF", ("created", "running", "restarting", "succeeded", "failed"))
    )


def types(name):
    return [(c.type, c.status) for c in client.get_job_conditions(name=name)]


def pods(name, **which):
    return [p.removeprefix(name + "-") for p in sorted(client.get_job_pod_names(name, **which))]


def count(name, role, what):
    return getattr(client.get_job(name).status.replica_statuses[role], what)


def a_job_from_start_to_end():
    client.create_job(tfjob("mnist", {"Chief": 1, "PS": 1, "Worker": 2}))
    check("made twice", raised(lambda: client.create_job(tfjob("mnist", {"Worker": 1}))), "RuntimeError")
    client.wait_for_job_conditions("mnist", expected_conditions={"Running"}, wait_timeout=60, polling_interval=1)
    eventually("active workers", lambda: count("mnist", "Worker", "active"), 2)
    check("running", words("mnist"), "CR---")
    check("listed", [j.metadata.name for j in client.list_jobs()], ["mnist"])
    check("pods", pods("mnist"), ["chief-0", "ps-0", "worker-0", "worker-1"])
    check("the master", pods("mnist", is_master=True), ["chief-0"])
    check("pods of a role", pods("mnist", replica_type="ps"), ["ps-0"])
    check("one worker", pods("mnist", replica_type="worker", replica_index=1), ["worker-1"])
    change("mnist", lambda spec: setattr(spec.run_policy, "suspend", True))
    eventually("no pods while suspended", lambda: pods("mnist"), [])
    eventually("suspended", lambda: types("mnist"), [("Created", "True"), ("Running", "False"), ("Suspended", "True")])
    change("mnist", lambda spec: setattr(spec.run_policy, "suspend", False))
    eventually("active again", lambda: count("mnist", "Worker", "active"), 2)
    eventually("resumed", lambda: types("mnist"), [("Created", "True"), ("Suspended", "False"), ("Running", "True")])
    change("mnist", lambda spec: setattr(spec.tf_replica_specs["Worker"], "replicas", 3))
    eventually("scaled", lambda: count("mnist", "Worker", "active"), 3)
    end("mnist-worker-1")
    eventually("a worker that is done", lambda: count("mnist", "Worker", "succeeded"), 1)
    end("mnist-chief-0")
    job = client.wait_for_job_conditions("mnist", wait_timeout=60, polling_interval=1)
    check("a time of its end", job.status.completion_time is not None, True)
    check("succeeded", words("mnist"), "C--S-")
    check("all count as succeeded", [count("mnist", r, "succeeded") for r in ("Chief", "PS", "Worker")], [1, 1, 3])
    check("nothing is cleaned", len(pods("mnist")), 5)


def a_job_from_an_image_that_fails():
    client.create_job(name="image", base_image="example/mnist", num_workers=2, num_ps_replicas=1, env_vars={"A": "B"})
    eventually("active workers", lambda: count("image", "Worker", "active"), 2)
    check("worker 0 leads", pods("image", is_master=True), ["worker-0"])
    end("image-worker-1", 1)
    eventually("failed", lambda: words("image"), "C---F")
    check("waiting for success", raised(lambda: client.wait_for_job_conditions("image", polling_interval=1)), "RuntimeError")
    check("the failed", count("image", "Worker", "failed"), 1)


def a_job_that_is_restarted_and_cleaned():
    client.create_job(tfjob("again", {"PS": 1, "Worker": 2}, policy="ExitCode", clean_pod_policy="Running"))
    eventually("active workers", lambda: count("again", "Worker", "active"), 2)
    first = client.get_job_pods("again", replica_type="worker", replica_index=1)[0].metadata.uid
    end("again-worker-1", 137)
    eventually("another pod", lambda: [p.metadata.uid for p in client.get_job_pods("again", replica_type="worker", replica_index=1)] not in ([], [first]), True)
    eventually("active again", lambda: (words("again"), count("again", "Worker", "active")), ("CR---", 2))
    end("again-worker-0")
    eventually("succeeded", lambda: words("again"), "C--S-")
    eventually("what ran is gone", lambda: pods("again"), ["worker-0"])


def jobs_that_are_deleted():
    for name in ("mnist", "image", "again"):
        client.delete_job(name)
    eventually("no jobs", client.list_jobs, [])
    eventually("no pods", lambda: pods("mnist"), [])
    check("a job that is not there", raised(lambda: client.get_job("mnist")), "RuntimeError")
    check("deleted twice", raised(lambda: client.delete_job("mnist")), "RuntimeError")


for part in (a_job_from_start_to_end, a_job_from_an_image_that_fails, a_job_that_is_restarted_and_cleaned, jobs_that_are_deleted):
    print(part.__name__.replace("_", " "))
    part()
print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
sys.exit(not all(results))
