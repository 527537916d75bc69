#!/bin/bash
# Jobs are created, deleted, re-created with the same name, suspended and resumed at random on fake nodes, while
# operators and the API server are killed. Then all jobs are deleted, and no pod, cache entry or memory may remain.
# usage: soak.sh [SECONDS [JOBS]]    default 300 s and 300 names; TRAINYARD_TEST_BIN=build/asan/bin for a sanitized operator
# shellcheck disable=SC2154 # variables of the libraries
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
seconds=${1:-300} names=${2:-300}
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=8 # freed memory must not count as used

resident_kb() { awk '/^VmRSS/ {print $2}' "/proc/$operator/status"; }
spec_of() { # NAME: one of several kinds
    case $((RANDOM % 3)) in
    0) tfjob "$1" '' Worker=2 ;;
    1) tfjob "$1" 'cleanPodPolicy: All' Chief=1 PS=1:OnFailure Worker=1 ;;
    2) tfjob "$1" 'suspend: true' Worker=3 ;;
    esac
}
# Ten jobs at a time, because kubectl starts slowly.
some_change() {
    local chosen=() i
    for ((i = 0; i < 10; i++)); do chosen+=("s$((RANDOM % names))"); done
    case $((RANDOM % 5)) in
    0 | 1) for i in "${chosen[@]}"; do spec_of "$i"; echo ---; done | k apply -f - ;;
    2) k delete tfjob "${chosen[@]}" --ignore-not-found --wait=false ;;
    3) k patch tfjob "${chosen[@]}" --type=merge -p "{\"spec\":{\"runPolicy\":{\"suspend\":$([ $((RANDOM % 2)) = 0 ] && echo true || echo false)}}}" ;;
    4) k delete pod "${chosen[@]/%/-worker-0}" --ignore-not-found --wait=false ;;
    esac >/dev/null 2>&1
}
kill_api_server() {
    kill -KILL "$("$cluster" pid kube-apiserver)" && sleep 2
    "$cluster" restart kube-apiserver >/dev/null 2>&1 || problem "the API server does not start again"
}
# wait_none SECONDS WHAT
wait_none() {
    local end=$((SECONDS + $1)) got
    while got=$(k get "$2" -o name | wc -l); [ "$got" != 0 ]; do
        [ $SECONDS -lt $end ] || { problem "$got $2 are left"; return 1; }
        sleep 0.5
    done
}

# Which program left a pod: one with a deletionTimestamp waits for kwok, one without for the garbage collector.
look_around() {
    k get pods -o json | jq -r '.items[:10][].metadata | "\(.name) deleted at \(.deletionTimestamp), of \(.ownerReferences[0].uid)"'
    tail -n 15 "${KUBECONFIG%/*}"/{kube-controller-manager,kwok}.log
}

all_are_seen() { [ "$(k get tfjobs -o json | jq '[.items[] | select(.spec.runPolicy.suspend != true and (.status.conditions // []) == [])] | length')" = 0 ]; }

alone_soak() {
    local began faults=0 first end
    new_namespace soak
    own_flags=(--no-leader-elect --namespace "$ns" --no-trainjob)
    start_operator "${own_flags[@]}"
    want_collector
    began=$SECONDS
    while [ $((SECONDS - began)) -lt "$seconds" ]; do
        some_change
        # Five faults, evenly: the operator, the API server, the operator, ...
        if [ $(((SECONDS - began) * 6 / seconds)) -gt $faults ] && [ $faults -lt 5 ]; then
            faults=$((faults + 1))
            if [ $((faults % 2)) = 1 ]; then crash_operator; else kill_api_server; fi
        fi
    done
    first=$(resident_kb)
    # Idle: the desired and the actual state agree, so nothing more is written.
    wait_for 180 all_are_seen || problem "jobs that the operator has not looked at"
    [ "$(k get pods -o json | jq '[.items[] | .metadata.labels | "\(."training.kubeflow.org/job-name")/\(."training.kubeflow.org/replica-type")/\(."training.kubeflow.org/replica-index")"] | length - (unique | length)')" = 0 ] ||
        problem "two pods of one index"
    restart_collectors
    k delete tfjobs --all --wait=false >/dev/null
    wait_none 300 tfjobs
    wait_none 300 pods
    wait_none 300 services
    end=$((SECONDS + 60))
    until [ "$(metric 'trainyard_operator_jobs{kind="TFJob"}')" = 0 ]; do
        [ $SECONDS -lt $end ] || { problem "the operator still knows $(metric 'trainyard_operator_jobs{kind="TFJob"}') jobs"; break; }
        sleep 0.5
    done
    [ "$(resident_kb)" -lt $((first * 3 / 2 + 20000)) ] || problem "memory: $first kB with jobs, $(resident_kb) kB without"
    # An API server that has just started refuses all requests until it has its roles; otherwise a refusal is an error.
    grep -v 'forbidden: User' "$dir/operator.log" >"$dir/without"; mv "$dir/without" "$dir/operator.log"
    [ "$(grep -c 'Failed\(Create\|Delete\)' "$dir/operator.log")" -lt $((seconds * 4)) ] ||
        problem "a storm: $(grep -o 'Failed\(Create\|Delete\)[A-Za-z]*' "$dir/operator.log" | sort | uniq -c)"
    echo "soak: $seconds s, $(grep -c 'Created, ready' "$dir/operator.log") starts, $first kB then, $(resident_kb) kB now"
}

cluster_up
"$cluster" kwok 4 >"$scratch/kwok.log" 2>&1 || { cat "$scratch/kwok.log"; exit 1; }
# shellcheck disable=SC2034 # read by lib.sh
again_arguments="$seconds $names" # runs this test once more
run_several 1 alone_soak
if [ "${KEEP:-0}" = 1 ]; then "$cluster" kwok 0; else "$cluster" down --purge; fi
totals
