#!/bin/bash
# End to end: what a user does, on a real Kubernetes with a kubelet, containers and DNS.
# usage: run.sh [NAME-PART]...    (KEEP=1 leaves the cluster running)
# shellcheck disable=SC2154 # variables of the libraries
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# ---- installing ----

test_long_a1_kustomize() {
    kubectl apply -k "$root/deploy" >"$dir/out" 2>&1 || problem "apply -k: $(tail -n 3 "$dir/out")"
    kubectl -n $system rollout status deployment/trainyard --timeout=240s >>"$dir/out" 2>&1 || problem "the operator is not ready: $(tail -n 3 "$dir/out")"
    kubectl delete -k "$root/deploy" --wait=true --timeout=240s >>"$dir/out" 2>&1 || problem "delete -k: $(tail -n 3 "$dir/out")"
}

test_long_a2_helm_keeps_what_is_yours() {
    helm_install || return
    helm test trainyard -n $system --timeout 300s >"$dir/out" 2>&1 || problem "helm test: $(tail -n 10 "$dir/out")"
    new_namespace "${FUNCNAME[0]}"
    digits kept 1 | k apply -f - >/dev/null
    want_success 180 kept
    helm_install --set logFormat=json
    helm uninstall trainyard -n $system --wait --timeout 240s >"$dir/out" 2>&1 || problem "helm uninstall: $(tail -n 3 "$dir/out")"
    kubectl get crd trainjobs.trainyard.dev tfjobs.kubeflow.org >/dev/null || problem "the CRDs are gone"
    is trainjob kept .status.state Succeeded || problem "the job is gone"
    is pod kept-chief-0 .status.phase Succeeded || problem "the job's pods are gone"
    helm_install
}

# ---- training ----

# want_workers_succeeded N: by themselves. A worker that starts after the end of a short job is deleted instead.
want_workers_succeeded() {
    at_least "$1" 1 "the number of workers that trained"
    workers_succeeded() { [ "$(k get pods -o json | jq '[.items[] | select((.metadata.name | test("-worker-")) and .status.phase == "Succeeded")] | length')" -ge "$1" ]; }
    wait_for 180 workers_succeeded "$1" || problem "fewer than the $1 workers that trained have succeeded: $(k get pods --no-headers | tr '\n' ';')"
}

test_b1_digits_as_in_the_readme() {
    new_namespace "${FUNCNAME[0]}"
    volume
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    wait_for 180 bash -c "kubectl -n $ns get pod digits-chief-0 -o jsonpath='{.status.phase}' | grep -qE 'Running|Succeeded'"
    k logs -f digits-chief-0 >"$dir/chief.log" 2>&1
    want_line 'step [0-9]+ .*loss' "$dir/chief.log"
    want_success 180 digits
    want 180 trainjob digits .status.progress.step 1000
    k get trainjobs >"$dir/table"
    want_line '^NAME +STATE +READY +PROGRESS +STEP +LOSS +EXAMPLES/S +AGE' "$dir/table"
    want_line '^digits +Succeeded +[0-9]+/4 +100 +1000 +0\.[0-9]+' "$dir/table"
    want 180 pod digits-ps-0 .status.phase Succeeded # without a delete, because the job has finished
    want_workers_succeeded "$(sed -nE 's/.* workers ([0-9]+)\/2$/\1/p' "$dir/chief.log" | tail -n 1)"
    at_least "$(value trainjob digits '.status.progress.metrics.accuracy')" 0.9 "training accuracy"
    kubectl explain trainjob.spec.fit >"$dir/explain" 2>&1
    want_line 'epochs' "$dir/explain"
    want_event 180 digits TrainJobSucceeded
    # The command of docs/operating.md copies the model out of the volume.
    get_model "$dir/got" || return
    trainyard export "$(kubectl get pv "$(value pvc digits-out .spec.volumeName)" -o jsonpath='{.spec.local.path}')" -o "$dir/true" >/dev/null
    cmp "$dir/true" "$dir/got" || wrong "the model is not what is on the volume"
}

# As in docs/operating.md, word for word apart from the namespace: a helper pod stays until the model is copied.
get_model() { # FILE
    sed -n '/^kubectl run model-out/,/^kubectl delete pod model-out/p' "$root/docs/operating.md" >"$dir/commands"
    [ -s "$dir/commands" ] || { problem "docs/operating.md has no command 'kubectl run model-out'"; return 1; }
    (cd "$dir" && kubectl config view --raw >kubeconfig && export KUBECONFIG=$dir/kubeconfig && kubectl config set-context --current --namespace="$ns" &&
        bash -e ./commands) >"$dir/model.out" 2>&1 || problem "the commands of docs/operating.md: $(tail -n 3 "$dir/model.out")"
    mv "$dir/model.safetensors" "$1"
}

test_long_b2_progress_moves() {
    new_namespace "${FUNCNAME[0]}"
    digits long 100000 | k apply -f - >/dev/null
    wait_for 180 at_step long 1
    local first
    first=$(step long)
    wait_for 180 at_step long $((first + 100))
    is trainjob long .status.state Running || problem "state: $(value trainjob long .status.state)"
    want 180 trainjob long .status.ready 4/4
    k get trainjobs --no-headers >"$dir/table"
    want_line '^long +Running +4/4 +[0-9]+ +[0-9.e-]+ +[0-9]+' "$dir/table"
    k delete trainjob long --wait=true >/dev/null
}

# By default: every replica has its own certificate and no other, and only the operator reads the progress.
test_long_b3_identity() {
    new_namespace "${FUNCNAME[0]}"
    digits job 100000 | k apply -f - >/dev/null
    wait_for 180 at_step job 1
    local pod secret ip
    secret=$(value trainjob job '.status.identity.secrets[0].name')
    same "$(value secret "$secret" '.metadata.ownerReferences[0].uid')" "$(uid_of trainjob job)" "the owner of the Secret $secret"
    for pod in chief-0 ps-0 worker-0 worker-1; do
        same "$(value pod job-$pod '.spec.volumes[] | select(.name == "trainyard-identity").secret | "\(.secretName) \(.items | map(.key) | join(" "))"')" \
            "$secret ca.crt $pod.crt $pod.key" "the Secret of $pod"
    done
    ip=$(value pod job-chief-0 .status.podIP)
    same "$(curl -sk -m 10 -o "$dir/page" -w '%{http_code}' "https://$ip:8443/progress")" 403 "the progress for a client without a certificate"
    same "$(curl -s -m 10 -o "$dir/plain" -w '%{http_code}' "http://$ip:8080/progress")" 404 "the progress without TLS"
    same "$(curl -s -m 10 -o "$dir/ready" -w '%{http_code}' "http://$ip:8080/readyz")" 200 "the probe without TLS"
    want_no_line '"step"' "$dir/page"
    want_no_line '"step"' "$dir/plain"
    # A worker that is started again has the same certificate.
    k delete pod job-worker-1 >/dev/null
    wait_for 180 in_phase job-worker-1 Running
    local before
    before=$(step job)
    wait_for 180 at_step job $((before + 100))
    k delete trainjob job --wait=true >/dev/null
    wait_for 180 no_secret "$secret"
}

# Further examples whose data the image has: each as it is, one after the other.
test_long_b4_examples_of_digits() {
    local name
    new_namespace "${FUNCNAME[0]}"
    for name in digits-cnn digits-sync digits-mwms; do
        volume
        k apply -f "$root/deploy/examples/$name.yaml" >/dev/null
        want_success 180 $name
        at_least "$(value trainjob $name '.status.progress.metrics.accuracy')" 0.9 "training accuracy of $name"
    done
}
no_secret() { ! k get secret "$1" >/dev/null 2>&1; }

# ---- failures ----

test_c1_pods_are_killed() {
    new_namespace "${FUNCNAME[0]}"
    digits job 100000 's/everySeconds: 600/everySeconds: 1/' | k apply -f - >/dev/null
    wait_for 180 at_step job 100
    local pod before
    for pod in job-worker-1 job-ps-0 job-chief-0; do
        before=$(uid $pod)
        k delete pod $pod --grace-period=0 --force >/dev/null 2>&1
        wait_for 180 other_pod $pod "$before"
        wait_for 180 in_phase $pod Running
        before=$(step job)
        wait_for 180 at_step job $((before + 100)) || problem "no step after $pod was killed"
    done
    is trainjob job '.status.conditions | map(select(.type == "Failed")) | length' 0 || problem "the job failed"
    k delete trainjob job --wait=true >/dev/null
}

test_long_c2_scale() {
    new_namespace "${FUNCNAME[0]}"
    digits job 100000 | k apply -f - >/dev/null
    wait_for 180 at_step job 100
    k scale trainjob/job --replicas=4 >/dev/null || problem "kubectl scale"
    wait_for 180 in_phase job-worker-3 Running
    wait_for 180 bash -c "kubectl -n $ns logs job-chief-0 --tail=5 | grep -q 'workers 4/4'" || problem "the new workers do not train: $(k logs job-chief-0 --tail=2)"
    k scale trainjob/job --replicas=1 >/dev/null
    want_pods 180 "job-chief-0 job-ps-0 job-worker-0"
    local before
    before=$(step job)
    wait_for 180 at_step job $((before + 100)) || problem "no step after the workers were removed"
    k delete trainjob job --wait=true >/dev/null
}

test_long_c3_suspend_and_resume() {
    new_namespace "${FUNCNAME[0]}"
    digits job 100000 | k apply -f - >/dev/null
    wait_for 180 at_step job 100
    k patch trainjob job --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}' >/dev/null
    want_pods 180 ""
    want_condition 180 trainjob job Suspended "True TrainJobSuspended"
    local before
    before=$(step job)
    k patch trainjob job --type=merge -p '{"spec":{"runPolicy":{"suspend":false}}}' >/dev/null
    wait_for 180 in_phase job-chief-0 Running
    wait_for 180 bash -c "kubectl -n $ns logs job-chief-0 | grep -qiE 'restor|resum'" || problem "the chief does not say that it goes on from a checkpoint"
    wait_for 180 at_step job $((before + 100))
    k delete trainjob job --wait=true >/dev/null
}

test_long_c4_node_drained() {
    new_namespace "${FUNCNAME[0]}"
    digits job 100000 's/everySeconds: 600/everySeconds: 1/' | k apply -f - >/dev/null
    wait_for 180 at_step job 100
    kubectl drain node1 --ignore-daemonsets --delete-emptydir-data --force --pod-selector="trainyard.dev/job-name=job" --timeout=240s >"$dir/drain" 2>&1 ||
        problem "drain: $(tail -n 3 "$dir/drain")"
    is trainjob job '.status.conditions | map(select(.type == "Failed" and .status == "True")) | length' 0 || problem "a drain failed the job"
    kubectl uncordon node1 >/dev/null
    local before
    before=$(step job)
    wait_for 180 at_step job $((before + 100)) || problem "no step after the drain"
    k delete trainjob job --wait=true >/dev/null
}

# A second, fake node stays: when all nodes of a cluster are lost, Kubernetes assumes its own fault and evicts no pod.
test_long_c5_node_not_ready() {
    new_namespace "${FUNCNAME[0]}"
    "$cluster" kwok 1 >"$dir/kwok" || { problem "kwok: $(cat "$dir/kwok")"; return; }
    helm_install --set trainjob.forceDeleteSeconds=10
    digits job 100000 's/everySeconds: 600/everySeconds: 1/; s/seed: 7/seed: 7, stopGraceSeconds: 10/' | k apply -f - >/dev/null
    wait_for 180 at_step job 100
    local kubelet
    kubelet=$("$cluster" pid kubelet)
    kill -STOP "$kubelet"
    wait_for 180 bash -c "kubectl get node node1 -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}' | grep -q Unknown"
    want_event 400 job NodeLost 'does not answer' # after the toleration, the grace and the time of --force-delete-seconds
    is trainjob job '.status.conditions | map(select(.type == "Failed" and .status == "True")) | length' 0 || problem "a lost node failed the job"
    kill -CONT "$kubelet"
    kubectl wait --for=condition=Ready node/node1 --timeout=240s >/dev/null
    local before
    before=$(step job)
    wait_for 180 at_step job $((before + 100)) || problem "no step after the node came back: $(k get pods --no-headers | tr '\n' ';')"
    k delete trainjob job --wait=true >/dev/null
}

# Synchronous updates: pods come, go and die, and the weights are those of one worker and one process of each kind here.
test_long_c6_sync_is_scaled() {
    new_namespace "${FUNCNAME[0]}"
    digits job 100000 's/updates: async/updates: sync, replicasToAggregate: 3/; s/everySeconds: 600/everySeconds: 1/' >"$dir/job.yaml"
    k apply -f "$dir/job.yaml" >/dev/null
    wait_for 180 at_step job 100
    local before pod volume saved
    k scale trainjob/job --replicas=3 >/dev/null || problem "kubectl scale"
    wait_for 180 bash -c "kubectl -n $ns logs job-chief-0 --tail=5 | grep -q 'workers 3/3'" || problem "the new worker does not train: $(k logs job-chief-0 --tail=2)"
    for pod in job-worker-1 job-ps-0; do
        before=$(uid $pod)
        k delete pod $pod --grace-period=0 --force >/dev/null 2>&1
        wait_for 180 other_pod $pod "$before"
        before=$(step job)
        wait_for 180 at_step job $((before + 100)) || problem "no step after $pod was killed"
    done
    k scale trainjob/job --replicas=1 >/dev/null
    want_pods 180 "job-chief-0 job-ps-0 job-worker-0"
    before=$(step job)
    wait_for 180 at_step job $((before + 100)) || problem "no step after the workers were removed"
    k patch trainjob job --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}' >/dev/null
    want_pods 180 ""
    volume=$(kubectl get pv "$(value pvc job-out .spec.volumeName)" -o jsonpath='{.spec.local.path}')
    saved=$(sed -n 's/^model_checkpoint_path: "model.ckpt-\([0-9]*\)"$/\1/p' "$volume/checkpoints/checkpoint")
    at_least "${saved:-0}" 500 "the step of the last checkpoint"
    sed -i "s/epochs: 100000/steps: ${saved:-1}/" "$dir/job.yaml"
    trainyard run "$dir/job.yaml" --data-dir "$root/deploy/examples" --output-dir "$dir/here" --replicas worker=1 >"$dir/here.out" 2>&1 ||
        problem "here: $(tail -n 3 "$dir/here.out")"
    trainyard export "$volume" -o "$dir/there.npz" >/dev/null && trainyard export "$dir/here" -o "$dir/here.npz" >/dev/null
    cmp "$dir/there.npz" "$dir/here.npz" || wrong "the weights of step $saved are not those of a run here"
    k delete trainjob job --wait=true >/dev/null
}

# members_job NAME SED-EXPRESSION: digits-mwms under another name, and a volume for it
members_job() {
    volume
    sed -E -e "s/\{name: digits-mwms\}/{name: $1}/; s/digits-mwms-out/$1-out/; s/units: 64/units: 8000/; s/everySeconds: 60/everySeconds: 600/" \
        -e "$2" "$root/deploy/examples/digits-mwms.yaml" >"$dir/$1.yaml"
    k apply -f "$dir/$1.yaml" >/dev/null
}
log_has() { k logs "$1" 2>/dev/null | grep -qE -- "$2"; } # POD REGEX
logged() { wait_for 180 log_has "$@" || problem "$1 does not say '$2': $(k logs "$1" --tail=5)"; }
# ends_as_here NAME: the job is suspended, and the weights of its last checkpoint are those of `trainyard run` at that step.
ends_as_here() {
    local saved output
    k patch trainjob "$1" --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}' >/dev/null
    want_pods_of "$1" ""
    output=$(kubectl get pv "$(value pvc "$1-out" .spec.volumeName)" -o jsonpath='{.spec.local.path}')
    saved=$(sed -n 's/^model_checkpoint_path: "model.ckpt-\([0-9]*\)"$/\1/p' "$output/checkpoints/checkpoint")
    at_least "${saved:-0}" 200 "the step of the last checkpoint of $1"
    sed -i "s/epochs: 100000/steps: ${saved:-1}/" "$dir/$1.yaml"
    trainyard run "$dir/$1.yaml" --data-dir "$root/deploy/examples" --output-dir "$dir/$1" --replicas worker=2 \
        --set strategy.minReplicas=1 >"$dir/$1.out" 2>&1 || problem "here: $(tail -n 3 "$dir/$1.out")"
    trainyard export "$output" -o "$dir/$1-there.npz" >/dev/null && trainyard export "$dir/$1" -o "$dir/$1-here.npz" >/dev/null
    cmp "$dir/$1-there.npz" "$dir/$1-here.npz" || wrong "the weights of step $saved of $1 are not those of a run here"
    k delete trainjob "$1" --wait=true >/dev/null
}
want_pods_of() { # JOB "a b": the names of its pods that are not being deleted, sorted
    holds 180 pod '' '[.[] | select(.metadata.deletionTimestamp == null and .metadata.labels["trainyard.dev/job-name"] == $job) | .metadata.name] | sort | join(" ") == $wanted' \
        --arg job "$1" --arg wanted "$2" || problem "pods are '$(k get pods --no-headers | tr '\n' ';')', not '$2'"
}

joins_of() { k logs job-chief-0 2>/dev/null | grep -cE "worker-$1 joined at step [0-9]+: 2 workers"; } # INDEX
joined_again() { [ "$(joins_of "$1")" -gt "$2" ]; } # INDEX JOINS

# MultiWorkerMirrored, with a Chief and without one: a worker is killed while no node takes its next pod. One job trains on
# without it, the other one needs two workers and waits.
test_long_c7_members_come_and_go() {
    local pod before uids joins
    new_namespace "${FUNCNAME[0]}"
    members_job job 's/epochs: 20/epochs: 100000/'
    members_job lead 's/epochs: 20/epochs: 100000/; s/replicasToAggregate: 2/&, minReplicas: 2/; /^    Chief: /d'
    wait_for 180 at_step job 100
    wait_for 180 at_step lead 100
    logged job-chief-0 'workers (0, 1|1, 0) train from step 0 on|worker-[01] joined at step [0-9]+: 2 workers'
    uids="$(uid job-chief-0) $(uid job-worker-0) $(uid lead-worker-0)"
    kubectl cordon node1 >/dev/null
    k delete pod job-worker-1 lead-worker-1 --grace-period=0 --force >/dev/null 2>&1
    logged job-chief-0 'worker-1 (is lost|terminates|was restarted): worker-0 goes on from step'
    wait_for 180 in_phase job-worker-1 Pending
    before=$(step job)
    wait_for 180 at_step job $((before + 100)) || problem "the other worker does not train on"
    logged lead-worker-0 'waiting [0-9]+ s for .*1 of at least 2 workers are there'
    same "$(phase job-worker-1) $(phase lead-worker-1)" "Pending Pending" "the phase of the workers that are missing"
    joins=$(joins_of 1)
    kubectl uncordon node1 >/dev/null
    wait_for 180 joined_again 1 "$joins" || problem "worker-1 does not come back: $(k logs job-chief-0 --tail=5)"
    logged lead-worker-0 'workers (0, 1|1, 0) train from step [1-9][0-9]* on'
    for pod in job lead; do
        before=$(step $pod)
        wait_for 180 at_step $pod $((before + 100)) || problem "no step of $pod after the worker came back"
    done
    k scale trainjob/job --replicas=3 >/dev/null || problem "kubectl scale"
    logged job-chief-0 'worker-2 joined at step [0-9]+: 3 workers'
    k scale trainjob/job --replicas=2 >/dev/null
    want_pods_of job "job-chief-0 job-worker-0 job-worker-1"
    logged job-chief-0 'worker-2 (terminates|is lost): workers (0, 1|1, 0) go on from step'
    same "$(uid job-chief-0) $(uid job-worker-0) $(uid lead-worker-0)" "$uids" "the pods that were not deleted"
    same "$(k get pods -o json | jq '[.items[].status.containerStatuses[]?.restartCount] | add')" 0 "the number of restarts"
    k logs job-chief-0 >"$dir/job.log"
    k logs lead-worker-0 >"$dir/lead.log"
    ends_as_here job
    ends_as_here lead
}

# ---- volumes and images ----

# The CRD keeps a misspelt key of a template; it is reported when the pod is created.
test_long_d0_misspelt_template() {
    new_namespace "${FUNCNAME[0]}"
    digits job 1 's/^    Worker: {replicas: 2}.*/    Worker: {template: {spec: {containers: [{name: trainer, resource: {}}]}}}/' | k apply -f - >/dev/null
    want_condition 180 trainjob job ReplicaFailure "True FailedCreate"
    value trainjob job '.status.conditions[] | select(.type == "ReplicaFailure") | .message' >"$dir/message"
    want_line 'pod job-worker-0: .*unknown field "spec.containers\[0\].resource"' "$dir/message"
    k delete trainjob job --wait=true >/dev/null
}

# The folders of this class belong to root, and fsGroup is not honoured.
test_long_d1_output_that_cannot_be_written() {
    new_namespace "${FUNCNAME[0]}"
    digits job 1 's/accessModes: /storageClassName: hostpath, accessModes: /' | k apply -f - >/dev/null
    want_condition 180 trainjob job Failed "True BadInput"
    value trainjob job '.status.conditions[-1].message' >"$dir/message"
    want_line 'job-chief-0 exited with code 2: .*/logs cannot be written by user 65532.*mode 0750.*fsGroup' "$dir/message"
}

test_long_d2_tensorboard() {
    "$cluster" image trainyard/test-tensorboard:1 "$root/test/images/tensorboard" >"$dir/image" 2>&1 || { problem "image: $(tail -n 3 "$dir/image")"; return; }
    new_namespace "${FUNCNAME[0]}"
    digits job 20 's/^  fit:/  tensorboard: {image: docker.io\/trainyard\/test-tensorboard:1}\n  fit:/' | k apply -f - >/dev/null
    want_success 180 job
    k rollout status deployment/job-tensorboard --timeout=300s >/dev/null || problem "TensorBoard is not ready: $(k get pods)"
    local port forward
    port=$(free_port)
    keep_forward service/job-tensorboard 6006 &
    forward=$!
    wait_for 180 curl -fs -m 10 -o "$dir/page" "http://127.0.0.1:$port/"
    wait_for 180 bash -c "curl -fs -m 10 'http://127.0.0.1:$port/data/plugin/scalars/tags' | grep -q train"
    kill $forward 2>/dev/null
    wait $forward 2>/dev/null
}

# The network of the tests does not enforce policies. So their content is compared, and the test reports that.
test_long_d3_network_policy_is_there() {
    new_namespace "${FUNCNAME[0]}"
    digits job 20 | k apply -f - >/dev/null
    want 180 networkpolicy job '.spec.podSelector.matchLabels["trainyard.dev/job-name"]' job
    is networkpolicy job '.spec.ingress | map(.from[]) | length > 0' true || problem "nobody may reach the replicas"
    is networkpolicy job '[.spec.ingress[] | .ports[0].port as $port | .from[].namespaceSelector.matchLabels["kubernetes.io/metadata.name"] // empty | "\(.) \($port)"] | sort | join(", ")' \
        "monitoring 8080, $system 8080, $system 8443" || problem "who may look: $(value networkpolicy job .spec.ingress)"
    echo "    the node's bridge enforces no NetworkPolicy: the object was compared, its effect not seen"
}

# keep_forward WHAT PORT: in the background; forwards $port of this machine. A forwarding ends with the first connection
# that is not accepted: then another one is started.
keep_forward() {
    local child=
    trap 'kill $child 2>/dev/null; exit' TERM
    while :; do
        kubectl -n "$ns" port-forward "$1" "$port:$2" >/dev/null 2>&1 &
        child=$!
        wait $child
        sleep 0.2
    done
}

# ---- TFJob ----

# ask POD PATH FILE: the answer of the test server in the pod. The request is repeated when no answer comes (the server
# gives a slow client two seconds), unless the server has already done what was requested.
ask() {
    local port forward before
    port=$(free_port)
    before=$(running_since "$1")
    keep_forward "pod/$1" 2222 &
    forward=$!
    wait_for 180 curl -fs -m 10 -o "$3" "http://127.0.0.1:$port/env"
    wait_for 180 answered_or_ended "$1" "$before" -o "$3" "http://127.0.0.1:$port$2"
    kill $forward 2>/dev/null
    wait $forward 2>/dev/null
}
running_since() { value pod "$1" '.status.containerStatuses[0].state.running.startedAt'; }
answered_or_ended() { curl -fs -m 10 "${@:3}" || [ "$(running_since "$1")" != "$2" ]; } # POD SINCE CURL-ARGUMENTS
server_job() { tfjob "$@" | sed 's#example/test-server#docker.io/trainyard/test-server:1#'; }

test_e1_tfjob_unchanged() {
    new_namespace "${FUNCNAME[0]}"
    server_job tf 'cleanPodPolicy: Running' Chief=1 PS=1 Worker=2 | k apply -f - >/dev/null
    want_condition 180 tfjob tf Running "True TFJobRunning"
    wait_for 180 in_phase tf-worker-1 Running
    ask tf-worker-1 /tfconfig "$dir/tfconfig"
    [ "$(cat "$dir/tfconfig")" = "{\"cluster\":{\"chief\":[\"tf-chief-0.$ns.svc:2222\"],\"ps\":[\"tf-ps-0.$ns.svc:2222\"],\"worker\":[\"tf-worker-0.$ns.svc:2222\",\"tf-worker-1.$ns.svc:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}" ] ||
        problem "TF_CONFIG: $(cat "$dir/tfconfig")"
    ask tf-chief-0 '/exit?exitCode=0' "$dir/answer"
    want_condition 180 tfjob tf Succeeded "True TFJobSucceeded"
    want_pods 180 "tf-chief-0"
}

test_long_e2_tfjob_restarts() {
    new_namespace "${FUNCNAME[0]}"
    server_job code '' Worker=2:ExitCode | k apply -f - >/dev/null
    server_job kubelet 'backoffLimit: 2' Worker=1:OnFailure | k apply -f - >/dev/null
    wait_for 180 in_phase code-worker-1 Running
    wait_for 180 in_phase code-worker-0 Running
    local before
    before=$(uid code-worker-1)
    ask code-worker-1 '/exit?exitCode=130' "$dir/answer"
    wait_for 180 other_pod code-worker-1 "$before"
    wait_for 180 in_phase code-worker-1 Running
    ask code-worker-1 '/exit?exitCode=0' "$dir/answer" # done: never again, also when its pod is deleted
    want 180 tfjob code .status.replicaStatuses.Worker.succeeded 1
    k delete pod code-worker-1 >/dev/null
    ask code-worker-0 '/exit?exitCode=1' "$dir/answer"
    want_condition 180 tfjob code Failed "True TFJobFailed"
    k get pod code-worker-1 >/dev/null 2>&1 && problem "a worker that had succeeded was run again"
    wait_for 180 in_phase kubelet-worker-0 Running
    ask kubelet-worker-0 '/exit?exitCode=1' "$dir/answer"
    wait_for 180 bash -c "[ \"\$(kubectl -n $ns get pod kubelet-worker-0 -o jsonpath='{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}')\" = '1 true' ]"
    ask kubelet-worker-0 '/exit?exitCode=1' "$dir/answer"
    want_condition 180 tfjob kubelet Failed "True TFJobFailed"
    value tfjob kubelet '.status.conditions[-1].message' >"$dir/message"
    want_line 'backoff limit' "$dir/message"
}

# ---- the operator itself ----

test_long_f1_leader_is_killed() {
    helm_install --set replicas=2 || return
    new_namespace "${FUNCNAME[0]}"
    local leader
    wait_for 180 bash -c "kubectl -n $system get lease trainyard-operator -o jsonpath='{.spec.holderIdentity}' | grep -q ."
    leader=$(kubectl -n $system get lease trainyard-operator -o jsonpath='{.spec.holderIdentity}' | sed 's/_.*//')
    digits job 100000 | k apply -f - >/dev/null
    wait_for 180 at_step job 1
    kubectl -n $system delete pod "$leader" --grace-period=0 --force >/dev/null 2>&1
    wait_for 180 bash -c "h=\$(kubectl -n $system get lease trainyard-operator -o jsonpath='{.spec.holderIdentity}'); [ -n \"\$h\" ] && [ \"\${h%_*}\" != '$leader' ]"
    local before
    before=$(step job)
    wait_for 180 at_step job $((before + 100)) || problem "nobody watches the job"
    want_pods 1 "job-chief-0 job-ps-0 job-worker-0 job-worker-1"
    k delete trainjob job --wait=true >/dev/null
    helm_install --set replicas=1
}

node_up
run_tests "$@"
status=$?
[ "${KEEP:-0}" = 1 ] || "$cluster" down --purge
exit $status
