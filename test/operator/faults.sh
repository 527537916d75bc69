# Operators that are killed, an unreachable API server, idle operators. These tests run alone, because they count the
# requests of all operators or stop the API server. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of and for the libraries

# requests VERB RESOURCE: how many are recorded that succeeded
requests() {
    recorded | jq -rs --arg v "$1" --arg r "$2" '[.[] | select(.verb == $v and .objectRef.resource == $r and .responseStatus.code < 300)] | length'
}
many_jobs() { # FIRST LAST
    local i
    for ((i = $1; i <= $2; i++)); do tfjob "j$i" '' Chief=1 Worker=1; echo ---; done
}
pod_names() { local i; for ((i = $1; i <= $2; i++)); do echo "j$i-chief-0"; echo "j$i-worker-0"; done | sort | tr '\n' ' ' | sed 's/ $//'; }
chiefs() { # FIRST LAST PHASE RUNNING-OR-TERMINATED-STATE
    local i names=()
    for ((i = $1; i <= $2; i++)); do names+=("j$i-chief-0"); done
    k patch pod "${names[@]}" --subresource=status --type=merge -p "{\"status\":{\"phase\":\"$3\",\"containerStatuses\":[{\"name\":\"tensorflow\",\"ready\":true,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",\"state\":$4}]}}" >/dev/null ||
        problem "chiefs cannot be patched"
}
want_states() { # SECONDS STATE COUNT
    local end=$((SECONDS + $1)) got
    while got=$(k get tfjobs -o json | jq --arg s "$2" '[.items[] | select(.status.state == $s)] | length'); [ "$got" != "$3" ]; do
        [ $SECONDS -lt $end ] || { problem "$got jobs are $2, not $3"; return 1; }
        sleep 0.2
    done
}

# Its actions of the last second are recorded as events before it ends.
alone_operator_stopped_tells_first() {
    new_namespace stopped
    own_flags=(--no-leader-elect --namespace "$ns")
    start_operator "${own_flags[@]}"
    many_jobs 1 3 | k apply -f - >/dev/null
    wait_for 60 some_pods_made 6
    stop_operator
    same "$(k get events -o json | jq '[.items[] | select(.reason == "SuccessfulCreatePod").involvedObject.name] | unique | length')" 3 "jobs whose pods were told of"
}

alone_long_operator_killed_at_random_moments() {
    new_namespace killed
    own_flags=(--no-leader-elect --namespace "$ns")
    start_operator "${own_flags[@]}"
    many_jobs 1 20 | k apply -f - >/dev/null &
    local applying=$! i
    for ((i = 0; i < 8; i++)); do
        sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
        crash_operator
    done
    wait "$applying"
    want_pods 60 "$(pod_names 1 20)"
    want_services 60 "$(pod_names 1 20)"
    chiefs 1 20 Running '{"running":{"startedAt":"2026-01-01T00:00:00Z"}}' &
    applying=$!
    for ((i = 0; i < 3; i++)); do
        sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
        crash_operator
    done
    wait "$applying"
    want_states 60 Running 20
    chiefs 1 20 Succeeded '{"terminated":{"exitCode":0,"reason":"Completed","finishedAt":"2026-01-01T00:00:05Z"}}' &
    applying=$!
    sleep "0.$((RANDOM % 10))"
    crash_operator
    wait "$applying"
    want_states 60 Succeeded 20
    at_most "$(requests create pods)" 40 "pods ever made"
    at_most "$(requests create services)" 40 "services ever made"
    same "$(requests delete pods) $(requests delete services)" "0 0" "pods and services ever deleted"
    same "$(k get tfjobs -o json | jq '[.items[].status.replicaStatuses[].restarts // 0] | add')" 0 "restarts"
    same "$(k get tfjobs -o json | jq '[.items[].status.conditions | map(.type) | join(" ")] | unique | join(",")' -r)" "Created Running Succeeded" "conditions"
    same "$(k get events -o json | jq '[.items[] | select(.reason == "TFJobSucceeded")] | group_by(.involvedObject.name) | map(length) | max')" 1 "events about one success"
    stop_operator
    start_operator "${own_flags[@]}"
    k get tfjobs,pods -o json | jq -S '.items | map([.kind, .metadata.name, .metadata.resourceVersion])' >"$dir/before"
    eventually 60 20 metric 'trainyard_operator_jobs_by_state{kind="TFJob",state="Succeeded"}'
    tfjob last '' Worker=1 | k apply -f - >/dev/null # its pod shows that the others had their turn
    wait_for 60 k get pod last-worker-0 >/dev/null
    k get tfjobs,pods -o json | jq -S '.items | map(select(.metadata.name | startswith("last") | not) | [.kind, .metadata.name, .metadata.resourceVersion])' >"$dir/after"
    cmp -s "$dir/before" "$dir/after" || problem "a new operator changed jobs that had ended"
}

# All workers fail, three times, and the operator is killed while it re-creates them: no restart is lost or counted
# twice.
alone_long_operator_killed_while_it_restarts() {
    new_namespace counted
    own_flags=(--no-leader-elect --namespace "$ns")
    start_operator "${own_flags[@]}"
    tfjob tf '' Worker=12:ExitCode | k apply -f - >/dev/null
    wait_for 60 made_again 0
    local round i pods
    for round in 1 2 3; do
        mapfile -t pods < <(k get pods -o name)
        k patch "${pods[@]}" --subresource=status --type=merge -p "{\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"tensorflow\",
            \"ready\":false,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"Error\",\"finishedAt\":\"$(now)\"}}}]}}" >/dev/null &
        for ((i = 0; i < 5; i++)); do
            sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
            crash_operator
        done
        wait_for 60 made_again "$round"
    done
    want 60 tfjob tf .status.replicaStatuses.Worker.restarts 36
    want 60 tfjob tf .status.replicaStatuses.Worker.restartsByIndex "$(for ((i = 0; i < 12; i++)); do echo "$i:3"; done | paste -sd,)"
}
made_again() { # TIMES: all 12
    [ "$(k get pods -o json | jq --arg n "$1" '[.items[] | select(.status.phase == "Pending" and (.metadata.annotations["trainyard.dev/restarts"] // "0") == $n)] | length')" = 12 ]
}

# The operator's API client alone: each verb, all over one connection, a watch, bookmarks, a token, a server that is
# stopped.
alone_client_and_a_real_server() {
    local program=${TRAINYARD_TEST_BIN:-$root/build/release/bin}/../test/operator/kube_try
    [ -x "$program" ] || { problem "make build/release/test/operator/kube_try first"; return; }
    "$program" "$KUBECONFIG" "$dir" 500 "$("$cluster" pid kube-apiserver)" >"$dir/out" 2>&1 || { problem "kube_try failed"; tail -n 5 "$dir/out"; }
    want_line 'ok: a bookmark says how far the others are'
    want_line 'ok: the namespace goes'
}

# The API server's process is stopped, then killed, while jobs are being started.
alone_long_api_server_goes_away() {
    begin
    local server
    server=$("$cluster" pid kube-apiserver)
    many_jobs 1 5 | k apply -f - >/dev/null 2>&1 &
    wait_for 60 some_job_is_there
    kill -STOP "$server" && sleep 15 && kill -CONT "$server"
    wait $!
    many_jobs 1 5 | k apply -f - >/dev/null # kubectl does not wait as long for an answer as the operator does
    want_pods 60 "$(pod_names 1 5)"
    many_jobs 6 10 | k apply -f - >/dev/null
    kill -KILL "$server" && sleep 10
    may_be_forbidden=1 # a starting API server does not have its roles at once
    "$cluster" restart kube-apiserver >/dev/null 2>&1 || problem "the API server does not start again"
    wait_for 60 kubectl get --raw /readyz >/dev/null
    want_pods 60 "$(pod_names 1 10)"
    k delete pod j3-worker-0 --grace-period=0 --force >/dev/null 2>&1 # seen: the watch works again
    want_pods 60 "$(pod_names 1 10)"
    chiefs 1 10 Running '{"running":{"startedAt":"2026-01-01T00:00:00Z"}}'
    want_states 60 Running 10
    kill -0 "$operator" || problem "the operator has ended"
    same "$(k get pods --no-headers | wc -l)" 20 pods
    same "$(k get tfjobs -o json | jq '[.items[] | select([.status.conditions[].type] | index("Failed"))] | length')" 0 "failed jobs"
    many_jobs 11 11 | k apply -f - >/dev/null
    want_pods 60 "$(pod_names 1 11)"
}

some_job_is_there() { more_jobs_are_there 0; }
more_jobs_are_there() { [ "$(k get tfjobs -o name | wc -l)" -gt "$1" ]; } # than COUNT

# Compacts etcd's history, and discards the API server's watch cache. A compaction keeps the last revision, and a watch begins
# after the one it names: two more objects are written, so that no revision that is known before can be continued.
forget_history() {
    local etcd revision
    k create configmap first >/dev/null && k create configmap second >/dev/null || problem "nothing can be written"
    etcd=$(grep -oE -- '--listen-client-urls=[^ ]+' "$(dirname "$KUBECONFIG")/etcd.command" | cut -d= -f2)
    revision=$(curl -fs -X POST "$etcd/v3/kv/range" -d '{"key":"AA=="}' | jq -r .header.revision)
    curl -fs -X POST "$etcd/v3/kv/compaction" -d "{\"revision\":\"$revision\",\"physical\":true}" >/dev/null || problem "etcd is not compacted"
    kill_api_server
}
kill_api_server() { # and start another one
    may_be_forbidden=1 # a restarted server does not have its roles at once
    kill -KILL "$("$cluster" pid kube-apiserver)"
    "$cluster" restart kube-apiserver >/dev/null 2>&1
    wait_for 90 kubectl get --raw /readyz >/dev/null
    restart_collectors
}
# answered VERB CODE: how many are recorded that got that answer
answered() {
    recorded | jq -rs --arg v "$1" --argjson c "$2" '[.[] | select(.verb == $v and .responseStatus.code == $c)] | length'
}

# The operator is stopped during many changes, and their history is compacted: its watches cannot continue (410 Gone),
# so it lists again. Nothing is missed, and nothing is created twice.
alone_long_watch_history_is_gone() {
    begin
    many_jobs 1 5 | k apply -f - >/dev/null
    want_pods 60 "$(pod_names 1 5)"
    chiefs 1 5 Running '{"running":{"startedAt":"2026-01-01T00:00:00Z"}}'
    want_states 60 Running 5
    running j2-worker-0
    want 60 tfjob j2 .status.replicaStatuses.Worker.active 1
    local chief uid version
    chief=$(uid_of pod j4-chief-0) uid=$(uid_of pod j2-worker-0)
    version=$(k get tfjobs -o json | jq -r '[.items[].metadata.resourceVersion | tonumber] | max')
    kill -STOP "$operator"
    forget_history # its connections are closed, so that no later event waits for it there
    k delete tfjob j1 j4 >/dev/null
    k delete pod j2-worker-0 --grace-period=0 --force >/dev/null 2>&1
    chiefs 3 3 Succeeded '{"terminated":{"exitCode":0,"reason":"Completed","finishedAt":"2026-01-01T00:00:05Z"}}'
    want_pods 60 "j2-chief-0 j3-chief-0 j3-worker-0 j5-chief-0 j5-worker-0"
    { many_jobs 4 4; many_jobs 6 6; } | k apply -f - >/dev/null # j4: a new job of the same name
    kubectl get --raw "/apis/kubeflow.org/v1/namespaces/$ns/tfjobs?watch=true&resourceVersion=$version&timeoutSeconds=5" >"$dir/watch"
    want_line '"code":410' "$dir/watch"
    kill -CONT "$operator"
    want_pods 60 "$(pod_names 2 6)"
    another_pod 1 j4-chief-0 "$chief"
    another_pod 1 j2-worker-0 "$uid"
    want_condition 60 tfjob j3 Succeeded "True TFJobSucceeded"
    want_services 60 "$(pod_names 2 6)"
    eventually 60 2 requests list tfjobs
    eventually 60 4 requests list pods # those of both kinds
    eventually 60 15 requests create pods
    same "$(requests delete pods)" 0 "pods deleted by the operator"
    want 60 tfjob j2 .status.replicaStatuses.Worker.restarts 1 # it was deleted
    same "$(metric 'trainyard_operator_jobs{kind="TFJob"}')" 5 "jobs known"
}

# The operator is killed in the middle of a burst of jobs: each has exactly its pods afterwards.
alone_long_api_server_killed_in_a_burst() {
    new_namespace burst
    many_jobs 1 50 | k apply -f - >/dev/null
    own_operator
    wait_for 60 some_pods_made 10
    kill_api_server
    want_pods 90 "$(pod_names 1 50)"
    want_services 60 "$(pod_names 1 50)"
    same "$(k get pods -o json | jq '[.items[].metadata.ownerReferences[0].uid] | group_by(.) | map(length) | unique | tostring' -r)" "[2]" "pods of a job"
    chiefs 1 50 Running '{"running":{"startedAt":"2026-01-01T00:00:00Z"}}'
    want_states 60 Running 50
    at_most "$(requests create pods)" 100 "pods ever made"
    same "$(requests delete pods) $(requests delete services)" "0 0" "pods and services ever deleted"
    same "$(k get tfjobs -o json | jq '[.items[].status.replicaStatuses[].restarts // 0] | add')" 0 "restarts"
}

some_pods_made() { [ "$(metric 'training_operator_created_pods_total{framework="tensorflow"}')" -ge "$1" ]; }

# The API server throttles the operator (429): every object is created once, only later.
alone_too_many_requests() {
    throttle | kubectl apply -f - >/dev/null || problem "the operator cannot be throttled"
    wait_for 60 is_throttled
    begin
    many_jobs 1 12 | k apply -f - >/dev/null
    want_pods 120 "$(pod_names 1 12)"
    want_services 60 "$(pod_names 1 12)"
    chiefs 1 12 Running '{"running":{"startedAt":"2026-01-01T00:00:00Z"}}'
    want_states 60 Running 12
    throttle | kubectl delete -f - >/dev/null
    at_least "$(answered create 429)" 1 "creates that were told 429"
    at_least "$(refusals_counted)" 1 "answers 429 in the operator's metrics"
    eventually 60 24 requests create pods
    eventually 60 24 requests create services
    same "$(requests delete pods) $(requests delete services)" "0 0" "pods and services ever deleted"
    same "$(k get events -o json | jq '[.items[] | select(.type == "Warning" and (.reason | startswith("FailedCreate")))] | length')" 0 "events about it"
}
refusals_counted() { curl -fs "http://127.0.0.1:$metrics/metrics" | awk '/^rest_client_requests_total.*code="429"/ {n += $2} END {print n + 0}'; }
throttle() {
    cat <<'END'
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: trainyard-test-throttled}
spec: {type: Limited, limited: {nominalConcurrencyShares: 1, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: trainyard-test-throttled}
spec:
  priorityLevelConfiguration: {name: trainyard-test-throttled}
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: trainyard-system, name: trainyard}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"]}]
END
}
is_throttled() { # the answer names the FlowSchema
    local uid
    uid=$(kubectl get flowschema trainyard-test-throttled -o jsonpath='{.metadata.uid}') || return 1
    KUBECONFIG=$scratch/operator.kubeconfig kubectl get --raw /api/v1/namespaces/default/pods?limit=1 -v=8 2>&1 | grep -iq "flowschema-uid.*$uid"
}

alone_two_operators() {
    new_namespace two
    local flags=(--namespace "$ns" --lease-seconds 10) first second port1 port2
    start_operator "${flags[@]}"
    first=$operator port1=$metrics
    local leads='leader_election_master_status{name="trainyard-operator"}'
    eventually 60 1 metric "$leads"
    start_operator "${flags[@]}"
    second=$operator port2=$metrics
    same "$(metric "$leads")" 0 "the second one's leadership"
    many_jobs 1 3 | k apply -f - >/dev/null
    want_pods 60 "$(pod_names 1 3)"
    many_jobs 4 8 | k apply -f - >/dev/null &
    local applying=$!
    wait_for 60 more_jobs_are_there 3
    operator=$first
    metrics=$port2
    stop_operator -KILL
    local renewed
    renewed=$(lease_time renewTime)
    eventually 60 1 metric "$leads"
    at_least "$(lease_time acquireTime)" $((renewed + 10)) "the second of the takeover, after a lease of 10 s"
    wait "$applying"
    want_pods 60 "$(pod_names 1 8)"
    at_most "$(requests create pods)" 16 "pods ever made"
    at_most "$(requests create services)" 16 "services ever made"
    same "$(requests delete pods) $(requests delete services)" "0 0" "pods and services ever deleted"
    # a rollout: the old operator releases its lease
    start_operator "${flags[@]}"
    port1=$metrics first=$operator
    operator=$second
    metrics=$port1
    local old
    old=$(lease_of .holderIdentity)
    stop_operator
    [ "$(lease_of .holderIdentity)" != "$old" ] || problem "the operator that was stopped did not release its lease"
    eventually 60 1 metric "$leads"
    many_jobs 9 9 | k apply -f - >/dev/null
    want_pods 60 "$(pod_names 1 9)"
    at_most "$(requests create pods)" 18 "pods ever made"
    kubectl -n trainyard-system delete lease trainyard-operator >/dev/null
}

# How soon a lease is taken is tested with a given clock (test/unit/operator/kube/test_leader_elector.c).
lease_of() { kubectl -n trainyard-system get lease trainyard-operator -o json | jq -r ".spec$1"; } # FIELD
lease_time() { lease_of ".$1[0:19] + \"Z\" | fromdate"; } # acquireTime | renewTime, in whole seconds

# Without events the operator sends no requests.
alone_long_idle_operator_asks_nothing() {
    begin
    tfjob tf '' Chief=1 PS=1 Worker=2 | k apply -f - >/dev/null
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-chief-0 tf-ps-0 tf-worker-0 tf-worker-1"
    running tf-chief-0 tf-ps-0 tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    # After one-time reports: the scheduler reports pods without nodes after a delay.
    local now before=-1 since=$SECONDS end=$((SECONDS + 120))
    while now=$(grep -vc '"verb":"watch"' "$audit_log"); [ "$now" != "$before" ] || [ $((SECONDS - since)) -lt 15 ]; do
        [ "$now" = "$before" ] || since=$SECONDS
        before=$now
        [ $SECONDS -lt $end ] || { problem "it is never quiet for 15 s: $(tail -n 5 "$audit_log" | jq -r '"\(.verb) \(.requestURI)"' | tr '\n' ' ')"; return; }
        sleep 0.5
    done
}
