# Sidecars: the training container decides, also while other containers of its pod run. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of the libraries
# The manifest of a TFJob whose pods ship their logs: with_sidecar NAME RUN_POLICY ROLE=REPLICAS[:RESTART_POLICY]...
with_sidecar() { tfjob "$@" | sed 's/containers: \[/containers: [{name: log, image: example\/log}, /'; }
# beside POD STATE [RESTARTS]: the training container is in that state, and the sidecar runs
beside() {
    set_status "$1" "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.9.9.9\",\"startTime\":\"$(now)\",\"containerStatuses\":[
        {\"name\":\"log\",\"ready\":true,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",\"state\":{\"running\":{\"startedAt\":\"$(now)\"}}},
        {\"name\":\"tensorflow\",\"ready\":false,\"restartCount\":${3:-0},\"image\":\"i\",\"imageID\":\"i\",\"state\":$2}]}}"
}
exited() { echo "{\"terminated\":{\"exitCode\":$1,\"reason\":\"${2:-Error}\",\"finishedAt\":\"$(now)\"}}"; } # EXIT_CODE [REASON]
training() { echo "{\"running\":{\"startedAt\":\"$(now)\"}}"; }

test_sidecar_runs_on_after_success() {
    begin
    with_sidecar keep '' Chief=1 Worker=1 | k apply -f - >/dev/null
    with_sidecar clean 'cleanPodPolicy: Running' Chief=1:OnFailure Worker=1 | k apply -f - >/dev/null
    want_pods 60 "clean-chief-0 clean-worker-0 keep-chief-0 keep-worker-0"
    local pod
    for pod in keep-chief-0 keep-worker-0 clean-chief-0 clean-worker-0; do beside $pod "$(training)"; done
    want_condition 60 tfjob keep Running "True TFJobRunning"
    want_condition 60 tfjob clean Running "True TFJobRunning"
    beside keep-chief-0 "$(exited 0 Completed)"
    want_condition 60 tfjob keep Succeeded "True TFJobSucceeded"
    beside clean-chief-0 "$(exited 0 Completed)"
    want_condition 60 tfjob clean Succeeded "True TFJobSucceeded"
    want_pods 60 "keep-chief-0 keep-worker-0" # cleanPodPolicy None keeps the pod and its sidecar
    never_failed tfjob keep
}

test_sidecar_runs_on_after_failure() {
    begin
    with_sidecar again '' Chief=1 Worker=1:ExitCode | k apply -f - >/dev/null
    with_sidecar stop '' Chief=1 Worker=1:Never | k apply -f - >/dev/null
    want_pods 60 "again-chief-0 again-worker-0 stop-chief-0 stop-worker-0"
    local pod uid
    for pod in again-chief-0 again-worker-0 stop-chief-0 stop-worker-0; do beside $pod "$(training)"; done
    uid=$(uid_of pod again-worker-0)
    bind_to_node again-worker-0
    beside again-worker-0 "$(exited 137 OOMKilled)"
    want 60 pod again-worker-0 '.metadata.deletionTimestamp != null' true
    same "$(value pod again-worker-0 .metadata.deletionGracePeriodSeconds)" 30 "the sidecar's time to end"
    k delete pod again-worker-0 --grace-period=0 --force >/dev/null 2>&1 # as the kubelet does when all containers have ended
    another_pod 60 again-worker-0 "$uid"
    never_failed tfjob again
    beside stop-worker-0 "$(exited 1)"
    want_condition 60 tfjob stop Failed "True TFJobFailed"
    want_pods 60 "again-chief-0 again-worker-0 stop-chief-0 stop-worker-0"
}

# Under Always, and after a failure under OnFailure, the kubelet starts the container again.
test_sidecar_beside_a_container_that_is_started_again() {
    begin
    with_sidecar tf '' Chief=1:Always Worker=2:OnFailure | k apply -f - >/dev/null
    want_pods 60 "tf-chief-0 tf-worker-0 tf-worker-1"
    local pod uid
    for pod in tf-chief-0 tf-worker-0 tf-worker-1; do beside $pod "$(training)"; done
    want_condition 60 tfjob tf Running "True TFJobRunning"
    uid=$(uid_of pod tf-worker-0)
    beside tf-chief-0 "$(exited 0 Completed)"
    beside tf-worker-0 "$(exited 1)"
    beside tf-worker-1 "$(exited 0 Completed)" # reported after the others, and final
    want 60 tfjob tf .status.replicaStatuses.Worker.succeeded 1
    is tfjob tf .status.state Running || problem "it is $(value tfjob tf .status.state)"
    same "$(uid_of pod tf-worker-0)" "$uid" "the worker's pod"
    beside tf-chief-0 "$(training)" 1
    beside tf-worker-0 "$(training)" 1
    never_failed tfjob tf
}

test_sidecar_native_restarts_do_not_count() {
    begin
    tfjob tf 'backoffLimit: 3' Worker=1:OnFailure |
        sed 's/spec: {containers/spec: {initContainers: [{name: proxy, image: example\/proxy, restartPolicy: Always}], containers/' | k apply -f - >/dev/null
    want_pods 60 tf-worker-0
    native() { # RESTARTS of the sidecar, of the training container
        set_status tf-worker-0 "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.9.9.9\",\"startTime\":\"$(now)\",
            \"initContainerStatuses\":[{\"name\":\"proxy\",\"ready\":true,\"restartCount\":$1,\"image\":\"i\",\"imageID\":\"i\",\"state\":$(training)}],
            \"containerStatuses\":[{\"name\":\"tensorflow\",\"ready\":true,\"restartCount\":$2,\"image\":\"i\",\"imageID\":\"i\",\"state\":$(training)}]}}"
    }
    native 9 1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    never_failed tfjob tf
    native 9 3
    want_condition 60 tfjob tf Failed "True TFJobFailed"
}
