#!/bin/bash
# The operator with many jobs at once, on a real API server and etcd with fake nodes (kwok). First a bare client creates
# the same objects as fast as the API server accepts them. Then the operator does, in one run on the same machine. Each
# is a separate process with the same account and the same watches; a third process applies the jobs and measures.
# usage: run.sh BUILD [JOBS]...      default: 100 1000
#   KEEP=1  leaves the cluster running        KINDS=TFJob  only that kind
#   PEER=1  training-operator's release does the TFJobs too, with its defaults, then with its limits raised
# shellcheck disable=SC2154 # variables of the libraries
# Results and what they mean: docs/benchmarks.md.
set -u
build=${1:?build folder}
shift
[ $# -gt 0 ] || set -- 100 1000
export TRAINYARD_CLUSTER=${TRAINYARD_CLUSTER:-bench} TRAINYARD_TEST_BIN=$build/bin
# shellcheck source=../../operator/lib.sh
. "$(dirname "$0")/../../operator/lib.sh"
here=$(dirname "$0") burst=$build/bench/operator/burst account=trainyard-system:trainyard

# asked FROM TO events|other: requests of the $account between two times, without watches and leases
asked() {
    jq -r --arg from "$1" --arg to "$2" --arg kind "$3" --arg who "$account" 'select(.user.username | endswith($who)) |
        select(.requestReceivedTimestamp >= $from and .requestReceivedTimestamp <= $to and .verb != "watch" and .objectRef.resource != "leases") |
        select((.objectRef.resource == "events") == ($kind == "events")) |
        "\(.verb) \(.objectRef.resource)\(if .objectRef.subresource then "/" + .objectRef.subresource else "" end)"' "$audit"
}
by_kind() { sort | uniq -c | awk '{printf "%s%s %s=%d", (NR > 1 ? ", " : ""), $2, $3, $1}'; }
of() { jq -r ".$1" "$dir/result"; } # a field of the last result

clean() { # NAMESPACE: waits until all is deleted, also by the garbage collector
    kubectl -n "$1" delete tfjobs,trainjobs --all --wait=false >/dev/null 2>&1
    kubectl -n "$1" delete pods,services,networkpolicies,configmaps --all --grace-period=0 --force --wait=false >/dev/null 2>&1
    wait_for 300 bash -c "[ -z \"\$(kubectl -n $1 get pods,services -o name | head -1)\" ]"
    kubectl delete namespace "$1" --wait=false >/dev/null
}

# The same objects without an operator: the limit of the API server. $dir/bare
bare() { # KIND JOBS
    local ns=bare-$RANDOM client
    kubectl create namespace $ns >/dev/null
    KUBECONFIG=$scratch/operator.kubeconfig "$burst" --kind "$1" --namespace $ns --bare >"$dir/client" &
    client=$!
    wait_for 60 grep -q watching "$dir/client"
    printf 'bare client  '
    "$burst" --kind "$1" --namespace $ns --jobs "$2" --pid $client | tee "$dir/bare"
    kill $client
    wait $client 2>/dev/null
    clean $ns
}

# The operator with process id $operator and service account $account, on jobs of a new namespace.
measure() { # WORDS KIND JOBS
    local ns=op-$RANDOM other events
    kubectl create namespace $ns >/dev/null
    sleep 3
    printf '%s  ' "$1"
    "$burst" --kind "$2" --namespace $ns --jobs "$3" --pid "$operator" --idle "${IDLE:-20}" --singles 20 --finish | tee "$dir/result"
    other=$(asked "$(of burst_from)" "$(of burst_to)" other | wc -l) events=$(asked "$(of burst_from)" "$(of burst_to)" events | wc -l)
    awk -v n="$other" -v e="$events" -v j="$3" 'BEGIN{printf "requests: %.2f a job, events %.2f a job", n / j, e / j}'
    printf ' (%s); idle: %s requests in %s s\n' "$(asked "$(of burst_from)" "$(of burst_to)" other | by_kind)" \
        "$({ asked "$(of idle_from)" "$(of idle_to)" other; asked "$(of idle_from)" "$(of idle_to)" events; } | wc -l)" "${IDLE:-20}"
    awk -v ours="$(of after_last_apply_s)" -v all="$(of all_pods_s)" -v b="$(jq .after_last_apply_s "$dir/bare")" -v ball="$(jq .all_pods_s "$dir/bare")" \
        'BEGIN{printf "by the bare client: %.2f from the last apply, %.2f from the first, to the last pod\n", ours / (b > 0 ? b : 1), all / ball}'
    clean $ns
}

# training-operator as a process with its own service account. It writes a certificate for its webhook into a Secret,
# which the kubelet would mount where it reads it. The webhook itself is not registered: its jobs are not validated,
# which saves it time.
start_peer() { # FLAGS...
    local certificates=/tmp/k8s-webhook-server/serving-certs health token file
    health=$(free_port)
    kubectl apply -f "$here/peer.yaml" >/dev/null || return 1
    token=$(kubectl -n kubeflow create token training-operator --duration=8h)
    sed "s/token: \"[^\"]*\"/token: \"$token\"/" "$scratch/operator.kubeconfig" >"$scratch/peer.kubeconfig"
    KUBECONFIG=$scratch/peer.kubeconfig training-operator.v1 --enable-scheme=tfjob --metrics-bind-address "127.0.0.1:$(free_port)" \
        --health-probe-bind-address "127.0.0.1:$health" --webhook-server-port "$(free_port)" "$@" >>"$dir/peer.log" 2>&1 &
    operator=$!
    mkdir -p $certificates
    wait_for 60 bash -c 'kubectl -n kubeflow get secret training-operator-webhook-cert -o json | jq -e ".data.\"tls.crt\"" >/dev/null'
    for file in ca.crt ca.key tls.crt tls.key; do
        kubectl -n kubeflow get secret training-operator-webhook-cert -o json | jq -r ".data.\"$file\"" | base64 -d >$certificates/$file
    done
    wait_for 120 curl -fs "http://127.0.0.1:$health/readyz" >/dev/null
}

peer() { # JOBS
    local account=kubeflow:training-operator
    "$cluster" build training-operator || return
    start_peer || return
    # At its limit of 20 requests a second 1,000 jobs take a quarter of an hour.
    [ "$1" -gt 200 ] || measure 'training-operator' TFJob "$1"
    stop_operator
    start_peer --kube-api-qps=1000 --kube-api-burst=2000 --controller-threads=8 || return
    measure 'training-operator, limits raised' TFJob "$1"
    stop_operator
}

one() { # KIND JOBS
    printf '\n## %s %ss\n%s\n' "$2" "$1" "$(uptime)"
    bare "$1" "$2"
    start_operator
    measure 'operator     ' "$1" "$2"
    stop_operator
    [ "${PEER:-0}" = 0 ] || [ "$1" != TFJob ] || peer "$2"
}

cluster_up
"$cluster" kwok 1 || exit 1
audit=$("$cluster" env | sed -n 's/^export KUBECONFIG=\(.*\)\/admin.kubeconfig/\1/p')/audit.log
export dir=$scratch
for size; do
    for kind in ${KINDS:-TFJob TrainJob}; do one "$kind" "$size"; done
done
[ "${KEEP:-0}" = 1 ] || "$cluster" down --purge
