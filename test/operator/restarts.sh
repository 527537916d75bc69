# Replicas that fail, are deleted, evicted or lost: re-created or not, and how often. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154 # variables of the libraries

# Whether a failed pod is re-created, by policy and exit code: one row for each; the plan's cases test all combinations.
test_restart_policies() {
    begin
    local row name policy code again
    local rows=("always Always 1 yes" "onfail OnFailure 1 yes" "never Never 137 no" "code1 ExitCode 1 no" "code130 ExitCode 130 yes")
    for row in "${rows[@]}"; do
        read -r name policy code again <<<"$row"
        tfjob "$name" '' "Worker=2:$policy"; echo ---
    done | k apply -f - >/dev/null
    want_pods 60 "always-worker-0 always-worker-1 code1-worker-0 code1-worker-1 code130-worker-0 code130-worker-1 never-worker-0 never-worker-1 onfail-worker-0 onfail-worker-1"
    same "$(value pod always-worker-0 .spec.restartPolicy) $(value pod code1-worker-0 .spec.restartPolicy)" "Always Never" "restartPolicy of Always and ExitCode"
    declare -A uid
    for row in "${rows[@]}"; do
        read -r name policy code again <<<"$row"
        uid[$name]=$(uid_of pod "$name-worker-1")
        running "$name-worker-0" "$name-worker-1"
        failed "$name-worker-1" "$code"
    done
    for row in "${rows[@]}"; do
        read -r name policy code again <<<"$row"
        if [ "$again" = yes ]; then
            another_pod 60 "$name-worker-1" "${uid[$name]}"
            want_condition 60 tfjob "$name" Restarting "True TFJobRestarting"
            same "$(value tfjob "$name" '.status.conditions[-1].message | sub(" Waiting for .*"; "")')" "job $name is restarting because Worker replica(s) failed." "the message"
            want_event 60 "$name" TFJobRestarting
            running "$name-worker-1"
            want_condition 60 tfjob "$name" Running "True TFJobRunning"
            never_failed tfjob "$name"
        else
            want_condition 60 tfjob "$name" Failed "True TFJobFailed"
            same "$(uid_of pod "$name-worker-1")" "${uid[$name]}" "the uid of $name's pod"
        fi
    done
    want_event 60 code130 ExitedWithCode "Pod: $ns.code130-worker-1 exited with code 130"
}

test_evicted_pod_is_made_again() {
    begin
    tfjob tf '' Worker=2:ExitCode | k apply -f - >/dev/null
    want_pods 60 "tf-worker-0 tf-worker-1"
    running tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    local uid
    uid=$(uid_of pod tf-worker-1)
    evicted tf-worker-1
    another_pod 60 tf-worker-1 "$uid"
    never_failed tfjob tf
}

# Deleted as by kubectl drain. While the pod terminates, it neither counts as failed nor has a second pod.
test_drained_pod_is_no_failure() {
    begin
    tfjob tf '' Worker=2:OnFailure PS=1:OnFailure | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    running tf-ps-0 tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    k patch pod tf-worker-0 --type=merge -p '{"metadata":{"finalizers":["test.trainyard.dev/holds"]}}' >/dev/null
    local uid
    uid=$(uid_of pod tf-worker-0)
    kubectl create --raw "/api/v1/namespaces/$ns/pods/tf-worker-0/eviction" -f - >/dev/null <<<"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"tf-worker-0\",\"namespace\":\"$ns\"}}" || problem "eviction"
    want_condition 60 tfjob tf Restarting "True TFJobRestarting"
    same "$(k get pods --no-headers | wc -l)" 3 "pods while one goes"
    never_failed tfjob tf
    k patch pod tf-worker-0 --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    # the kubelet's last step; by its uid, because the next pod may already have the name
    kubectl delete --raw "/api/v1/namespaces/$ns/pods/tf-worker-0" -f - >/dev/null 2>&1 <<<"{\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\":\"$uid\"}}"
    another_pod 60 tf-worker-0 "$uid"
    running tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
    never_failed tfjob tf
    want_event 60 tf TFJobRestarting
    same "$(events_count tf TFJobRestarting)" 1 "how often the restart was told"
}

# backoffLimit counts the kubelet's restarts and re-created pods, regardless of changes of the leader.
test_backoff_limit() {
    begin
    tfjob tf 'backoffLimit: 4' Worker=2:OnFailure | k apply -f - >/dev/null
    want_pods 60 "tf-worker-0 tf-worker-1"
    running tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    local uid
    uid=$(uid_of pod tf-worker-1)
    restarted tf-worker-0 1
    failed tf-worker-1 1
    another_pod 60 tf-worker-1 "$uid"
    uid=$(uid_of pod tf-worker-1)
    crash_operator
    running tf-worker-1
    failed tf-worker-1 1
    another_pod 60 tf-worker-1 "$uid"
    never_failed tfjob tf # 3 of 4
    crash_operator
    restarted tf-worker-0 2
    want_condition 60 tfjob tf Failed "True TFJobFailed"
    same "$(value tfjob tf '.status.conditions[-1].message')" "Job tf has failed because it has reached the specified backoff limit" "the message"
}

only_pod_is() { [ "$(k get pods -o name)" = "pod/$1" ]; }

# restartScope Job: one failure restarts all replicas and counts once, also when the operator is killed in the middle.
# No pod is created before the last of the old ones is deleted, here a ps that a finalizer keeps.
test_restart_of_all_replicas() {
    begin
    sed 's/^spec:$/spec:\n  runPolicy: {restartScope: Job}/' "$root/deploy/examples/digits.yaml" | k apply -f - >/dev/null
    local all="digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1" pod
    want_pods 60 "$all"
    running $all
    want_condition 60 trainjob digits Running "True TrainJobRunning"
    declare -A uid
    for pod in $all; do uid[$pod]=$(uid_of pod "$pod"); done
    k patch pod digits-ps-0 --type=merge -p '{"metadata":{"finalizers":["test.trainyard.dev/holds"]}}' >/dev/null
    failed digits-worker-1 137 OOMKilled
    crash_operator
    want_pods 60 ''
    want 60 trainjob digits '.status.conditions[-1].message | sub("; waiting for .*"; "")' "restarting all replicas: digits-worker-1 exited with code 137 (OOMKilled)"
    want 60 trainjob digits '.status.conditions[-1].message | test("waiting for ")' true
    crash_operator
    want_pods 1 ''
    wait_for 120 only_pod_is digits-ps-0 # the others end when the API server deletes them, which has no node for them
    k patch pod digits-ps-0 --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    want_pods 60 "$all"
    for pod in $all; do
        [ "$(uid_of pod "$pod")" != "${uid[$pod]}" ] || problem "$pod is the old one"
        same "$(value pod "$pod" '.metadata.annotations["trainyard.dev/restarts"]')" 1 "how often $pod was made again"
    done
    running $all
    want_condition 60 trainjob digits Running "True TrainJobRunning"
    same "$(value trainjob digits '[.status.replicaStatuses[].countedRestarts // 0] | add')" 1 "restarts that count"
    same "$(value trainjob digits '[.status.replicaStatuses[].restarts // 0] | add')" 4 "replicas that were made again"
    [ "$(events_count digits TrainJobRestarting)" -le 1 ] || problem "the restart was told twice" # it may be lost with its operator
    never_failed trainjob digits
}

# The kubelet does not answer: the pod stays terminating. TrainJobs replace it, TFJobs only with the flag.
test_long_lost_node() {
    begin --force-delete-seconds 2
    tfjob tf '' Worker=1:OnFailure PS=1:OnFailure | sed 's/spec: {containers/spec: {terminationGracePeriodSeconds: 1, containers/' | k apply -f - >/dev/null
    sed 's/Worker: {replicas: 2}/Worker: {replicas: 2, template: {spec: {terminationGracePeriodSeconds: 1}}}/' "$root/deploy/examples/digits.yaml" | k apply -f - >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-ps-0 tf-worker-0"
    running digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-ps-0 tf-worker-0
    want 60 trainjob digits .status.replicaStatuses.Worker.active 2
    local uid tf
    uid=$(uid_of pod digits-worker-1)
    tf=$(uid_of pod tf-worker-0)
    # Bound, because otherwise the API server would delete them itself; not earlier, because pods of an unknown node
    # live 40 s.
    bind_to_node digits-worker-1
    bind_to_node tf-worker-0
    k delete pod digits-worker-1 tf-worker-0 --wait=false >/dev/null
    another_pod 60 digits-worker-1 "$uid"
    want_event 60 digits NodeLost "pod digits-worker-1 .* node gone-$ns does not answer; deleted by force"
    never_failed trainjob digits
    never_failed tfjob tf
    want_event 60 tf NodeNotResponding 'tf-worker-0'
    same "$(uid_of pod tf-worker-0)" "$tf" "a TFJob's pod on a node that does not answer"
}

# Time limits of a job must not depend on which operator ran.
test_deadline_and_ttl_outlive_the_operator() {
    begin
    { tfjob late 'activeDeadlineSeconds: 6' Worker=1; echo ---; tfjob pend 'activeDeadlineSeconds: 6' PS=1 Worker=1; echo ---
      tfjob gone 'ttlSecondsAfterFinished: 12' Worker=1; } | k apply -f - >/dev/null
    want_pods 60 "gone-worker-0 late-worker-0 pend-ps-0 pend-worker-0"
    running late-worker-0
    succeeded gone-worker-0
    want_condition 60 tfjob gone Succeeded "True TFJobSucceeded"
    local ended deleted name started
    ended=$(value tfjob gone '.status.completionTime | fromdate')
    crash_operator
    want_condition 60 tfjob late Failed "True TFJobFailed"
    want_condition 60 tfjob pend Failed "True TFJobFailed"
    want 60 tfjob gone .metadata.name ""
    deletion_is_recorded() { deleted=$(job_deleted_at); [ -n "$deleted" ]; }
    wait_for 60 deletion_is_recorded # a request is recorded after its reply, and watches may tell of its effect before
    at_least "$deleted" $((ended + 12)) "the end of a time to live, in seconds,"
    for name in late pend; do
        started=$(value tfjob $name '.status.startTime | fromdate')
        at_least "$(value tfjob $name '.status.completionTime | fromdate')" $((started + 6)) "the deadline of $name, in seconds,"
    done
}
job_deleted_at() { # by the operator, of this namespace
    recorded | jq -r 'select(.verb == "delete" and .objectRef.resource == "tfjobs" and .responseStatus.code < 300) | .requestReceivedTimestamp[0:19] + "Z" | fromdate' | head -n 1
}

# The next operator does what was due while none ran.
test_deadline_that_passed_without_an_operator() {
    begin
    { tfjob late 'activeDeadlineSeconds: 2' Worker=1; echo ---; tfjob gone 'ttlSecondsAfterFinished: 8' Worker=1; } | k apply -f - >/dev/null
    want_pods 60 "gone-worker-0 late-worker-0"
    succeeded gone-worker-0
    want_condition 60 tfjob gone Succeeded "True TFJobSucceeded"
    stop_operator -KILL
    local due
    due=$(value tfjob gone '(.status.completionTime | fromdate) + 8') # and the deadline has passed by then, too
    while [ "$(date +%s)" -le "$due" ]; do sleep 0.1; done
    start_operator "${own_flags[@]}"
    want_condition 60 tfjob late Failed "True TFJobFailed"
    want 60 tfjob gone .metadata.name ""
}
