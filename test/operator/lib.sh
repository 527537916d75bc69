# Sourced by the tests of the operator against a real API server: the operator as a process with the rights of its
# ServiceAccount, pods whose phases the test sets ("running", "failed 137", "evicted"), because there is no kubelet.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the tests and of test/integration/lib.sh
# shellcheck source=../integration/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../integration/lib.sh"
cluster=$root/test/cluster/cluster.sh
export TRAINYARD_CLUSTER=${TRAINYARD_CLUSTER:-operator}
audit_log=$("$cluster" env | sed -n 's/^export KUBECONFIG=//p' | xargs -r dirname)/audit.log

# ---- the cluster and the operator ----

# bring_up [--control-plane]: exit status 77 of cluster.sh is a skip with a reason
bring_up() {
    "$cluster" up "$@" >"$scratch/up.log" 2>&1
    local status=$?
    if [ $status = 77 ]; then
        grep SKIP "$scratch/up.log"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    [ $status = 0 ] || infrastructure "the cluster does not start" "$scratch/up.log"
    eval "$("$cluster" env)"
    export KUBECACHEDIR=$scratch/kubectl # cached discovery of an earlier run may have other CRDs
    kubectl delete crd trainjobs.trainer.kubeflow.org --ignore-not-found >/dev/null
}
# are_established CRD...: waits. `kubectl wait` alone fails at once when a new CRD still has null as its conditions.
are_established() { wait_for 120 kubectl wait --for=condition=Established --timeout=60s "${@/#/crd/}" >/dev/null; }
cluster_up() {
    bring_up --control-plane
    kubectl apply -f "$root/deploy/crd" >/dev/null || exit 1
    are_established trainjobs.trainyard.dev tfjobs.kubeflow.org || exit 1
    kubectl create namespace trainyard-system --dry-run=client -o yaml | kubectl apply -f - >/dev/null
    kubectl -n trainyard-system create serviceaccount trainyard --dry-run=client -o yaml | kubectl apply -f - >/dev/null
    kubectl apply -f "$root/deploy/rbac" >/dev/null || exit 1
    operator_kubeconfig >"$scratch/operator.kubeconfig"
    # Roles and new kinds take effect a moment after the API server accepted them.
    wait_for 120 all_is_known || infrastructure "the API server does not know the roles and kinds after 120 s" "$scratch/up.log"
}
operator_may() { kubectl auth can-i -q "$@" -A --as=system:serviceaccount:trainyard-system:trainyard; } # VERB RESOURCE
all_is_known() {
    operator_may list tfjobs.kubeflow.org && operator_may create pods && operator_may list trainjobs.trainyard.dev &&
        operator_may list validatingwebhookconfigurations/validator.training-operator.kubeflow.org &&
        kubectl get tfjobs.kubeflow.org,trainjobs.trainyard.dev -A >/dev/null
}
# The credentials of the Deployment's pod: only the ServiceAccount's token.
operator_kubeconfig() {
    local token server ca
    token=$(kubectl -n trainyard-system create token trainyard --duration=8h)
    server=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
    ca=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority}')
    cat <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$server", certificate-authority: "$ca"}}]
users: [{name: u, user: {token: "$token"}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: trainyard-system}}]
current-context: c
END
}
# start_operator [FLAGS...], with the library $preload if there is one, and the limits of prlimit's flags $limits: its
# pid is $operator, its log $dir/operator.log, its metrics on port $metrics. If the port was taken after it was found
# free, the next one is used.
start_operator() {
    local end
    for _ in 1 2 3 4 5; do
        end=$((SECONDS + 120))
        metrics=$(free_port) health=$(free_port)
        KUBECONFIG=$scratch/operator.kubeconfig LD_PRELOAD=${preload:-} ASAN_OPTIONS=${ASAN_OPTIONS:-}${preload:+:verify_asan_link_order=0} ${limits:+prlimit $limits} trainyard-operator --progress-seconds 1 --metrics-bind-address "127.0.0.1:$metrics" \
            --health-probe-bind-address "127.0.0.1:$health" "$@" >>"$dir/operator.log" 2>&1 &
        operator=$!
        operators+=("$operator")
        until curl -fs -m 10 "http://127.0.0.1:$health/readyz" >/dev/null 2>&1; do
            kill -0 "$operator" 2>/dev/null || continue 2
            [ $SECONDS -lt $end ] || { problem "the operator is not ready after 120 s: $(tail -n 3 "$dir/operator.log")"; return; }
            sleep 0.1
        done
        return
    done
    operator=
    problem "the operator does not start: $(tail -n 3 "$dir/operator.log")"
}
# An operator for this test's namespace alone: tests with their own operator run concurrently.
own_operator() {
    own_flags=(--no-leader-elect --namespace "$ns" "$@")
    start_operator "${own_flags[@]}"
}
# stop_operator [SIGNAL]: the last one started. Its pid is cleared, because another process may get it later.
stop_operator() {
    [ -n "$operator" ] || return 0
    kill "${1:--TERM}" "$operator" 2>/dev/null
    wait "$operator" 2>/dev/null
    operators=("${operators[@]/#$operator/}")
    operator=
}
# kill -9, and another one in its place
crash_operator() {
    stop_operator -KILL
    start_operator "${own_flags[@]}"
}
metric() { curl -fs -m 10 "http://127.0.0.1:$metrics/metrics" | awk -v name="$1" '$1 == name {print $2}'; } # NAME{LABELS}

# ---- one test's namespace ----

k() { kubectl -n "$ns" "$@"; }
new_namespace() {
    ns=t$BASHPID-$(tr '_' '-' <<<"${1:-test}" | cut -c1-40)
    kubectl create namespace "$ns" >/dev/null
    wait_for 120 k get serviceaccount default >/dev/null # no pod before it
}
# begin [FLAGS...]: a namespace, and an operator for it
begin() {
    new_namespace "${FUNCNAME[1]#*_}"
    own_operator "$@"
}
# recorded: the requests of this namespace in the audit log, a line each. A request is recorded after its reply, and not all of
# a killed operator are. A line that the API server has not written to its end is left out.
recorded() { grep -F "\"namespace\":\"$ns\"" "$audit_log" | jq -cR 'fromjson?'; }
drop_namespace() { kubectl delete namespace "$ns" --wait=false >/dev/null 2>&1; }
tfjob() { # NAME RUN_POLICY ROLE=REPLICAS[:RESTART_POLICY]...   on stdout
    local name=$1 policy=$2 role
    shift 2
    printf 'apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: %s}\nspec:\n  runPolicy: {%s}\n  tfReplicaSpecs:\n' "$name" "$policy"
    for role; do
        local count=${role#*=}
        printf '    %s:\n      replicas: %s\n' "${role%%=*}" "${count%%:*}"
        [ "$count" = "${count%%:*}" ] || printf '      restartPolicy: %s\n' "${count#*:}"
        printf '      template: {spec: {containers: [{name: tensorflow, image: example/test-server}]}}\n'
    done
}

# ---- the garbage collector ----

# Other programs delete the pods of a deleted job: kube-controller-manager's garbage collector, and kwok on fake nodes.
# After the API server was away they retry each object after a delay that grows to 1,000 s. A restart lists everything.
restart_collectors() {
    local part
    for part in kube-controller-manager kwok; do
        ! "$cluster" pid "$part" >/dev/null 2>&1 || "$cluster" restart "$part" >/dev/null 2>&1 || problem "$part does not start again"
    done
}
# The garbage collector knows TFJobs: it deletes what belongs to one that is gone.
want_collector() {
    tfjob canary 'suspend: true' Worker=1 | k apply -f - >/dev/null
    k create configmap canary >/dev/null
    k patch configmap canary --type=merge -p "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"TFJob\",\"name\":\"canary\",\"uid\":\"$(uid_of tfjob canary)\"}]}}" >/dev/null
    k delete tfjob canary >/dev/null
    want 300 configmap canary .metadata.name ""
}

# ---- gang schedulers: their kinds, and the right to create them ----

gang_crds() {
    kubectl apply -f "$root/test/data/crds/$1" >/dev/null
    are_established "$2"
    # the chart's rights for the given scheduler name
    kubectl apply -f - >/dev/null <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: trainyard-gang}
rules:
- {apiGroups: [scheduling.volcano.sh], resources: [podgroups], verbs: [create, get, patch, delete]}
- {apiGroups: [scheduling.x-k8s.io], resources: [podgroups], verbs: [create, get, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: trainyard-gang}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: trainyard-gang}
subjects: [{kind: ServiceAccount, name: trainyard, namespace: trainyard-system}]
END
    wait_for 60 operator_may create "$2" # a role takes effect a moment after its creation
}
drop_gangs() {
    kubectl delete clusterrole,clusterrolebinding trainyard-gang --ignore-not-found >/dev/null
    kubectl delete -f "$root/test/data/crds" --ignore-not-found >/dev/null
}

# ---- actions of the kubelet ----

set_status() { k patch pod "$1" --subresource=status --type=merge -p "$2" >/dev/null || problem "pod $1 cannot be patched"; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
container() { k get pod "$1" -o jsonpath='{.spec.containers[0].name}'; }
running() { # POD...
    local pod
    for pod; do
        set_status "$pod" "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.9.9.9\",\"startTime\":\"$(now)\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],
            \"containerStatuses\":[{\"name\":\"$(container "$pod")\",\"ready\":true,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",\"state\":{\"running\":{\"startedAt\":\"$(now)\"}}}]}}"
    done
}
ended() { # POD PHASE EXIT_CODE [REASON] [MESSAGE]
    set_status "$1" "{\"status\":{\"phase\":\"$2\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],
        \"containerStatuses\":[{\"name\":\"$(container "$1")\",\"ready\":false,\"restartCount\":0,\"image\":\"i\",\"imageID\":\"i\",
        \"state\":{\"terminated\":{\"exitCode\":$3,\"reason\":\"${4:-Error}\",\"message\":\"${5:-}\",\"finishedAt\":\"$(now)\"}}}]}}"
}
succeeded() { local pod; for pod; do ended "$pod" Succeeded 0 Completed; done; }
failed() { ended "$1" Failed "$2" "${3:-Error}" "${4:-}"; } # POD EXIT_CODE [REASON] [MESSAGE]
# restarted POD TIMES: the kubelet restarted its container so often
restarted() {
    set_status "$1" "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.9.9.9\",\"startTime\":\"$(now)\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],
        \"containerStatuses\":[{\"name\":\"$(container "$1")\",\"ready\":true,\"restartCount\":$2,\"image\":\"i\",\"imageID\":\"i\",\"state\":{\"running\":{\"startedAt\":\"$(now)\"}}}]}}"
}
evicted() { set_status "$1" '{"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory.","conditions":[{"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet"}]}}'; }

# bind_to_node POD: to a node that does not answer, because it does not exist; so its deletion takes its grace period. Each test
# has a node of its own: 40 s after the first pod on such a node, kube-controller-manager fails all pods on it.
bind_to_node() {
    kubectl create --raw "/api/v1/namespaces/$ns/pods/$1/binding" -f - >/dev/null <<<"{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"$1\"},\"target\":{\"kind\":\"Node\",\"name\":\"gone-$ns\"}}" ||
        problem "pod $1 cannot be bound"
}

env_of() { value pod "$1" ".spec.containers[${3:-0}].env // [] | map(select(.name == \"$2\")) | .[0].value"; } # POD NAME [CONTAINER]
uid_of() { value "$1" "$2" .metadata.uid; }
same() { [ "$1" = "$2" ] || problem "$3 is '$1', not '$2'"; } # GOT WANTED WHAT
set_job() { k patch "$1" "$2" --type=merge -p "$3" >/dev/null || problem "$1 $2 cannot be patched"; }
never_failed() { is "$1" "$2" '.status.conditions | map(select(.type == "Failed")) | length' 0 || problem "$1 $2 failed: $(value "$1" "$2" '.status.conditions[-1].message')"; }
# eventually SECONDS VALUE COMMAND...: until the command prints the value
eventually() {
    local end=$((SECONDS + $1)) wanted=$2 got
    shift 2
    while got=$("$@" 2>/dev/null); [ "$got" != "$wanted" ]; do
        [ $SECONDS -lt $end ] || { problem "$* is '$got', not '$wanted'"; return 1; }
        sleep 0.1
    done
}
# another_pod SECONDS NAME OLD_UID: a new one has its name
another_pod() {
    holds "$1" pod "$2" '.metadata | .deletionTimestamp == null and .uid != null and .uid != $old' --arg old "$3" || { problem "pod $2 is not made again"; return 1; }
}
# how often an event was recorded: events_count NAME REASON [NOTE-PATTERN]
events_count() {
    k get events -o json | jq --arg n "$1" --arg r "$2" --arg p "${3:-.}" \
        '[.items[] | select(.involvedObject.name == $n and .reason == $r and (.message | test($p))) | .series.count // .count // 1 | if . < 1 then 1 else . end] | add // 0'
}

# ---- expectations of a test; SECONDS limit the waiting ----
# SECONDS is large, because the machine may be slow. Tests of speed use the times in objects and logs. With 1 the
# current state is checked, so that an unwanted temporary state is not missed.

kube_watch=$root/build/release/test/operator/kube_watch
[ -x "$kube_watch" ] || { echo "make build/release/test/operator/kube_watch first"; exit 2; }
value() { "$kube_watch" 60 "$ns" "$1" "$2" | head -n 1 | jq -rc "select(. != null) | $3" 2>/dev/null; } # KIND NAME JQ
# holds SECONDS KIND NAME JQ [--arg NAME VALUE]...: waits until the filter gives true for the object, or without a name for
# the list of all. The filter sees each state; one that fails gives false. first() would not end: a `try` of jq 1.6 catches it.
holds() {
    # shellcheck disable=SC2086 # no word without a name
    "$kube_watch" "$1" "$ns" "$2" ${3:+"$3"} | jq -en "${@:5}" "inputs | select(try ($4) catch false) | halt" >/dev/null
}
is() { [ "$(value "$1" "$2" "$3")" = "$4" ]; }
# want SECONDS KIND NAME JQ VALUE
want() {
    holds "$1" "$2" "$3" "[select(. != null) | $4 | tostring] | join(\"\\n\") == \$wanted" --arg wanted "$5" ||
        { problem "$2/$3 $4 is '$(value "$2" "$3" "$4")', not '$5'"; return 1; }
}
# condition KIND NAME TYPE: "True TFJobRunning"
condition() { value "$1" "$2" ".status.conditions // [] | map(select(.type == \"$3\")) | .[0] // {} | \"\(.status) \(.reason)\""; }
want_condition() { # SECONDS KIND NAME TYPE "STATUS REASON"
    want "$1" "$2" "$3" ".status.conditions // [] | map(select(.type == \"$4\")) | .[0] // {} | \"\(.status) \(.reason)\"" "$5"
}
want_pods() { # SECONDS "a b c": the names of all pods that are not being deleted, sorted
    holds "$1" pod '' '[.[] | select(.metadata.deletionTimestamp == null) | .metadata.name] | sort | join(" ") == $wanted' --arg wanted "$2" ||
        { problem "pods are '$(k get pods --no-headers | tr '\n' ';')', not '$2'"; return 1; }
}
want_services() { # SECONDS "a b c": the names of all services
    holds "$1" service '' '[.[].metadata.name] | sort | join(" ") == $wanted' --arg wanted "$2" ||
        { problem "services are '$(k get services --no-headers | tr '\n' ';')', not '$2'"; return 1; }
}
want_event() { # SECONDS NAME REASON [NOTE-PATTERN]
    holds "$1" event '' 'any(.[]; .involvedObject.name == $n and .reason == $r and (.message | test($p)))' --arg n "$2" --arg r "$3" --arg p "${4:-.}" ||
        { problem "no event $3 '${4:-}' of $2: $(k get events -o json | jq -r '.items[] | "\(.reason): \(.message)"' | sort | uniq -c | head -20)"; return 1; }
}

# ---- before and after a test ----

LOG_LINES=${LOG_LINES:-30}
before_test() { operator='' operators=() ns='' may_be_forbidden=''; }
check_test() {
    for operator in "${operators[@]}"; do stop_operator; done
    [ ! -s "$dir/operator.log" ] || {
        [ -n "$may_be_forbidden" ] || want_no_line '[Ff]orbidden' "$dir/operator.log"
        want_no_line 'Sanitizer|runtime error' "$dir/operator.log"
    }
}
after_test() { [ -z "$ns" ] || drop_namespace; }
# The existing objects after a failed test.
look_around() { [ -z "${ns:-}" ] || look_at_namespace; }
look_at_namespace() {
    k get trainjobs.trainyard.dev,tfjobs.kubeflow.org -o json | jq -c '.items[] | [.kind, .metadata.name, .status]'
    k get pods -o wide --no-headers
    k get events --sort-by=.lastTimestamp -o json | jq -r '.items[] | "\(.lastTimestamp // .eventTime) \(.involvedObject.name) \(.reason): \(.message)"' | tail -n 10
    recorded | jq -c 'select(.verb != "watch") | [.requestReceivedTimestamp, .verb, .objectRef.resource, .objectRef.name, .responseStatus.code]' | tail -n 5
}
