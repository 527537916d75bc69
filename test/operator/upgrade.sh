# Versions that follow each other while jobs run: the CRD's by helm upgrade, and the operator's own. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of and for the libraries

# The objects of jobs here: "Pod digits-ps-0 UID"
belongings() { k get pods,services,configmaps,networkpolicies -o json | jq -r '.items[] | select(.metadata.ownerReferences) | "\(.kind) \(.metadata.name) \(.metadata.uid)"' | sort; }
jobs_that_run() {
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    tfjob tf '' PS=1 Worker=2 | k apply -f - >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-ps-0 tf-worker-0 tf-worker-1"
    running digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-ps-0 tf-worker-0 tf-worker-1
    want 60 trainjob digits .status.ready 4/4
    want 60 tfjob tf .status.ready 3/3
}

# A chart whose CRD has one field less, and then ours. Alone, because all tests share the CRD.
alone_helm_upgrade_renews_the_crd() {
    "$cluster" build addons >"$dir/addons" 2>&1 # helm is one of them, and may still be under construction
    command -v helm >/dev/null || { skip_reason="there is no helm; test/cluster/cluster.sh build addons makes it"; return; }
    local field=ttlSecondsAfterFinished uid
    chart() { helm "$1" up "$2" -n "$ns" --set replicas=0 "${@:3}" >"$dir/helm" 2>&1 || problem "helm $1: $(tail -n 3 "$dir/helm")"; }
    explained() { if kubectl explain trainjobs.trainyard.dev.spec.runPolicy.$field 2>&1 | grep -q 'ended job is deleted'; then echo yes; else echo no; fi; }
    text_taken() { if k patch trainjob digits --dry-run=server --type=merge -p "{\"spec\":{\"runPolicy\":{\"$field\":\"soon\"}}}" >/dev/null 2>&1; then echo yes; else echo no; fi; }
    begin
    cp -r "$root/charts/trainyard" "$dir/older"
    sed -i 's/^version: .*/version: 0.0.9/' "$dir/older/Chart.yaml"
    sed -i "/^ *$field:\$/,/^ *maximum:/d" "$dir/older/templates/crds/trainjobs.yaml"
    chart install "$dir/older" --take-ownership --force-conflicts
    jobs_that_run
    eventually 60 no explained
    eventually 60 yes text_taken # the field is unknown
    belongings >"$dir/before"
    chart upgrade "$root/charts/trainyard"
    eventually 60 yes explained
    eventually 60 no text_taken
    set_job trainjob digits "{\"spec\":{\"runPolicy\":{\"$field\":3600}}}"
    want 60 trainjob digits '.status.observedGeneration == .metadata.generation' true
    same "$(value trainjob digits .spec.runPolicy.$field)" 3600 "the new field"
    belongings >"$dir/after"
    cmp -s "$dir/before" "$dir/after" || problem "the jobs' objects are others: $(diff "$dir/before" "$dir/after")"
    uid=$(uid_of pod digits-worker-1)
    failed digits-worker-1 137 # the operator continues to reconcile them
    another_pod 60 digits-worker-1 "$uid"
    succeeded digits-chief-0 tf-worker-0
    want_condition 60 trainjob digits Succeeded "True TrainJobSucceeded"
    want_condition 60 tfjob tf Succeeded "True TFJobSucceeded"
    helm uninstall up -n "$ns" >"$dir/helm" 2>&1 || problem "helm uninstall: $(tail -n 3 "$dir/helm")"
    same "$(k get trainjobs.trainyard.dev,tfjobs -o name | tr '\n' ' ')" "trainjob.trainyard.dev/digits tfjob.kubeflow.org/tf " "the jobs when the chart is uninstalled"
}

# The next version may build pods differently. Running pods are not changed; only pods that are created from then on
# differ.
test_next_version_restarts_nobody() {
    begin --trainer-image example/trainer:1
    jobs_that_run
    belongings >"$dir/before"
    stop_operator
    own_operator --trainer-image example/trainer:2 --image-pull-policy Always --cluster-domain cluster.local --no-network-policy
    local uid
    uid=$(uid_of pod digits-worker-1)
    failed digits-worker-1 137
    another_pod 60 digits-worker-1 "$uid"
    same "$(value pod digits-worker-1 '.spec.containers[0].image')" example/trainer:2 "the image of a replica that is made again"
    set_job tfjob tf '{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":3}}}}'
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-ps-0 tf-worker-0 tf-worker-1 tf-worker-2"
    same "$(env_of tf-worker-2 TF_CONFIG | jq -r .cluster.ps[0])" "tf-ps-0.$ns.svc.cluster.local:2222" "an address that a new replica is told"
    running digits-worker-1 tf-worker-2
    want 60 trainjob digits .status.ready 4/4
    want 60 tfjob tf .status.ready 4/4
    belongings | grep -v ' tf-worker-2 ' | sed "s/ $(uid_of pod digits-worker-1)\$/ $uid/" >"$dir/after"
    cmp -s "$dir/before" "$dir/after" || problem "the next version changed what was there: $(diff "$dir/before" "$dir/after")"
    same "$(k get trainjobs.trainyard.dev,tfjobs -o json | jq '[.items[].status.replicaStatuses[].restarts // 0] | add')" 1 "restarts"
    same "$(value tfjob tf '.status.conditions | map(.type) | join(" ")')" "Created Running" "conditions of the TFJob"
}
