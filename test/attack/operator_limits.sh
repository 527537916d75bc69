# Attacks on limits: quotas that are too small, jobs that are too large, many jobs at once.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the libraries

small_trainjob() { # NAME WORKERS: its own image, a ps, a chief and workers
    cat <<END
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: $1}
spec:
  replicaSpecs:
    PS: {template: {spec: {containers: [{name: trainer, image: x, command: [x], resources: {requests: {cpu: 1m, memory: 1Mi}}}]}}}
    Chief: {template: {spec: {containers: [{name: trainer, image: x, command: [x], resources: {requests: {cpu: 1m, memory: 1Mi}}}]}}}
    Worker: {replicas: $2, template: {spec: {containers: [{name: trainer, image: x, command: [x], resources: {requests: {cpu: 1m, memory: 1Mi}}}]}}}
END
}

three_pods_of() { eventually 60 "$1-chief-0 $1-ps-0 $1-worker-" names_without_index; } # of any worker
names_without_index() { names_of_pods | sed 's/worker-[0-9]*/worker-/'; }
names_of_pods() { k get pods -o json | jq -r '[.items[] | .metadata.name] | sort | join(" ")'; }

# The namespace's quota allows three of six pods: ps and chief are always created, and the third is a worker.
test_quota_of_three_pods() {
    begin
    may_be_forbidden=1
    k create quota few --hard=pods=3 >/dev/null
    want 60 quota few .status.hard.pods 3
    local i
    for i in 1 2 3 4; do
        tfjob "tf$i" '' Worker=4 PS=1 Chief=1 | k apply -f - >/dev/null
        three_pods_of "tf$i"
        k delete tfjob "tf$i" >/dev/null
        eventually 60 '' names_of_pods
        want 60 quota few .status.used.pods 0
        small_trainjob "tr$i" 4 | k apply -f - >/dev/null
        three_pods_of "tr$i"
        want_condition 60 trainjob "tr$i" ReplicaFailure 'True FailedCreate'
        k delete trainjob "tr$i" >/dev/null
        eventually 60 '' names_of_pods
        want 60 quota few .status.used.pods 0
    done
}

refused() { curl -fs "http://127.0.0.1:$metrics/metrics" | awk '/^rest_client_requests_total.*code="403".*method="POST"/ {n += $2} END {print n + 0}'; }
# The times of refused creates of services, in ms of the API server.
refusals() {
    recorded | jq -r 'select(.verb == "create" and .objectRef.resource == "services" and .responseStatus.code == 403)
        | .requestReceivedTimestamp | (.[:19] + "Z" | fromdate) * 1000 + (.[20:23] | tonumber)' | sort -n
}
more_refusals_than() { [ "$(refusals | wc -l)" -gt "$1" ]; } # COUNT
# No service may be created: pods are created nevertheless. At first a request is sent for each of 32 services, then one for
# each round, and a round begins later than the one before. The log has a line for each. When the quota allows it, all
# services are created.
test_quota_of_no_services() {
    begin
    may_be_forbidden=1
    k create quota none --hard=services=0 >/dev/null
    want 60 quota none .status.hard.services 0
    tfjob big '' Worker=100 | k apply -f - >/dev/null
    eventually 90 100 number_of pods
    wait_for 120 more_refusals_than 35
    at_least "$(refusals | awk 'NR == 33 { first = $1 } NR == 36 { print $1 - first }')" 5000 "the ms of three rounds" # 1, 2 and 4 s
    at_most "$(refused)" 60 "refused creates"
    at_most "$(grep -c 'FailedCreateService' "$dir/operator.log")" 8 "lines in the log"
    k delete quota none >/dev/null
    eventually 120 100 number_of services
}
number_of() { k get "$1" -o name | wc -l; }

test_soft_limit_of_descriptors_of_the_operator_is_raised() {
    local limits='--nofile=64:4096'
    begin
    grep -q '^Max open files *4096 *4096' "/proc/$operator/limits" || problem "$(grep 'open files' "/proc/$operator/limits")"
}

# ---- large jobs ----

LIMIT_KB=$((256 * 1024)) # the chart's memory limit
# The limit covers heap, threads' stacks and anonymous mappings together. Beyond it the operator would end, as in its
# pod.
HELD_TO="--data=$((LIMIT_KB * 1024))"
is_held() { grep -q "^Max data size *$((LIMIT_KB * 1024)) " "/proc/$operator/limits" || problem "the operator is not held to the limit"; }
peak_kb() { awk '/^VmHWM/ {print $2}' "/proc/$operator/status"; }
model_job() { sed "s/name: digits}/name: $1}/; s/\(Worker: {replicas: \)[0-9]*/\1$2/; /^  storage:/d" "$root/deploy/examples/digits.yaml"; } # NAME WORKERS
created_s() { k get pods -l trainyard.dev/job-name=large -o json | jq '[.items[].metadata.creationTimestamp | fromdate] | max - min'; }
# number_reaches SECONDS N: pods of the namespace
pods_reach() { wait_for "$1" number_is_at_least "$2" || problem "only $(number_of pods) of $2 pods"; }
number_is_at_least() { [ "$(number_of pods)" -ge "$1" ]; }

# bench_user: FILE with the rights of an admin, whose requests the API server's audit log keeps
bench_user() { "$cluster" user bench-attack system:masters bench; }
# audited RESOURCE NAME-PATTERN: when the API server had created these objects of the namespace, in ms of its clock,
# sorted
audited() {
    recorded | jq -r --arg r "$1" --arg p "$2" 'select(.verb == "create" and .objectRef.resource == $r and
        .responseStatus.code < 300 and (.objectRef.name | test($p))) | .stageTimestamp | (.[0:19] + "Z" | fromdate) * 1000 + (.[20:23] | tonumber)' | sort -n
}
# The small job's pods, in the order of the audit log: how many of the large job's pods were created between the small job
# and its worker does not depend on the size of the large job. The small job waits five times for the 64 requests in
# flight: when it is seen, for its ConfigMap, its Secret, its ps and chief, and its worker. Its delays are printed, not
# checked.
SMALL_JOBS_WAIT=$((2 * 5 * 64))
want_small_jobs_turn() { # WORKERS
    local job pods worker between
    all_are_noted() { pods=$(audited pods '^small-'); [ "$(wc -l <<<"$pods")" = 3 ]; }
    wait_for 30 all_are_noted || problem "the audit log lacks pods of the small job"
    job=$(audited trainjobs '^small$' | head -n 1)
    [ -n "$job" ] || problem "the audit log lacks the small job"
    worker=$(audited pods '^small-worker-0$' | head -n 1)
    between=$(audited pods '^large-' | awk -v from="$job" -v to="$worker" '$1 >= from && $1 <= to' | wc -l)
    at_most "$between" $SMALL_JOBS_WAIT "pods of the large job that came before the small job's worker"
    echo "    beside $1 workers, after $between of their pods, a small job had its first pod after $(($(head -n 1 <<<"$pods") - job)) ms and all three after $(($(tail -n 1 <<<"$pods") - job)) ms"
}

# Thousands of pods are deleted for a while: the tests that follow on this control plane do not share it with that.
leave_no_pods() {
    k delete trainjobs,tfjobs --all --wait=false >/dev/null
    no_pod_is_left() { [ -z "$(k get pods -o name || echo unknown)" ]; }
    wait_for 300 no_pod_is_left
}

# A large TrainJob is created within the operator's memory limit, and one above the maximum is refused. A small job that
# is created meanwhile does not wait for it: the operator is held soon after it began with the large job, until the
# small one exists, so that the speed of kubectl and of the API server do not matter. LARGE_JOB=5000 tests the maximum;
# `make test-all` has 2,000.
alone_a_large_job() {
    local limits=$HELD_TO workers=${LARGE_JOB:-$([ "${LONG:-}" = 1 ] && echo 2000 || echo 1000)} kill_at
    build_kill_at
    local preload=$kill_at
    local -x KILL_MARK=$dir/held HOLD_AT="before-request 100" # of some two thousand: a service and a pod for each worker
    begin
    is_held
    model_job large 8000 | k apply -f - >"$dir/answer" 2>&1 && problem "8,000 workers are accepted"
    want_line 'should be less than or equal to 5000' "$dir/answer"
    bench_user >"$dir/bench.kubeconfig"
    local before
    before=$(peak_kb)
    model_job large "$workers" | k apply -f - >/dev/null
    wait_for 120 test -e "$dir/held" || problem "the operator has not come to its hundredth request"
    model_job small 1 | KUBECONFIG=$dir/bench.kubeconfig k apply -f - >/dev/null
    rm "$dir/held"
    pods_reach 300 $((workers + 5))
    want_small_jobs_turn "$workers"
    at_most "$(peak_kb)" $((LIMIT_KB * 3 / 4)) "kB of memory at most"
    kill -0 "$operator" || problem "the operator is gone"
    echo "    $workers workers in $(created_s) s; memory $before kB, at most $(peak_kb) kB"
    leave_no_pods
}

# Replicas that cannot all be listed are refused with their number, and so is a TFJob that would pass the kernel's limit.
test_too_many_to_be_listed() {
    begin
    tfjob a-name-of-thirty-characters-long '' Worker=4000 | k apply -f - >/dev/null
    want_condition 60 tfjob a-name-of-thirty-characters-long Failed 'True InvalidSpec'
    value tfjob a-name-of-thirty-characters-long '.status.conditions[-1].message' >"$dir/message"
    want_line '^spec.tfReplicaSpecs: TF_CONFIG would list 4000 replicas in about [0-9]+ bytes, but an environment variable is limited to 131061' "$dir/message"
    small_trainjob a-name-of-thirty-characters-long 2000 | k apply -f - >/dev/null
    want_condition 60 trainjob a-name-of-thirty-characters-long Failed 'True InvalidSpec'
    want_pods 5 ''
}

# A running job that is scaled beyond that limit gets none of the new pods. It continues with its former size, also with
# another operator, and re-created pods get that size.
test_running_jobs_are_scaled_beyond_the_list() {
    begin
    local tf=a-name-of-thirty-characters-long tr=another-name-of-thirty-characters workers='.spec.containers[0].env[] | select(.name == "TF_CONFIG").value | fromjson.cluster.worker | length'
    tfjob $tf '' Worker=2:ExitCode | k apply -f - >/dev/null
    small_trainjob $tr 2 | k apply -f - >/dev/null
    local pods="$tf-worker-0 $tf-worker-1 $tr-chief-0 $tr-ps-0 $tr-worker-0 $tr-worker-1"
    want_pods 60 "$pods"
    # shellcheck disable=SC2086 # a list of names
    running $pods
    want_condition 60 tfjob $tf Running "True TFJobRunning"
    want_condition 60 trainjob $tr Running "True TrainJobRunning"
    set_job tfjob $tf '{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":4000}}}}'
    set_job trainjob $tr '{"spec":{"replicaSpecs":{"Worker":{"replicas":2000}}}}'
    want_condition 60 tfjob $tf SpecChangeRefused "True InvalidSpec"
    want_condition 60 trainjob $tr SpecChangeRefused "True InvalidSpec"
    want_pods 1 "$pods"
    local uid uid_tr
    uid=$(uid_of pod $tf-worker-1) uid_tr=$(uid_of pod $tr-worker-1)
    crash_operator
    failed $tf-worker-1 137
    failed $tr-worker-1 137
    another_pod 60 $tf-worker-1 "$uid"
    another_pod 60 $tr-worker-1 "$uid_tr"
    want_pods 1 "$pods"
    same "$(value pod $tf-worker-1 "$workers")" 2 "workers in TF_CONFIG"
    same "$(value trainjob $tr .status.ready | sed 's/.*\///')" 4 "replicas that are wanted"
    set_job tfjob $tf '{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":3}}}}'
    set_job trainjob $tr '{"spec":{"replicaSpecs":{"Worker":{"replicas":3}}}}'
    want_pods 60 "$tf-worker-0 $tf-worker-1 $tf-worker-2 $tr-chief-0 $tr-ps-0 $tr-worker-0 $tr-worker-1 $tr-worker-2"
    want_condition 60 tfjob $tf SpecChangeRefused "False SpecRestored"
    want_condition 60 trainjob $tr SpecChangeRefused "False SpecRestored"
}

# Six jobs of many workers with their own image: the addresses are written once for each, and memory stays bounded.
alone_long_many_large_jobs_with_their_own_image() {
    local i limits=$HELD_TO
    begin
    is_held
    for i in 1 2 3 4 5 6; do small_trainjob "own$i" 300 | k apply -f - >/dev/null; done
    tfjob old '' PS=2 Worker=400 | k apply -f - >/dev/null
    pods_reach 300 $((6 * 302 + 402))
    at_most "$(peak_kb)" $((LIMIT_KB * 3 / 4)) "kB of memory at most"
    k get pod own1-worker-7 -o json >"$dir/pod"
    at_most "$(wc -c <"$dir/pod")" 6000 "bytes of a pod"
    at_least "$(value configmap own1-job '.data.cluster | length')" 10000 "bytes of addresses in the ConfigMap"
    kill -0 "$operator" || problem "the operator is gone"
    echo "    memory at most $(peak_kb) kB"
    leave_no_pods
}
