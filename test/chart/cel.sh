#!/bin/bash
# What a real API server refuses and accepts: both CRDs, every rule in them, deploy/ and the chart.
# usage: test/chart/cel.sh [NAME]...     (BUILD=build/release: where the tools are; KEEP=1 leaves the cluster running)
# A case is a file of test/data/cel. Its first line holds the expected result: "# refused: WORDS OF THE MESSAGE",
# "# accepted", or "# accepted ...: keeps PATH..." (what the object must still have). With two documents the first is
# created before, and the second is the change.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export TRAINYARD_CLUSTER=${TRAINYARD_CLUSTER:-crds}
. test/tools/verdict.sh
tools=${BUILD:-build/release}/tools
[ -x "$tools/yaml2json" ] || { echo "make $tools/yaml2json first"; exit 2; }
passed=0 failed=0 skipped=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-cel.XXXXXX")
ours= # this test created the cluster
finish() {
    if [ -n "$ours" ] && [ "${KEEP:-0}" != 1 ]; then
        test/cluster/cluster.sh down --purge >/dev/null 2>&1
    else # waits until they are deleted: the next test creates trainyard-system again
        kubectl delete namespace "$ns" trainyard-system --timeout=180s >/dev/null 2>&1
    fi
    rm -rf "$scratch"
}
test/cluster/cluster.sh status >/dev/null 2>&1 || ours=1
test/cluster/cluster.sh up --control-plane >"$scratch/up" 2>&1
case $? in
0) ;;
77) cat "$scratch/up"; echo "0 passed, 0 failed, 1 skipped"; exit 0 ;;
*) infrastructure "the cluster does not start" "$scratch/up" ;;
esac
eval "$(test/cluster/cluster.sh env)"
ns=cel-$$
trap finish EXIT

ok() { passed=$((passed + 1)); [ -z "${V:-}" ] || echo "ok   $1"; }
bad() {
    failed=$((failed + 1))
    echo "FAIL $1: $2"
    record FAIL "$1" 1 race - "$(keep_log "$1" <<<"$2")" "$2"
}

# ---- the CRDs, as kubectl apply installs them ----
install() {
    local crd
    kubectl create namespace "$ns" >/dev/null || return 1
    for crd in deploy/crd/*.yaml; do
        kubectl apply -f "$crd" >"$scratch/out" 2>&1 || { bad "kubectl apply -f $crd" "$(tail -c 1500 "$scratch/out")"; return 1; }
        ok "kubectl apply -f $crd"
    done
    local end=$((SECONDS + 120)) # kubectl fails at once when a new CRD still has null as its conditions
    until kubectl wait --for=condition=Established --timeout=60s crd trainjobs.trainyard.dev tfjobs.kubeflow.org >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { bad "the CRDs are established" "not after 120 s"; return 1; }
        sleep 0.2
    done
    # The conditions report what the API server did not understand of the schema.
    kubectl get crd trainjobs.trainyard.dev tfjobs.kubeflow.org -o json |
        jq -r '.items[].status.conditions[] | select(.type == "NonStructuralSchema" or (.type == "NamesAccepted" and .status != "True")) | .message' >"$scratch/out"
    if [ -s "$scratch/out" ]; then bad "the schemas" "$(cat "$scratch/out")"; else ok "the schemas are structural"; fi
    # Discovery and OpenAPI are updated a moment later.
    end=$((SECONDS + 120))
    until kubectl explain trainjobs.trainyard.dev.spec.fit >/dev/null 2>&1 && kubectl explain tfjobs.kubeflow.org.spec >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { bad "kubectl explain" "nothing after 120 s"; return 1; }
        sleep 0.2
    done
}

explain() { # FIELD WORDS
    local text
    text=$(kubectl explain "$1" 2>&1 | tr -s ' \n' ' ')
    if [[ $text == *"$2"* ]]; then ok "explain $1"; else bad "kubectl explain $1" "no '$2' in: ${text:0:300}"; fi
}

explains() {
    explain trainjobs.trainyard.dev "A training job"
    explain trainjobs.trainyard.dev.spec "What to train, and how"
    explain trainjobs.trainyard.dev.spec.fit.batchSize 'Examples of one batch; an update of `updates: sync`, `Mirrored` and `MultiWorkerMirrored` has `replicasToAggregate` batches. Default: 32'
    explain trainjobs.trainyard.dev.spec.strategy.name "Not supported yet: Pipeline"
    explain trainjobs.trainyard.dev.spec.replicaSpecs "Worker: Compute the gradients."
    explain trainjobs.trainyard.dev.spec.replicaSpecs.template.spec.containers.image "default is set at the operator"
    explain trainjobs.trainyard.dev.status.progress.loss "NaN"
    explain tfjobs.kubeflow.org.spec.tfReplicaSpecs.restartPolicy "Default: Never"
    kubectl get tyj -n "$ns" >/dev/null 2>&1 && ok "short name tyj" || bad "short name tyj" "is not known"
}

# ---- cases ----
keeps() { # FILE.json PATH...
    local path
    for path in "${@:2}"; do
        [ "$(jq -c "$path != null" "$1")" = true ] || { echo "$path is gone"; return 1; }
    done
}

one_case() { # FILE
    local file=$1 name want create=create out=$scratch/answer
    name=$(basename "$file" .yaml)
    want=$(head -n 1 "$file")
    awk -v out="$scratch/doc" 'BEGIN {n = 1} /^---$/ {n++; next} {print > (out n ".yaml")}' "$file"
    if grep -q '^---$' "$file"; then
        create=replace
        kubectl create -n "$ns" -f "$scratch/doc1.yaml" >"$out" 2>&1 || { bad "$name" "what is there before was refused: $(cat "$out")"; return; }
        mv "$scratch/doc2.yaml" "$scratch/doc1.yaml"
    fi
    kubectl $create -n "$ns" --dry-run=server -o json -f "$scratch/doc1.yaml" >"$scratch/object.json" 2>"$out"
    local status=$?
    [ $create = create ] || kubectl delete -n "$ns" --wait=true -f "$scratch/doc1.yaml" >/dev/null 2>&1
    case $want in
    "# refused: "*)
        [ $status != 0 ] || { bad "$name" "was taken"; return; }
        cat "$out" >>"$scratch/refusals"
        grep -qF -- "${want#"# refused: "}" "$out" || { bad "$name" "no '${want#"# refused: "}' in: $(cat "$out")"; return; } ;;
    "# accepted"*)
        [ $status = 0 ] || { bad "$name" "was refused: $(cat "$out")"; return; }
        # shellcheck disable=SC2086 # a list of words
        if [[ $want == *keeps* ]]; then keeps "$scratch/object.json" ${want##*keeps } >"$out" || { bad "$name" "$(cat "$out")"; return; }; fi ;;
    *) bad "$name" "its first line says neither refused nor accepted"; return ;;
    esac
    ok "$name"
}

# The API server accepts what `trainyard validate` finds valid.
valid_manifest() { # FILE
    sed '/^status:/d; /^  uid:/d; /creationTimestamp/d; /^  namespace:/d' "$1" |
        kubectl create -n "$ns" --dry-run=server -f - >"$scratch/answer" 2>&1 && ok "$1" || bad "$1" "$(cat "$scratch/answer")"
}

# Every rule of both CRDs refused something in some case. Of a message that is put together only the last words are
# compared.
rules_have_cases() {
    local words
    while read -r words; do
        if grep -qF -- "$words" "$scratch/refusals"; then ok "a case for: $words"; else bad "a rule without a case" "$words"; fi
    done < <(for crd in deploy/crd/*.yaml; do "$tools/yaml2json" <"$crd"; done | jq -r '.. | objects | ."x-kubernetes-validations"? // empty | .[] |
        if .messageExpression then [.messageExpression | scan("\"([^\"]*)\"")] | last[0] else .message end' | sort -u)
}

# `kubectl scale` reads the number of workers even where the manifest does not set it.
scale() {
    sed -n '/^apiVersion/,$p' test/data/cel/trainjob_ps_named.yaml | sed 's/Worker: {replicas: 2}/Worker: {}/' | kubectl create -n "$ns" -f - >/dev/null
    kubectl scale -n "$ns" trainjobs.trainyard.dev/a --replicas=4 >"$scratch/out" 2>&1 &&
        [ "$(kubectl get -n "$ns" trainjobs.trainyard.dev/a -o jsonpath='{.spec.replicaSpecs.Worker.replicas}')" = 4 ] && ok "kubectl scale" || bad "kubectl scale" "$(cat "$scratch/out")"
    kubectl scale -n "$ns" trainjobs.trainyard.dev/a --replicas=20000 >"$scratch/out" 2>&1 && bad "kubectl scale beyond the bound" "was taken" || ok "kubectl scale beyond the bound"
    kubectl patch -n "$ns" trainjobs.trainyard.dev/a --subresource=status --type=merge >/dev/null -p '{"status": {"state": "Running", "ready": "3/4",
        "progress": {"percent": 30, "step": 1400, "loss": "0.1433", "examplesPerSecond": 48210.0}, "replicaStatuses": {"Worker": {"active": 2, "counted": 1}},
        "conditions": [{"type": "Created", "status": "True"}, {"type": "Failed", "status": "True", "reason": "BadInput", "message": "a-worker-0 exited with code 2: no data"}]}}'
    kubectl get -n "$ns" -o wide trainjobs.trainyard.dev >"$scratch/out"
    grep -q 'FAILURE$' "$scratch/out" && grep -q 'a-worker-0 exited with code 2: no data *$' "$scratch/out" && ok "the failure in -o wide" || bad "the failure in -o wide" "$(cat "$scratch/out")"
    kubectl get -n "$ns" trainjobs.trainyard.dev | tr -s ' ' >"$scratch/out"
    if grep -q '^NAME STATE READY PROGRESS STEP LOSS EXAMPLES/S AGE$' "$scratch/out" && grep -qE '^a Running 3/4 30 1400 0\.1433 48210 [0-9]+s' "$scratch/out"; then ok "columns"; else bad "columns" "$(cat "$scratch/out")"; fi
}

# Clients that do not ask for a validation of fields, as TFJob's SDK: the answer warns, and the field is gone.
unknown_fields_are_warned_of() {
    sed -n '/^apiVersion/,$p' test/data/cel/tfjob_unknown_in_spec.yaml | "$tools/yaml2json" >"$scratch/tfjob.json"
    kubectl create --raw "/apis/kubeflow.org/v1/namespaces/$ns/tfjobs?dryRun=All" -f "$scratch/tfjob.json" >"$scratch/answer" 2>"$scratch/out"
    grep -qF 'Warning: unknown field "spec.cleanPodPolicy"' "$scratch/out" && ok "a warning" || bad "a warning of an unknown field" "$(cat "$scratch/out")"
    [ "$(jq '.spec | has("tfReplicaSpecs") and (has("cleanPodPolicy") | not)' "$scratch/answer")" = true ] && ok "it is gone" ||
        bad "an unknown field" "is in $(jq -c .spec "$scratch/answer")"
}

# The operator's account may do what the operator does, and no more.
may() { # yes|no WHAT COMMAND...
    "${@:3}" --as=system:serviceaccount:trainyard-system:trainyard >"$scratch/out" 2>&1
    if grep -qE 'Forbidden|^no$' "$scratch/out"; then local got=no; else local got=yes; fi
    [ "$got" = "$1" ] && ok "the operator may $2: $1" || bad "may the operator $2?" "$got, wanted $1: $(tail -n 1 "$scratch/out")"
}
can() { kubectl auth can-i -q "$@" --as=system:serviceaccount:trainyard-system:trainyard 2>/dev/null; }
rights() {
    local lease=1ca428e5.training-operator.kubeflow.org hook=validator.training-operator.kubeflow.org
    kubectl apply -k deploy/ >"$scratch/out" 2>&1 || bad "kubectl apply -k deploy/" "$(tail -c 1500 "$scratch/out")"
    local end=$((SECONDS + 60)) # a role takes effect a moment after it was created
    until { can list trainjobs.trainyard.dev -A && can list tfjobs.kubeflow.org -A && can list leases/$lease -A && can list validatingwebhookconfigurations/$hook &&
        can create leases -n trainyard-system && can get leases/trainyard-operator -n trainyard-system && can create events -n "$ns"; } || [ $SECONDS -ge $end ]; do sleep 0.2; done
    may yes "list jobs" kubectl get trainjobs.trainyard.dev,tfjobs.kubeflow.org -A
    may yes "write status" kubectl auth can-i patch trainjobs.trainyard.dev --subresource=status -n "$ns"
    may no "change a job" kubectl patch trainjobs.trainyard.dev/a -n "$ns" --type=merge -p '{"metadata":{"labels":{"a":"b"}}}'
    may yes "see training-operator's lease" kubectl get leases -A --field-selector metadata.name=$lease
    may no "see all leases" kubectl get leases -A
    may yes "see training-operator's webhook" kubectl get validatingwebhookconfigurations --field-selector metadata.name=$hook
    may no "see all webhooks" kubectl get validatingwebhookconfigurations
    may yes "make its lease" kubectl create -n trainyard-system -f - <<<'{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "trainyard-operator"}, "spec": {}}'
    may yes "read its lease" kubectl get -n trainyard-system lease trainyard-operator
    may no "read another lease there" kubectl get -n trainyard-system lease other
    may no "make leases elsewhere" kubectl create -n "$ns" -f - <<<'{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}, "spec": {}}'
    may no "read secrets" kubectl get secrets -n "$ns"
    may no "read a secret" kubectl get secret -n "$ns" trainyard-master-key
    may no "list the secrets of its namespace" kubectl get secrets -n trainyard-system
    may no "read another secret of its namespace" kubectl get secret -n trainyard-system other
    may yes "read the master key" kubectl get secret -n trainyard-system trainyard-master-key
    may yes "make a secret" kubectl create -n "$ns" -f - <<<'{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}'
    may yes "change a secret unread" kubectl auth can-i patch secrets -n "$ns"
    may no "delete secrets" kubectl auth can-i delete secrets -n "$ns"
    may no "watch secrets" kubectl auth can-i watch secrets -n "$ns"
    may yes "list configmaps" kubectl get configmaps -n "$ns"
    may yes "make events" kubectl create -n "$ns" -f - <<<'{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "'"$ns"'"}}'
    may no "make PodGroups" kubectl auth can-i create podgroups.scheduling.volcano.sh -n "$ns"
    # User roles: edit of a namespace includes jobs, view may only read them.
    local who
    for who in view edit; do
        kubectl create rolebinding "$who" -n "$ns" --clusterrole="$who" --user="$who" >/dev/null 2>&1
    done
    local answers='' user verb what sub
    end=$((SECONDS + 60)) # the controller aggregates roles
    until [ "$answers" = "yes yes yes no yes no " ] || [ "$SECONDS" -ge "$end" ]; do
        answers=$(for who in "edit create trainjobs.trainyard.dev" "edit update trainjobs.trainyard.dev/scale" "view get trainjobs.trainyard.dev" "view create trainjobs.trainyard.dev" \
            "edit patch tfjobs.kubeflow.org" "edit patch trainjobs.trainyard.dev/status"; do
            read -r user verb what <<<"$who"
            sub=
            [[ $what != */* ]] || sub=${what#*/}
            kubectl auth can-i "$verb" "${what%/*}" --subresource="$sub" -n "$ns" --as="$user" 2>/dev/null
        done | tr '\n' ' ')
    done
    [ "$answers" = "yes yes yes no yes no " ] && ok "what people may" || bad "what people may" "$answers"
    kubectl delete clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding -l app.kubernetes.io/part-of=trainyard >/dev/null 2>&1
}

# Everything that the two ways of installing create is accepted by the server, and pods in it are "restricted". Nothing
# runs, because there is no node.
installs() {
    kubectl create namespace trainyard-system >/dev/null 2>&1
    kubectl label namespace trainyard-system --overwrite pod-security.kubernetes.io/enforce=restricted pod-security.kubernetes.io/warn=restricted >/dev/null
    restricted "kubectl apply -k deploy/" kubectl apply -k deploy/ --dry-run=server
    command -v helm >/dev/null || { skipped=$((skipped + 1)); echo "SKIP the chart on a server: there is no helm"; return; }
    restricted "helm install" helm install t charts/trainyard -n trainyard-system --take-ownership --force-conflicts
    restricted "helm upgrade" helm upgrade t charts/trainyard -n trainyard-system --set \
        "namespaces={$ns},gangScheduler=volcano,networkPolicy.operator=true,replicas=2,podDisruptionBudget.enabled=true,metrics.dashboard.enabled=true"
    [ "$(kubectl get roles -n "$ns" -o name)" = role.rbac.authorization.k8s.io/t-trainyard ] && ok "a role in the namespace" || bad "a role in the namespace" "$(kubectl get roles -n "$ns" -o name)"
    helm uninstall t -n trainyard-system >"$scratch/out" 2>&1 || bad "helm uninstall" "$(cat "$scratch/out")"
    kubectl get -n "$ns" trainjobs.trainyard.dev/a >"$scratch/out" 2>&1 && ok "jobs stay after helm uninstall" || bad "jobs after helm uninstall" "$(cat "$scratch/out")"
}

# From deploy/ to the chart, by the commands of docs/operating.md, and back.
moves() {
    local before commands
    command -v helm >/dev/null || { skipped=$((skipped + 1)); echo "SKIP from deploy/ to the chart: there is no helm"; return; }
    before=$(kubectl get -n "$ns" trainjobs.trainyard.dev/a -o jsonpath='{.metadata.uid} {.metadata.generation}')
    kubectl apply -k deploy/ >"$scratch/out" 2>&1 || bad "kubectl apply -k deploy/" "$(tail -c 1500 "$scratch/out")"
    if helm install trainyard charts/trainyard -n trainyard-system >"$scratch/out" 2>&1; then
        bad "helm install over deploy/" "was not refused"
    elif grep -q 'cannot be imported into the current release' "$scratch/out"; then
        ok "helm install over deploy/ is refused as the docs say"
    else
        bad "helm install over deploy/ is refused otherwise than the docs say" "$(tail -c 1500 "$scratch/out")"
    fi
    commands=$(sed -n '/^To continue with Helm/,/^Without/s/^    //p' docs/operating.md)
    [ "$(wc -l <<<"$commands")" = 2 ] && bash -e <<<"$commands" >"$scratch/out" 2>&1 && ok "from deploy/ to the chart" ||
        bad "from deploy/ to the chart" "$(tail -c 1500 "$scratch/out")"
    kubectl get deployments,serviceaccounts,roles,clusterroles,clusterrolebindings,services,validatingadmissionpolicies,validatingadmissionpolicybindings -A -l app.kubernetes.io/part-of=trainyard -o json |
        jq -r '.items[] | select(.metadata.labels["app.kubernetes.io/managed-by"] != "Helm") | "\(.kind) \(.metadata.name)"' >"$scratch/out"
    if [ -s "$scratch/out" ]; then bad "what the chart has not taken over" "$(cat "$scratch/out")"; else ok "the chart has taken over all"; fi
    # Without a Lease two operators would undo each other's changes: an upgrade must not run the old and the new one
    # together.
    surge() { kubectl get deployment trainyard -n trainyard-system -o jsonpath='{.spec.strategy.rollingUpdate.maxSurge}'; }
    { helm upgrade trainyard charts/trainyard -n trainyard-system --set leaderElection.enabled=false && [ "$(surge)" = 0 ] &&
        helm upgrade trainyard charts/trainyard -n trainyard-system --set leaderElection.enabled=true && [ "$(surge)" = 25% ]; } >"$scratch/out" 2>&1 &&
        ok "leader election off and on" || bad "leader election off and on" "$(surge) $(tail -c 1500 "$scratch/out")"
    { helm uninstall trainyard -n trainyard-system && kubectl apply -k deploy/; } >"$scratch/out" 2>&1 && ok "and back" || bad "from the chart to deploy/" "$(tail -c 1500 "$scratch/out")"
    [ "$(kubectl get -n "$ns" trainjobs.trainyard.dev/a -o jsonpath='{.metadata.uid} {.metadata.generation}')" = "$before" ] && ok "the jobs stay" || bad "the jobs" "are not what they were"
}
restricted() { # NAME COMMAND...
    "${@:2}" >"$scratch/out" 2>&1 && ! grep -q 'violate PodSecurity' "$scratch/out" && ok "$1" || bad "$1" "$(tail -c 1500 "$scratch/out")"
}

if install; then
    for file in test/data/cel/*.yaml; do
        if [ $# -gt 0 ] && ! grep -qE "$(tr ' ' '|' <<<"$*")" <<<"$file"; then continue; fi
        one_case "$file"
    done
    if [ $# = 0 ]; then
        for file in test/data/job/valid/*/input.yaml deploy/examples/*.yaml; do valid_manifest "$file"; done
        explains
        rules_have_cases
        scale
        unknown_fields_are_warned_of
        installs
        moves
        rights
    fi
else
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
