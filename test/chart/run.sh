#!/bin/bash
# Tests of generated files, of the chart's templates as Helm renders them, and of deploy/. No cluster is needed; cel.sh
# in this folder tests with a real API server.
# usage: test/chart/run.sh [NAME]...        (BUILD=build/release: where the tools are)
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/../integration/lib.sh"
cd "$root" || exit 1
tools=${BUILD:-build/release}/tools
PATH=$PATH:${TRAINYARD_CACHE:-${HOME:-/root}/.cache/trainyard}/cluster/bin
same() { [ "$1" = "$2" ] || problem "$3: '$1', wanted '$2'"; } # GOT WANT WHAT
for program in "$tools/crd" "$tools/yaml2json" jq; do
    command -v "$program" >/dev/null || { echo "these tests need $program (make test builds and installs it)"; exit 2; }
done

json_of() { "$tools/yaml2json" <"$1" | jq -s .; }
# render NAME ARGUMENTS...: the chart, as release $release, as a list of objects in $scratch/NAME.json
release=t
render() {
    local name=$1
    shift
    helm template "$release" charts/trainyard --namespace tns "$@" >"$scratch/$name.yaml" 2>"$scratch/$name.err" &&
        json_of "$scratch/$name.yaml" >"$scratch/$name.json" && return
    problem "helm template $*: $(cat "$scratch/$name.err")"
    return 1
}
look() { jq -c "$2" "$scratch/$1.json" 2>&1; } # NAME FILTER
need_helm() { command -v helm >/dev/null || skip_reason="there is no helm; test/cluster/cluster.sh build addons makes it"; [ -z "$skip_reason" ]; }

test_generated_files_are_current() {
    local templates=charts/trainyard/templates/crds
    current() { # FILE COMMAND...
        "${@:2}" | cmp -s - "$1" || wrong "$1 is not what its source says; run 'make docs'"
    }
    current deploy/crd/trainyard.dev_trainjobs.yaml "$tools/crd" spec tools/crd/trainjob.yaml
    current $templates/trainjobs.yaml "$tools/crd" chart deploy/crd/trainyard.dev_trainjobs.yaml .Values.crds.enabled
    current $templates/tfjobs.yaml "$tools/crd" chart deploy/crd/kubeflow.org_tfjobs.yaml .Values.tfjob.installCRD
    tools/values_table.sh charts/trainyard/values.yaml >"$scratch/table"
    awk '/^<!-- end of values/ {exit} on && NF; /^<!-- values:/ {on = 1}' charts/trainyard/README.md | cmp -s - "$scratch/table" ||
        problem "charts/trainyard/README.md does not list the values as they are; run 'make docs'"
}

test_crds_are_small_and_say_what_every_field_is() {
    local crd silent
    for crd in deploy/crd/*.yaml; do
        [ "$(wc -c <"$crd")" -lt 200000 ] || problem "$crd is too large for kubectl apply"
        json_of "$crd" | jq '.[0]' >"$scratch/crd.json"
        # apiVersion and kind need no description, and neither do the elements of lists and maps; alternatives cannot have one.
        silent=$(jq -c '.spec.versions[0].schema.openAPIV3Schema | [paths(objects) as $p | select($p[-2] == "properties" and $p != ["properties", "metadata"] and $p != ["properties", "metadata", "properties", "name"] and ($p | index("anyOf") | not))
            | select(getpath($p).description | . == null or . == "") | $p | join(".")]' "$scratch/crd.json")
        same "$silent" "[]" "$crd: fields without a description"
        same "$(jq -c '[paths(. == null)]' "$scratch/crd.json")" "[]" "$crd: empty values"
    done
}

test_tfjob_is_named_as_the_original() {
    json_of deploy/crd/kubeflow.org_tfjobs.yaml >"$scratch/tf.json"
    same "$(look tf '.[0].spec | [.group, .scope, .names.kind, .names.listKind, .names.plural, .names.singular, (.versions | map(.name))]')" \
        '["kubeflow.org","Namespaced","TFJob","TFJobList","tfjobs","tfjob",["v1"]]' "names"
    same "$(look tf '.[0].spec.versions[0].additionalPrinterColumns[:2] | map([.name, .jsonPath, .type])')" \
        '[["State",".status.conditions[-1:].type","string"],["Age",".metadata.creationTimestamp","date"]]' "first columns"
}

test_lint() {
    need_helm || return
    helm lint --strict charts/trainyard >"$scratch/lint" 2>&1 || problem "$(cat "$scratch/lint")"
}

test_schema_and_values_have_the_same_keys() {
    json_of charts/trainyard/values.yaml | jq '.[0]' >"$scratch/values.json"
    local leaves='[paths(type != "object" or length == 0) | map(select(type == "string")) | join(".")] | unique'
    jq -c "del(.resources, .metrics.dashboard.labels.grafana_dashboard) | $leaves | .[]" "$scratch/values.json" | sort >"$scratch/have"
    jq -c 'def walk_schema: if .properties then .properties | to_entries[] | .key as $k | .value | (walk_schema | [$k] + .) else [] end;
        del(.properties.global, .properties.resources) | walk_schema | join(".")' charts/trainyard/values.schema.json | sort >"$scratch/want"
    diff "$scratch/have" "$scratch/want" >"$scratch/diff" || problem "values.yaml (<) and values.schema.json (>) differ: $(cat "$scratch/diff")"
    same "$(jq -c '[.. | objects | select(has("properties") and .type == "object" and .additionalProperties != false)] | length' charts/trainyard/values.schema.json)" 0 \
        "objects of the schema that let unknown keys pass"
    while read -r line; do
        [ -n "$line" ] && problem "a value without a comment: $line"
    done < <(tools/values_table.sh charts/trainyard/values.yaml | grep '|  |$')
}

test_bad_values_are_refused() {
    need_helm || return
    local set want
    while IFS='|' read -r set want; do
        helm template t charts/trainyard --set "$set" >/dev/null 2>"$scratch/err" && { problem "$set was taken"; continue; }
        grep -qF -- "$want" "$scratch/err" || problem "$set: no '$want' in: $(cat "$scratch/err")"
    done <<'TABLE'
imagee.tag=x|additional properties 'imagee' not allowed
image.tga=x|additional properties 'tga' not allowed
tfjob.install=false|additional properties 'install' not allowed
logLevel=loud|value must be one of
logFormat=xml|value must be one of
image.pullPolicy=Sometimes|value must be one of
tfjob.cleanPodPolicy=none|value must be one of
replicas=-1|minimum
replicas=two|want integer
workers=0|minimum
clientConnection.qps=-5|minimum
leaderElection.leaseSeconds=1|minimum
namespaces={Upper}|does not match pattern
namespaces={a,a}|are equal
extraArgs={workers=3}|does not match pattern
metrics.serviceMonitor.interval=soon|does not match pattern
leaderElection.enabled=false,replicas=2|two operators would undo each other's doing
podDisruptionBudget.enabled=true|minAvailable is 1 and replicas is 1: a node with an operator could never be drained
replicas=2,podDisruptionBudget.enabled=true,podDisruptionBudget.minAvailable=2|minAvailable is 2 and replicas is 2
image.repository=r.example/op:v1|'r.example/op:v1' holds a tag or a digest
trainer.image.repository=tr@sha256:00|'tr@sha256:00' holds a tag or a digest
gangScheduler=Volcano|does not match pattern
fullnameOverride=My_Operator|does not match pattern
insecure=yes|want boolean
admissionPolicy.exemptUsers={a,a}|are equal
admissionPolicy.exempt={a}|additional properties 'exempt' not allowed
trainjob.enabled=false,tfjob.enabled=false|the operator would have nothing to do
TABLE
}

test_default_objects() {
    need_helm && render default || return
    same "$(look default 'map("\(.kind)/\(.metadata.name)") | sort')" "$(jq -nc '[
        "ClusterRole/t-trainyard", "ClusterRole/t-trainyard-edit", "ClusterRole/t-trainyard-guard", "ClusterRole/t-trainyard-view",
        "ClusterRoleBinding/t-trainyard", "ClusterRoleBinding/t-trainyard-guard", "CustomResourceDefinition/tfjobs.kubeflow.org",
        "CustomResourceDefinition/trainjobs.trainyard.dev", "Deployment/t-trainyard", "NetworkPolicy/t-trainyard", "Pod/t-trainyard-selftest", "Role/t-trainyard-identity",
        "Role/t-trainyard-leader", "Role/t-trainyard-selftest", "RoleBinding/t-trainyard-identity", "RoleBinding/t-trainyard-leader", "RoleBinding/t-trainyard-selftest",
        "Service/t-trainyard-metrics", "ServiceAccount/t-trainyard", "ServiceAccount/t-trainyard-selftest",
        "ValidatingAdmissionPolicy/t-trainyard-authors", "ValidatingAdmissionPolicyBinding/t-trainyard-authors"]')" "objects"
    same "$(look default 'map(select(.metadata.labels["app.kubernetes.io/name"] != "trainyard" or .metadata.labels["app.kubernetes.io/managed-by"] != "Helm" or .metadata.labels["helm.sh/chart"] != "trainyard-0.1.0")) | map(.metadata.name)')" \
        "[]" "objects without the usual labels"
    same "$(look default 'map(select(.kind == "CustomResourceDefinition") | .metadata.annotations["helm.sh/resource-policy"])')" '["keep","keep"]' "policy of the CRDs"
    same "$(look default '.[] | select(.kind == "Pod") | .spec.containers[0] | [.command, .args]')" \
        '[["trainyard-operator"],["selftest","--namespace=tns","--timeout-seconds=300"]]' "the test's command"
}

# Both ways of installing create the same: CRDs, rights, process.
test_chart_and_deploy_agree() {
    need_helm && render default || return
    cat deploy/crd/*.yaml >/dev/null
    for file in deploy/crd/*.yaml deploy/rbac/*.yaml deploy/operator.yaml; do "$tools/yaml2json" <"$file"; done | jq -s . >"$scratch/deploy.json"
    local name spec='.[] | select(.kind == "CustomResourceDefinition" and .metadata.name == $n) | .spec'
    for name in trainjobs.trainyard.dev tfjobs.kubeflow.org; do
        [ "$(jq -S --arg n $name "$spec" "$scratch/deploy.json")" = "$(jq -S --arg n $name "$spec" "$scratch/default.json")" ] || problem "the chart's CRD $name differs"
    done
    for name in '' -guard -identity -leader -view -edit; do
        same "$(look default ".[] | select((.kind == \"ClusterRole\" or .kind == \"Role\") and .metadata.name == \"t-trainyard$name\") | .rules")" \
            "$(look deploy ".[] | select((.kind == \"ClusterRole\" or .kind == \"Role\") and .metadata.name == \"trainyard$name\") | .rules")" "rules of trainyard$name"
    done
    local process='.[] | select(.kind == "Deployment") | .spec.template.spec | [.securityContext, .terminationGracePeriodSeconds, .automountServiceAccountToken, (.containers[0] | .image, .imagePullPolicy, .env, .ports, .livenessProbe, .readinessProbe, .securityContext, .resources)]'
    same "$(jq -cS "$process" "$scratch/default.json")" "$(jq -cS "$process" "$scratch/deploy.json")" "the operator's pod"
    local policy='.[] | select(.kind == "NetworkPolicy") | .spec | del(.podSelector)'
    same "$(jq -cS "$policy" "$scratch/default.json")" "$(jq -cS "$policy" "$scratch/deploy.json")" "the operator's NetworkPolicy"
    policy='.[] | select(.kind | test("ValidatingAdmissionPolicy")) | .spec | del(.policyName)'
    same "$(jq -cS "$policy" "$scratch/default.json")" "$(jq -cS "$policy" "$scratch/deploy.json")" "the admission policy"
    # Flags of deploy/ are the chart's defaults.
    same "$(jq -nc --slurpfile a "$scratch/deploy.json" --slurpfile b "$scratch/default.json" 'def args: map(select(.kind == "Deployment"))[0].spec.template.spec.containers[0].args | map(sub("=tns$"; "=trainyard-system")); ($a[0] | args) - ($b[0] | args)')" "[]" "flags of deploy/operator.yaml that the chart does not give"
    # Every file of deploy/ is in the kustomization.
    for file in deploy/crd/*.yaml deploy/rbac/*.yaml deploy/operator.yaml; do
        grep -qF -- "- ${file#deploy/}" deploy/kustomization.yaml || problem "$file is not in deploy/kustomization.yaml"
    done
}

# Pod Security "restricted", and no writable root.
test_pods_are_restricted() {
    need_helm && render all --set namespaces='{a}' --set image.digest=sha256:00112233445566778899aabbccddeeff || return
    json_of deploy/operator.yaml >"$scratch/deploy.json"
    local pods='[.[] | (select(.kind == "Deployment") | .spec.template.spec), (select(.kind == "Pod") | .spec)]'
    local bad='map(select((.securityContext.runAsNonRoot and .securityContext.seccompProfile.type == "RuntimeDefault" and (.hostNetwork or .hostPID or .hostIPC or .volumes | not)
        and (.containers | all(.securityContext | .allowPrivilegeEscalation == false and .readOnlyRootFilesystem and .capabilities == {drop: ["ALL"]}))) | not)) | length'
    same "$(look all "$pods | length")" 2 "pods"
    same "$(look all "$pods | $bad")" 0 "pods of the chart that are not restricted"
    same "$(look deploy "$pods | $bad")" 0 "pods of deploy/ that are not restricted"
}

test_roles_have_nothing_they_do_not_use() {
    need_helm || return
    local rules='[.[] | select(.kind == "ClusterRole" or .kind == "Role") | select(.metadata.name | test("view|edit|selftest") | not) | .rules[]]'
    render default || return
    same "$(look default "$rules | map(.verbs[], .resources[], .apiGroups[]) | map(select(. == \"*\")) | length")" 0 "wildcards"
    same "$(look default "$rules | map(select(.verbs | index(\"deletecollection\"))) | length")" 0 "bulk deletes"
    # Secrets: in the cluster only create and patch, and the master key is the only one that it can read.
    secrets() { look "$1" '[.[] | select(.kind == "ClusterRole" or .kind == "Role") | .metadata.name as $n | .rules[] | select(.resources | index("secrets")) | [$n, .resources, .resourceNames, .verbs]]'; }
    same "$(secrets default)" \
        '[["t-trainyard",["secrets"],null,["create","patch"]],["t-trainyard-identity",["secrets"],null,["create"]],["t-trainyard-identity",["secrets"],["trainyard-master-key"],["get"]]]' "rights on secrets"
    render insecure --set insecure=true || return
    same "$(secrets insecure)" "$(secrets default)" "rights on secrets with insecure: jobs that have certificates keep them"
    same "$(look default "$rules | map(select(.apiGroups[0] | test(\"scheduling\"))) | length")" 0 "rights on PodGroups without a gang scheduler"
    render tf --set trainjob.enabled=false || return
    same "$(look tf "$rules | map(.resources[]) | sort | unique")" \
        '["events","leases","pods","secrets","services","tfjobs","tfjobs/finalizers","tfjobs/status","validatingwebhookconfigurations"]' "resources with TFJobs only"
    render train --set tfjob.enabled=false,networkPolicy.jobs=false || return
    same "$(look train "$rules | map(.resources[]) | sort | unique")" \
        '["configmaps","deployments","events","leases","persistentvolumeclaims","pods","secrets","services","trainjobs","trainjobs/finalizers","trainjobs/status"]' "resources with TrainJobs only"
    same "$(look train '[.[] | .metadata.name | select(test("guard"))]')" "[]" "eyes for training-operator"
    render spaces --set namespaces='{a,b}' || return
    same "$(look spaces '[.[] | select(.kind == "Role" and .metadata.name == "t-trainyard") | .metadata.namespace]')" '["a","b"]' "namespaces with a Role"
    same "$(look spaces '[.[] | select(.kind == "ClusterRole" and .metadata.name == "t-trainyard")] | length')" 0 "rights in the whole cluster"
    same "$(look spaces '[.[] | select(.kind == "RoleBinding" and .metadata.name == "t-trainyard") | .subjects[0].namespace]')" '["tns","tns"]' "namespace of the account"
    render none --set rbac.create=false || return
    same "$(look none "$rules | length")" 0 "rules without rbac.create"
}

# The effect of each value: arguments, then a filter that must be true of the objects.
test_values_do_what_they_say() {
    need_helm || return
    local set filter n=0
    while IFS='|' read -r set filter; do
        n=$((n + 1))
        # shellcheck disable=SC2086 # a list of words
        render "case$n" $set || continue
        same "$(look "case$n" "def operator: .[] | select(.kind == \"Deployment\") | .spec.template; def args: operator.spec.containers[0].args; def kind(\$k): map(select(.kind == \$k)); $filter")" true "$set | $filter"
    done <test/data/chart/values
    [ "$n" -gt 30 ] || problem "only $n lines of test/data/chart/values were read"
}

test_names_fit() {
    need_helm || return
    local release
    for release in trainyard a-name-as-long-as-helm-takes-for-a-release-which-is53; do
        render "$release" || continue
        same "$(look "$release" 'map(.metadata.name | length) | max <= 63')" true "names of the release $release fit"
    done
    same "$(look trainyard '.[] | select(.kind == "Deployment") | .metadata.name')" '"trainyard"' "name of the release trainyard"
}

# The operator accepts every flag that the chart and deploy/ give it: it starts as far as the kubeconfig.
test_flags_are_known() {
    local program=${BUILD:-build/release}/bin/trainyard-operator n=0 values args
    [ -x "$program" ] || { skip_reason="$program is not built"; return; }
    understood() { # NAME: of $scratch/NAME.json
        mapfile -t args < <(jq -r '.[] | select(.kind == "Deployment") | .spec.template.spec.containers[0].args[]' "$scratch/$1.json")
        [ ${#args[@]} -gt 5 ] || problem "$1 has ${#args[@]} flags"
        "$program" "${args[@]}" --kubeconfig=/nonexistent/file >"$scratch/out" 2>&1
        grep -q /nonexistent/file "$scratch/out" || problem "${args[*]}: $(tail -n 2 "$scratch/out")"
    }
    json_of deploy/operator.yaml >"$scratch/deploy.json"
    understood deploy
    need_helm || return
    for values in "" "--set trainjob.enabled=false" "--set tfjob.enabled=false,networkPolicy.jobs=false,leaderElection.enabled=false,logFormat=json,logLevel=debug" \
        "--set namespaces={a,b},gangScheduler=volcano,clusterDomain=cluster.local,tfjob.cleanPodPolicy=All,clientConnection.qps=5,clientConnection.burst=10,networkPolicy.scraperNamespaces={m,n},insecure=true"; do
        n=$((n + 1))
        # shellcheck disable=SC2086 # a list of words
        render "flags$n" $values && understood "flags$n"
    done
}

metrics_exist() { # EXPRESSION...
    local metric name
    for metric in $(grep -ohE '\b(trainyard|training_operator|controller_runtime|workqueue|rest_client|process|leader_election)_[a-z_]+' <<<"$*" | sort -u); do
        [[ $metric =~ ^trainyard_dev_ ]] && continue # a label of pods
        name=${metric%_bucket}
        [[ $name =~ ^training_operator_jobs_.*_total$ ]] && name='training_operator_jobs_%s_total'
        grep -rqF "\"$name\"" lib worker operator --include='*.c' || problem "no program has the metric $metric"
    done
}

test_alerts() {
    need_helm && render rules --set metrics.prometheusRule.enabled=true || return
    metrics_exist "$(look rules '.[] | select(.kind == "PrometheusRule") | .spec.groups[].rules[].expr')"
    grep -q '{{ $labels.job_namespace }}' "$scratch/rules.yaml" || problem "the alert does not name the namespace"
}

# The dashboard is JSON, its panels do not overlap, and shows metrics that exist.
test_dashboard() {
    local file=charts/trainyard/dashboards/trainyard.json
    jq -e '.panels | length > 10' "$file" >/dev/null || problem "$file has no panels"
    same "$(jq -c '[.panels[] | .gridPos | select(.x + .w > 24)] | length' "$file")" 0 "panels beyond the edge"
    same "$(jq -c '[.panels[].gridPos | "\(.x),\(.y)"] | length - (unique | length)' "$file")" 0 "panels in one place"
    metrics_exist "$(jq -r '.. | .expr? // empty' "$file")"
}

# The overlay of docs/operating.md changes every field that names the operator's namespace or the images' registry.
test_overlay_of_the_docs() {
    command -v kubectl >/dev/null || { skip_reason="there is no kubectl; test/cluster/cluster.sh build kube makes it"; return; }
    mkdir -p "$scratch/overlay"
    cp -r deploy "$scratch"
    sed -n '/^apiVersion: kustomize/,/^```/{/^```/!p}' docs/operating.md >"$scratch/overlay/kustomization.yaml"
    kubectl kustomize "$scratch/overlay" >"$scratch/overlay.yaml" 2>"$scratch/err" || { problem "kubectl kustomize: $(cat "$scratch/err")"; return; }
    grep -n trainyard-system "$scratch/overlay.yaml" && problem "the overlay leaves objects in trainyard-system"
    json_of "$scratch/overlay.yaml" >"$scratch/overlay.json"
    same "$(look overlay 'map(select(.kind == "Deployment"))[0].spec.template.spec.containers[0] | [.image, (.args | map(select(startswith("--trainer-image=")))[-1])]')" \
        '["registry.example.org/ml/operator:0.1.0","--trainer-image=registry.example.org/ml/trainer:0.1.0"]' "images"
}

test_notes() {
    need_helm || return
    helm install t charts/trainyard --dry-run=client --namespace tns >"$scratch/notes" 2>&1 || { problem "$(tail -n 3 "$scratch/notes")"; return; }
    grep -q 'helm test t -n tns' "$scratch/notes" || problem "the notes do not tell how to test"
    grep -q 'TrainJobs (trainyard.dev) and TFJobs (kubeflow.org) in all namespaces' "$scratch/notes" || problem "the notes do not tell what is served: $(grep 'It serves' "$scratch/notes")"
}

run_tests "$@"
