# Other owners' objects with the names of a job's objects, and our objects whose owner or labels a user changed.
# shellcheck shell=bash disable=SC2154 # variables of the libraries

# job_of NAME [SPEC-LINES]: a TrainJob of one ps, one chief and two workers, on stdout
job_of() {
    printf 'apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: %s}\nspec:\n%s\n' "$1" "${2:-}"
    sed -n '/^  model:/,$p' "$root/deploy/examples/digits.yaml" | sed '/^  storage:/d'
}
what_is() { k get "$1" "$2" -o json | jq -c '[.metadata.uid, .metadata.resourceVersion, .metadata.ownerReferences]'; } # KIND NAME
# untouched KIND NAME BEFORE
untouched() { same "$(what_is "$1" "$2")" "$3" "$1 $2 of a stranger"; }
owner_of() { value "$1" "$2" '.metadata.ownerReferences // [] | map(select(.controller)) | .[0].uid'; }
says() { value trainjob "$1" ".status.conditions // [] | map(select(.type == \"$2\")) | .[0].message // \"\""; } # NAME TYPE
want_says() { # SECONDS NAME TYPE PATTERN
    want "$1" trainjob "$2" ".status.conditions // [] | map(select(.type == \"$3\" and (.message | test(\"$4\")))) | length" 1
}
stranger() { # KIND NAME: an object of another owner
    case $1 in
    deployment) k create deployment "$2" --image=i --replicas=0 ;;
    service) k create service clusterip "$2" --tcp=80 ;;
    configmap) k create configmap "$2" --from-literal=a=b ;;
    networkpolicy) printf 'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s}\nspec: {podSelector: {}}\n' "$2" | k create -f - ;;
    esac >/dev/null
}

# The job named x must neither adopt a user's x-tensorboard nor delete it with its own objects.
test_objects_strangers_tensorboard() {
    begin
    stranger deployment x-tensorboard
    stranger service x-tensorboard
    local deployment service
    wait_for 60 k get deployment x-tensorboard -o jsonpath='{.status.observedGeneration}' >/dev/null
    want 60 deployment x-tensorboard .status.observedGeneration 1
    deployment=$(what_is deployment x-tensorboard) service=$(what_is service x-tensorboard)
    job_of x '  tensorboard: {}
  storage: {output: {nfs: {server: s, path: /p}}}' | k apply -f - >/dev/null
    want_says 60 x TensorBoardFailure 'Service .x-tensorboard. already exists'
    want_pods 60 "x-chief-0 x-ps-0 x-worker-0 x-worker-1" # the job runs without it
    k delete service x-tensorboard >/dev/null
    want_says 90 x TensorBoardFailure 'Deployment .x-tensorboard. already exists'
    same "$(owner_of service x-tensorboard)" "$(uid_of trainjob x)" "the owner of the service"
    k patch trainjob x --type=json -p '[{"op": "remove", "path": "/spec/tensorboard"}]' >/dev/null
    want 60 service x-tensorboard .metadata.name ""
    want_condition 60 trainjob x TensorBoardFailure "null null"
    untouched deployment x-tensorboard "$deployment"
    k delete trainjob x >/dev/null
    want 60 configmap x-job .metadata.name ""
    untouched deployment x-tensorboard "$deployment"
    [ -n "$service" ] || problem "no service before"
}

# One at a time: the job waits, reports the conflicting object, and continues when that is deleted.
test_objects_strangers_in_the_way() {
    begin --network-policy
    local before kind name
    for kind in configmap networkpolicy service; do
        name=$kind
        [ "$kind" != configmap ] || name=configmap-job
        stranger "$kind" "$name"
        before=$(what_is "$kind" "$name")
        job_of "$kind" | k apply -f - >/dev/null
        want_says 60 "$kind" ReplicaFailure "$name.* already exists and belongs to another owner"
        untouched "$kind" "$name" "$before"
    done
    want_pods 1 "service-chief-0 service-ps-0 service-worker-0 service-worker-1" # they wait for each other's names
    for kind in configmap networkpolicy service; do
        name=$kind
        [ "$kind" != configmap ] || name=configmap-job
        k delete "$kind" "$name" >/dev/null
        want 120 "$kind" "$name" '.metadata.ownerReferences[0].name' "$kind"
        want 120 trainjob "$kind" '.status.conditions | map(select(.type == "ReplicaFailure")) | length' 0
    done
}

# Another owner's gang keeps its size, and none of our pods joins it.
test_objects_strangers_group() {
    gang_crds scheduler-plugins-podgroups.yaml podgroups.scheduling.x-k8s.io
    begin --gang-scheduler-name scheduler-plugins-scheduler
    local group=podgroups.scheduling.x-k8s.io before
    printf 'apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: x}\nspec: {minMember: 7}\n' | k create -f - >/dev/null
    before=$(what_is $group x)
    job_of x | k apply -f - >/dev/null
    want_says 60 x ReplicaFailure 'PodGroup .x. already exists and belongs to another owner'
    want_pods 1 ""
    set_job trainjob x '{"spec":{"runPolicy":{"suspend":true}}}'
    want_condition 60 trainjob x Suspended "True TrainJobSuspended"
    set_job trainjob x '{"spec":{"runPolicy":{"suspend":false}}}'
    k delete trainjob x --wait=false >/dev/null
    want 60 trainjob x .metadata.name ""
    untouched $group x "$before"
}

# ---- changed labels and owners ----

job_label=training.kubeflow.org/job-name
operator_label=training.kubeflow.org/operator-name

# A pod whose labels are edited gets them back, once, and is replaced when it fails; nothing is created twice.
test_objects_edited_labels() {
    begin
    tfjob a '' PS=1 Worker=2:ExitCode | k apply -f - >/dev/null
    tfjob b '' Worker=1 | k apply -f - >/dev/null
    want_pods 60 "a-ps-0 a-worker-0 a-worker-1 b-worker-0"
    running a-ps-0 a-worker-0 a-worker-1 b-worker-0
    want_condition 60 tfjob a Running "True TFJobRunning"
    local all uid
    all=$(k get pods -o json | jq -c '[.items[].metadata.uid] | sort')
    uid=$(uid_of pod a-worker-1)
    k label pod a-worker-1 "$job_label=b" --overwrite >/dev/null
    k label pod a-worker-0 "$operator_label=nobody" --overwrite >/dev/null
    k label pod a-ps-0 "$job_label-" "$operator_label-" training.kubeflow.org/replica-index=7 --overwrite >/dev/null
    want 60 pod a-worker-1 ".metadata.labels[\"$job_label\"]" a
    want 60 pod a-worker-0 ".metadata.labels[\"$operator_label\"]" tfjob-controller
    want 60 pod a-ps-0 ".metadata.labels | [.[\"$job_label\"], .[\"$operator_label\"], .[\"training.kubeflow.org/replica-index\"]] | join(\" \")" "a tfjob-controller 0"
    same "$(k get pods -o json | jq -c '[.items[].metadata.uid] | sort')" "$all" "the pods"
    is tfjob a '.status.conditions | map(select(.type == "Restarting" and .status == "True")) | length' 0 || problem "a was restarted"
    never_failed tfjob a
    failed a-worker-1 137
    another_pod 60 a-worker-1 "$uid"
    k label pod a-worker-0 "$operator_label=nobody" --overwrite >/dev/null
    uid=$(uid_of pod a-worker-0)
    k delete pod a-worker-0 --grace-period=0 --force >/dev/null 2>&1
    another_pod 60 a-worker-0 "$uid"
    want 60 tfjob b '.status.replicaStatuses.Worker.active' 1
}

# The same while no operator runs: the next one finds its pods by their names.
test_objects_labels_edited_unseen() {
    begin
    tfjob a '' PS=1 Worker=1 | k apply -f - >/dev/null
    want_pods 60 "a-ps-0 a-worker-0"
    running a-ps-0 a-worker-0
    want_condition 60 tfjob a Running "True TFJobRunning"
    stop_operator -KILL
    local all
    all=$(k get pods -o json | jq -c '[.items[].metadata.uid] | sort')
    k label pod a-worker-0 "$operator_label=nobody" --overwrite >/dev/null
    k label pod a-ps-0 "$job_label=b" --overwrite >/dev/null
    start_operator "${own_flags[@]}"
    want 60 pod a-worker-0 ".metadata.labels[\"$operator_label\"]" tfjob-controller
    want 60 pod a-ps-0 ".metadata.labels[\"$job_label\"]" a
    same "$(k get pods -o json | jq -c '[.items[].metadata.uid] | sort')" "$all" "the pods"
    want_condition 60 tfjob a Running "True TFJobRunning"
    never_failed tfjob a
}

# kubectl delete --cascade=orphan, then apply: TFJob's pods continue.
test_objects_orphaned_tfjob() {
    begin
    tfjob tf '' PS=1 Worker=2 | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    want_services 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    running tf-ps-0 tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    local all uid object
    all=$(k get pods,services -o json | jq -c '[.items[].metadata.uid] | sort')
    k delete tfjob tf --cascade=orphan >/dev/null
    same "$(owner_of pod tf-worker-0)" null "the owner of an orphan"
    tfjob tf 'cleanPodPolicy: All' PS=1 Worker=2 | k apply -f - >/dev/null
    uid=$(uid_of tfjob tf)
    for object in pod/tf-ps-0 pod/tf-worker-1 service/tf-ps-0 service/tf-worker-1; do
        want 60 "${object%/*}" "${object#*/}" '.metadata.ownerReferences // [] | map(select(.controller)) | .[0].uid' "$uid"
    done
    want_condition 60 tfjob tf Running "True TFJobRunning"
    same "$(k get pods,services -o json | jq -c '[.items[].metadata.uid] | sort')" "$all" "pods and services"
    succeeded tf-worker-0
    want_condition 60 tfjob tf Succeeded "True TFJobSucceeded"
    want_pods 60 ""
    want_services 60 ""
}

# The same of a TrainJob: its pods have the uid and the model of the deleted job, and are neither adopted nor deleted.
test_objects_orphaned_trainjob() {
    begin --network-policy
    job_of x | k apply -f - >/dev/null
    want_pods 60 "x-chief-0 x-ps-0 x-worker-0 x-worker-1"
    running x-chief-0 x-ps-0 x-worker-0 x-worker-1
    want_condition 60 trainjob x Running "True TrainJobRunning"
    local all uid pods="x-ps-0 x-worker-0 x-worker-1 x-chief-0"
    all=$(k get pods -o json | jq -c '[.items[].metadata.uid] | sort')
    k delete trainjob x --cascade=orphan >/dev/null
    job_of x | sed 's/epochs: 20/epochs: 33/' | k apply -f - >/dev/null
    uid=$(uid_of trainjob x)
    want 60 configmap x-job '.metadata.ownerReferences[0].uid' "$uid"
    want 60 configmap x-job '.data["job.yaml"] | test("\"epochs\": *33")' true
    want 60 networkpolicy x '.metadata.ownerReferences[0].uid' "$uid"
    want 60 service x '.metadata.ownerReferences[0].uid' "$uid"
    want_says 60 x ReplicaFailure "pods ${pods// /, } were made for another TrainJob .* kubectl delete pod $pods -n $ns removes them"
    same "$(k get pods -o json | jq -c '[.items[].metadata.uid] | sort')" "$all" "the pods of the job that was"
    same "$(k get pods -o json | jq -c '[.items[].metadata.ownerReferences[]?]')" "[]" "their owners"
    # shellcheck disable=SC2086 # a list of words
    k delete pod $pods --grace-period=0 --force >/dev/null 2>&1
    want 60 trainjob x '.status.conditions | map(select(.type == "ReplicaFailure")) | length' 0
    want 60 pod x-worker-1 '.metadata.ownerReferences[0].uid' "$uid"
    k delete trainjob x >/dev/null
}

# The job file and the policy of a running job are re-created.
test_objects_deleted_beside_a_job() {
    begin --network-policy
    job_of x | k apply -f - >/dev/null
    want_pods 60 "x-chief-0 x-ps-0 x-worker-0 x-worker-1"
    running x-chief-0 x-ps-0 x-worker-0 x-worker-1
    want_condition 60 trainjob x Running "True TrainJobRunning"
    local data spec
    data=$(value configmap x-job .data) spec=$(value networkpolicy x .spec)
    k delete configmap x-job >/dev/null
    k delete networkpolicy x >/dev/null
    want 60 configmap x-job .data "$data"
    want 60 networkpolicy x .spec "$spec"
    same "$(owner_of configmap x-job)" "$(uid_of trainjob x)" "the owner of the job file"
    # its owner was removed: it is adopted again
    k patch configmap x-job --type=json -p '[{"op":"remove","path":"/metadata/ownerReferences"}]' >/dev/null
    want 60 configmap x-job '.metadata.ownerReferences[0].uid' "$(uid_of trainjob x)"
    k delete trainjob x >/dev/null
    want 60 configmap x-job .metadata.name ""
    want 60 networkpolicy x .metadata.name ""
}
