# TrainJobs as far as no kubelet is needed. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of and for the libraries
test_trainjob_invalid_spec_is_named() {
    begin
    digits 's/Adam/Adamm/' | k apply -f - >/dev/null
    want_condition 60 trainjob digits Failed "True InvalidSpec"
    value trainjob digits '.status.conditions[-1].message' >"$dir/message"
    want_line "^spec.compile.optimizer: optimizer 'Adamm' is not known; did you mean 'Adam'" "$dir/message"
    want_pods 1 ""
    [ "$(k get trainjobs --no-headers | awk '{print $2}')" = Failed ] || problem "kubectl get: $(k get trainjobs)"
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null # mended
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    want 60 trainjob digits '.status | "\(.state) \(.completionTime)"' "Created null"
}

test_trainjob_life() {
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    is configmap digits-job '.data | keys | join(" ")' job.yaml || problem "no job file"
    is networkpolicy digits '.spec.policyTypes | join(" ")' Ingress || problem "no policy"
    want 60 service digits .spec.clusterIP None
    want_services 1 digits
    running digits-chief-0 digits-ps-0 digits-worker-0
    want 60 trainjob digits .status.ready 3/4
    want_condition 60 trainjob digits Running "True TrainJobRunning"
    ended digits-chief-0 Succeeded 0 Completed '{\"state\":\"finished\",\"step\":1000,\"epoch\":20,\"epochs\":20,\"percent\":100,\"loss\":0.05,\"metrics\":{\"loss\":0.05,\"accuracy\":0.98},\"examples_per_second\":5000,\"last_checkpoint_step\":1000,\"weights_sha256\":\"'"$(printf '%064d' 7)"'\"}'
    want_condition 60 trainjob digits Succeeded "True TrainJobSucceeded"
    want 60 trainjob digits .status.progress.step 1000
    want 60 trainjob digits .status.progress.weightsSHA256 "$(printf '%064d' 7)"
    [ "$(k get trainjobs --no-headers | awk '{print $2, $4, $5, $6}')" = "Succeeded 100 1000 0.05" ] || problem "kubectl get: $(k get trainjobs)"
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0" # does not wait for the worker that has not started
}

no_deployments() { [ -z "$(k get deployments -o name)" ]; }
# Removed from the spec while no operator runs.
test_trainjob_tensorboard_goes() {
    begin
    sed 's/^  fit:/  tensorboard: {}\n  fit:/' "$root/deploy/examples/digits.yaml" | k apply -f - >/dev/null
    want 60 deployment digits-tensorboard '.spec.template.spec.containers[0].name' tensorboard
    stop_operator
    k patch trainjob digits --type=json -p '[{"op": "remove", "path": "/spec/tensorboard"}]' >/dev/null
    want_services 1 "digits digits-tensorboard"
    start_operator "${own_flags[@]}"
    want_services 60 digits
    wait_for 60 no_deployments
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
}

# The quota has no room for TensorBoard's pod. Its Deployment exists, and the job runs.
test_trainjob_tensorboard_over_quota() {
    begin
    may_be_forbidden=1
    k create quota few --hard=pods=4 >/dev/null
    want 60 quota few .status.hard.pods 4
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    k patch trainjob digits --type=merge -p '{"spec":{"tensorboard":{}}}' >/dev/null
    want_condition 120 trainjob digits TensorBoardFailure "True FailedCreate"
    want 60 trainjob digits '.status.conditions | map(select(.type == "TensorBoardFailure"))[0].message | test("exceeded quota: few")' true
    want_condition 1 trainjob digits Created "True TrainJobCreated"
}

digits() { # SED-SCRIPT: the example, changed, without its claim
    sed '1,/^---/d' "$root/deploy/examples/digits.yaml" | sed "$1"
}

# The operator reports the error of `trainyard validate` for an invalid manifest. That it does so when it first sees the job
# is tested in test/data/plan/invalid_at_creation.
test_trainjob_wrong_manifests() {
    begin
    local name change words
    while IFS='|' read -r name change words; do
        digits "$change; s/^metadata: {name: digits}/metadata: {name: $name}/" >"$dir/$name.yaml"
        trainyard validate "$dir/$name.yaml" >"$dir/$name.said" 2>&1 && problem "$name: trainyard validate finds nothing"
        k apply -f "$dir/$name.yaml" >/dev/null || continue
        want_condition 60 trainjob "$name" Failed "True InvalidSpec"
        value trainjob "$name" '.status.conditions | map(select(.type == "Failed"))[0].message' >"$dir/$name.message"
        want_line "$words" "$dir/$name.message"
        grep -qF -- "$(cat "$dir/$name.message")" "$dir/$name.said" || problem "$name: '$(cat "$dir/$name.message")', but validate says '$(cat "$dir/$name.said")'"
        want_event 60 "$name" TrainJobFailed
    done <<'END'
optimizer|s/Adam:/Adamm:/|^spec.compile.optimizer: .*'Adamm'.*did you mean 'Adam'
argument|s/learning_rate: 0.002/learning_rat: 0.002/|did you mean 'learning_rate'
layer|s/- Flatten: {}/- Flaten: {}/|^spec.model.layers\[1\]: .*'Flaten'.*did you mean 'Flatten'
layer-argument|s/Dense: {units: 64, activation: relu}/Dense: {unit: 64, activation: relu}/|^spec.model.layers\[2\].*did you mean 'units'
loss|s/loss: sparse_categorical_crossentropy/loss: sparse_crossentropy/|^spec.compile.loss
metric|s/metrics: \[accuracy\]/metrics: [acuracy]/|^spec.compile.metrics.*'acuracy'
misspelt|s/batchSize: 30/batchSize: 30, shufle: 3/|^spec.fit: key 'shufle' is not known
END
    want_pods 1 ""
}

test_trainjob_model_edited_after_the_start() {
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    running digits-chief-0
    want_condition 60 trainjob digits Running "True TrainJobRunning"
    set_job trainjob digits '{"spec":{"fit":{"epochs":3}}}'
    want_condition 60 trainjob digits SpecChangeRefused "True SpecChanged"
    want_event 60 digits SpecChangeRefused 'was changed after the start'
    same "$(value trainjob digits .status.state)" Running "the state"
    same "$(events_count digits SpecChangeRefused)" 1 "how often it was told"
    k get configmap digits-job -o json | jq -r '.data["job.yaml"]' >"$dir/job"
    want_line 'epochs"?: *20' "$dir/job"
    set_job trainjob digits '{"spec":{"fit":{"epochs":20}}}'
    want_condition 60 trainjob digits SpecChangeRefused "False SpecRestored"
}

# No node for any pod: reported once, whichever pod waits.
test_trainjob_waiting_is_told_once() {
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_event 60 digits Unschedulable 'no nodes available'
    want_condition 1 trainjob digits Created "True TrainJobCreated"
    want 60 trainjob digits '.status.conditions[-1].message | test("Waiting for digits-[a-z]+-[01]: Unschedulable: no nodes")' true
    running digits-chief-0
    want_condition 60 trainjob digits Running "True TrainJobRunning"
    running digits-ps-0 digits-worker-0 digits-worker-1
    want 60 trainjob digits .status.ready 4/4
    at_most "$(grep -c 'Unschedulable' "$dir/operator.log")" 3 "lines about it in the log"
}

# The namespace's quota allows two pods: the job reports the refused one and the reason, once. The others follow when
# the quota allows it.
test_trainjob_refused_pods() {
    begin
    may_be_forbidden=1 # that is what it is about
    k create quota few --hard=pods=2 >/dev/null
    want 60 quota few .status.hard.pods 2
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_condition 60 trainjob digits ReplicaFailure "True FailedCreate"
    local refused version
    refused=$(value trainjob digits '.status.conditions | map(select(.type == "ReplicaFailure"))[0].message')
    grep -qE '^pod (digits-[a-z]+-[01]): pods "\1" is forbidden: exceeded quota: few, requested: pods=1' <<<"$refused" || problem "it says '$refused'"
    want 60 trainjob digits '.status.conditions[-1] | "\(.type): \(.message)"' "Created: TrainJob digits is created. Waiting for $refused"
    want 60 trainjob digits .status.ready 0/4
    same "$(k get trainjobs.trainyard.dev --no-headers | awk '{print $2, $3}')" "Created 0/4" "kubectl get"
    eventually 60 2 count_pods
    version=$(settled_version trainjob digits)
    wait_for 120 more_lines_than "$(grep -c FailedCreatePod "$dir/operator.log")" 3 FailedCreatePod # two more tries, at least
    same "$(value trainjob digits .metadata.resourceVersion)" "$version" "the version after more tries"
    crash_operator
    wait_for 120 more_lines_than "$(grep -c FailedCreatePod "$dir/operator.log")" 1 FailedCreatePod
    want_condition 1 trainjob digits ReplicaFailure "True FailedCreate"
    k delete quota few >/dev/null
    want_pods 180 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    want 60 trainjob digits '.status.conditions | map(.type) | join(" ")' Created
    same "$(value trainjob digits '[.status.replicaStatuses // {} | .[].restarts // 0] | add // 0')" 0 "restarts"
}
count_pods() { k get pods --no-headers | wc -l; }

# Two jobs, one quota. The younger one holds two of its three pods, and has no use for them without the third: it gives
# them back to the older one, which fits. When that has ended, the younger one has its turn.
test_trainjob_two_share_a_quota() {
    begin
    may_be_forbidden=1
    ranks older 2 '{suspend: true}' | k apply -f - >/dev/null
    k create quota few --hard=pods=3 >/dev/null
    want 60 quota few .status.hard.pods 3
    k run other --image=example --restart=Never >/dev/null
    wait_for 60 is_past older # creation times have seconds
    ranks younger 3 | k apply -f - >/dev/null
    wait_for 60 has_pods 3 # which two of the younger one are admitted is a matter of order
    want_condition 60 trainjob younger ReplicaFailure "True FailedCreate"
    set_job trainjob older '{"spec":{"runPolicy":{"suspend":false}}}'
    want_pods 180 "older-worker-0 older-worker-1 other"
    want_condition 60 trainjob younger ReplicaFailure "True WaitingForQuota"
    want_event 60 younger WaitingForQuota 'because the older TrainJob older waits for a quota of the namespace, too$'
    want 60 trainjob younger .status.state Created
    k delete pod other >/dev/null
    succeeded older-worker-1 older-worker-0 # the end of worker 0 is the job's
    want_condition 60 trainjob older Succeeded "True TrainJobSucceeded"
    want_pods 180 "older-worker-0 older-worker-1 younger-worker-0 younger-worker-1 younger-worker-2"
    same "$(value trainjob younger '[.status.replicaStatuses // {} | .[].restarts // 0] | add // 0')" 0 "restarts"
}
has_pods() { [ "$(k get pods --no-headers | wc -l)" = "$1" ]; } # NUMBER
is_past() { [ "$(now)" != "$(value trainjob "$1" .metadata.creationTimestamp)" ]; } # NAME: the second of its creation
ranks() { # NAME REPLICAS [RUN_POLICY]: programs that all need each other
    printf 'apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: %s}\nspec:\n  runPolicy: %s\n  replicaSpecs:\n' "$1" "${3:-{\}}"
    printf '    Worker: {replicas: %s, template: {spec: {containers: [{name: trainer, image: example}]}}}\n' "$2"
}

# A job that its quota can never admit says so at once, and does not keep its pods from a job that fits.
test_trainjob_larger_than_its_quota() {
    begin
    may_be_forbidden=1
    k create quota few --hard=pods=2 >/dev/null
    want 60 quota few .status.hard.pods 2
    ranks large 3 | k apply -f - >/dev/null
    wait_for 60 has_pods 2
    want 60 trainjob large '.status.conditions | map(select(.type == "ReplicaFailure"))[0].message | test("; the job needs pods=3 to train, and the quota has pods=2$")' true
    wait_for 60 is_past large # creation times have seconds: small is the younger one
    ranks small 1 | k apply -f - >/dev/null
    want_pods 180 small-worker-0
    want_event 60 large WaitingForQuota 'given back to TrainJob small'
}
# settled_version KIND NAME: its version once it has not changed for three seconds, because counts are written with a
# delay.
settled_version() {
    local version='' now since=$SECONDS end=$((SECONDS + 60))
    while now=$(value "$1" "$2" .metadata.resourceVersion); [ "$now" != "$version" ] || [ $((SECONDS - since)) -lt 4 ]; do
        [ "$now" = "$version" ] || since=$SECONDS
        version=$now
        [ $SECONDS -lt $end ] || break
        sleep 0.2
    done
    echo "$version"
}
more_lines_than() { [ "$(grep -c "$3" "$dir/operator.log")" -gt $(($1 + $2)) ]; } # BEFORE MORE WORDS

test_trainjob_bad_input_ends_at_once() {
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    running digits-ps-0 digits-worker-0
    failed digits-chief-0 2 Error "spec.data.train: digits/train-images-idx3-ubyte: no such file"
    want_condition 60 trainjob digits Failed "True BadInput"
    same "$(value trainjob digits '.status.conditions[-1].message')" "digits-chief-0 exited with code 2: spec.data.train: digits/train-images-idx3-ubyte: no such file" "the message"
    want_pods 60 "digits-chief-0" # cleanPodPolicy Running
}

test_trainjob_worker_comes_back() {
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    running digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1
    want 60 trainjob digits .status.ready 4/4
    local pod uid
    for pod in digits-worker-1 digits-ps-0 digits-chief-0; do
        uid=$(uid_of pod $pod)
        failed $pod 138
        another_pod 60 $pod "$uid"
        running $pod
        want_condition 60 trainjob digits Running "True TrainJobRunning"
    done
    k scale trainjob/digits --replicas=3 >/dev/null || problem "kubectl scale"
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 digits-worker-2"
    never_failed trainjob digits
}

# Kubeflow's Trainer has a TrainJob, too. Alone: the short name trainjobs may be theirs as soon as their CRD exists.
alone_trainjob_beside_kubeflow_trainer() {
    export KUBECACHEDIR=$dir/kubectl
    kubectl apply -f "$root/test/data/crds/trainer-trainjobs.yaml" >/dev/null
    are_established trainjobs.trainer.kubeflow.org
    wait_for 60 kubectl get trainjobs.trainer.kubeflow.org -A # it is served a moment later
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    k apply -f - >/dev/null <<'END'
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: theirs}
spec: {runtimeRef: {name: torch-distributed}}
END
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    want 60 trainjobs.trainyard.dev digits .status.state Created
    same "$(k get tyj --no-headers | awk '{print $1, $2}')" "digits Created" "kubectl get tyj"
    same "$(k get trainjobs.trainyard.dev -o name)" "trainjob.trainyard.dev/digits" "ours by the full name"
    same "$(k get trainjobs.trainer.kubeflow.org -o name)" "trainjob.trainer.kubeflow.org/theirs" "theirs by the full name"
    same "$(k get trainjobs.trainer.kubeflow.org theirs -o json | jq '.status // {} | length')" 0 "their status"
    kubectl delete crd trainjobs.trainer.kubeflow.org >/dev/null
}

test_metrics() {
    begin
    { tfjob good '' Worker=1; echo ---; tfjob bad '' Worker=1; echo ---; tfjob again '' Worker=1:ExitCode; } | k apply -f - >/dev/null
    want_pods 60 "again-worker-0 bad-worker-0 good-worker-0"
    local uid of="{job_namespace=\"$ns\",framework=\"tensorflow\"}"
    uid=$(uid_of pod again-worker-0)
    succeeded good-worker-0
    failed bad-worker-0 1
    failed again-worker-0 137
    another_pod 60 again-worker-0 "$uid"
    want_condition 60 tfjob good Succeeded "True TFJobSucceeded"
    want_condition 60 tfjob bad Failed "True TFJobFailed"
    local what
    for what in created=3 successful=1 failed=1 restarted=1; do
        eventually 60 "${what#*=}" metric "training_operator_jobs_${what%=*}_total$of"
    done
    eventually 60 4 metric 'training_operator_created_pods_total{framework="tensorflow"}'
    eventually 60 3 metric 'training_operator_succeeded_service_creation_total{framework="tensorflow"}'
    same "$(metric 'trainyard_operator_tfjob_controller_active')" 1 "the TFJob controller"
    same "$(metric 'trainyard_operator_jobs{kind="TFJob"}')" 3 "jobs known"
    for what in Restarting=1 Succeeded=1 Failed=1 Running=0; do
        eventually 60 "${what#*=}" metric "trainyard_operator_jobs_by_state{kind=\"TFJob\",state=\"${what%=*}\"}"
    done
    curl -fs "http://127.0.0.1:$metrics/metrics" >"$dir/metrics"
    local name
    for name in controller_runtime_reconcile_total controller_runtime_reconcile_time_seconds_bucket controller_runtime_max_concurrent_reconciles \
        workqueue_depth workqueue_adds_total workqueue_queue_duration_seconds_bucket workqueue_retries_total rest_client_requests_total \
        leader_election_master_status process_resident_memory_bytes; do
        want_line "^${name}[{ ]" "$dir/metrics"
    done
    crash_operator
    want_pods 1 "again-worker-0 bad-worker-0 good-worker-0"
    for what in Restarting=1 Succeeded=1 Failed=1; do # it has seen each of them
        eventually 60 "${what#*=}" metric "trainyard_operator_jobs_by_state{kind=\"TFJob\",state=\"${what%=*}\"}"
    done
    for what in created successful failed restarted; do
        same "$(metric "training_operator_jobs_${what}_total$of")" 0 "jobs $what, counted again by a new operator"
    done
    k delete tfjob good >/dev/null
    eventually 60 1 metric "training_operator_jobs_deleted_total$of"
}

# A chief that reports its progress: a test server at the address in its pod's status.
test_trainjob_progress_and_stall() {
    command -v python3 >/dev/null || { skip_reason="python3 is not here"; return; }
    local ip=127.77.$((BASHPID % 250 + 1)).1 server file
    mkdir "$dir/www"
    tell_step() { echo "{\"state\":\"training\",\"step\":$1,\"epoch\":2,\"epochs\":20,\"percent\":40,\"remaining_seconds\":75,\"loss\":$2,\"metrics\":{\"loss\":$2},\"examples_per_second\":4821.7,\"last_checkpoint_step\":0}" >"$dir/www/next" && mv "$dir/www/next" "$dir/www/progress"; }
    tell_step 100 0.5
    begin
    sed 's/^  replicaSpecs:/  runPolicy: {stallSeconds: 60}\n  replicaSpecs:/' "$root/deploy/examples/digits.yaml" | k apply -f - >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    running digits-chief-0
    # The chief's page, with the chief's certificate; it is for those who have a certificate of the job.
    for file in ca.crt chief-0.crt chief-0.key; do
        k get secret "$(value trainjob digits '.status.identity.secrets[0].name')" -o json | jq -r ".data[\"$file\"] | @base64d" >"$dir/$file"
    done
    (cd "$dir/www" && exec python3 -c '
import http.server, ssl, sys
server = http.server.ThreadingHTTPServer((sys.argv[1], 8443), http.server.SimpleHTTPRequestHandler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.minimum_version, tls.verify_mode = ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED
tls.load_cert_chain("../chief-0.crt", "../chief-0.key")
tls.load_verify_locations("../ca.crt")
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()' "$ip" >/dev/null 2>&1) &
    server=$!
    set_status digits-chief-0 "{\"status\":{\"podIP\":\"$ip\",\"podIPs\":[{\"ip\":\"$ip\"}]}}"
    want 60 trainjob digits .status.progress.step 100
    want 60 trainjob digits '.status.progress | "\(.percent) \(.remainingSeconds)"' "40 75"
    kubectl -n "$ns" get trainjob digits >"$dir/columns"
    want_line '^NAME +STATE +READY +PROGRESS +STEP ' "$dir/columns"
    same "$(k get tyj --no-headers | awk '{print $1, $2, $4, $5, $6, $7}')" "digits Running 40 100 0.5 4822" "kubectl get"
    tell_step 200 0.25
    want 60 trainjob digits '.status.progress | "\(.step) \(.loss)"' "200 0.25"
    set_job trainjob digits '{"spec":{"runPolicy":{"stallSeconds":3}}}'
    want_condition 60 trainjob digits Stalled "True NoProgress"
    want_event 60 digits TrainJobStalled 'no step for 3 s; last step 200'
    same "$(value trainjob digits .status.state)" Stalled "the state"
    local step=201
    while tell_step $((step++)) 0.24; do sleep 0.2; done & # trains on
    want_condition 60 trainjob digits Stalled "False Progress"
    want 60 trainjob digits .status.state Running # again, if the steps came too slowly meanwhile
    kill "$server" $!
}
