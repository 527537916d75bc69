# Suspension, jobs of other managers, and the behaviour on which Kueue relies. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154 # variables of the libraries

# Suspended time is not active time: the deadline is reset.
test_suspend_stops_the_clock() {
    begin
    tfjob tf '' Worker=1 | k apply -f - >/dev/null
    want_pods 60 "tf-worker-0"
    local first
    first=$(value tfjob tf '.status.startTime | fromdate')
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":true,"activeDeadlineSeconds":5}}}' # one patch: kubectl may be slow
    want_condition 60 tfjob tf Suspended "True TFJobSuspended"
    want_pods 60 ""
    while [ "$(date +%s)" -lt $((first + 7)) ]; do sleep 0.2; done
    never_failed tfjob tf
    crash_operator
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":false}}}'
    want_pods 60 "tf-worker-0"
    at_least "$(value tfjob tf '.status.startTime | fromdate')" $((first + 7)) "startTime after it was resumed"
    want_condition 60 tfjob tf Failed "True TFJobFailed"
    local took
    took=$(value tfjob tf '((.status.completionTime | fromdate) - (.status.startTime | fromdate))')
    at_least "$took" 5 "seconds to a deadline of 5"
}

# The kubelet has confirmed the end, and another owner's finalizer keeps the object: the pod counts as terminated.
test_suspend_with_a_finalizer() {
    begin
    tfjob tf '' Chief=1 Worker=1 | sed '/Chief/,/Worker/s/template: {/template: {metadata: {finalizers: [example.com\/look]}, /' | k apply -f - >/dev/null
    want_pods 60 "tf-chief-0 tf-worker-0"
    bind_to_node tf-chief-0
    running tf-chief-0 tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":true}}}'
    want_pods 60 ""
    k delete pod tf-chief-0 --grace-period=0 --force --wait=false >/dev/null 2>&1 # as the kubelet does at the end
    want 60 tfjob tf '.status.conditions | map(select(.type == "Suspended")) | .[0].message' \
        "TFJob tf is suspended; pod tf-chief-0 has ended, but the finalizer example.com/look keeps it"
    want_event 60 tf PodKeptByFinalizer 'the finalizer example.com/look keeps it'
    want_services 60 ""
    k patch pod tf-chief-0 --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    want 60 tfjob tf '.status.conditions | map(select(.type == "Suspended")) | .[0].message' "TFJob tf is suspended."
    same "$(events_count tf NodeLost)" 0 "NodeLost events"
}

test_managed_by_another() {
    begin
    { tfjob theirs 'managedBy: kueue.x-k8s.io/multikueue' Worker=1; echo ---; tfjob ours 'managedBy: kubeflow.org/training-operator' Worker=1; } | k apply -f - >/dev/null
    want_pods 60 "ours-worker-0"
    same "$(value tfjob theirs '.status // {} | length')" 0 "what stands in the status of another's job"
    same "$(k get events -o json | jq '[.items[] | select(.involvedObject.name == "theirs")] | length')" 0 "events about another's job"
    k patch tfjob ours --type=merge -p '{"spec":{"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue"}}}' >"$dir/out" 2>&1 && problem "managedBy can be changed"
    want_line 'managedBy' "$dir/out"
}

# Kueue's topology-aware scheduling and its pod integration hold pods with scheduling gates until their nodes are
# decided.
test_kueue_gates() {
    begin
    tfjob tf '' Worker=2 | sed 's/spec: {containers/spec: {schedulingGates: [{name: kueue.x-k8s.io\/topology}], containers/' | k apply -f - >/dev/null
    want_pods 60 "tf-worker-0 tf-worker-1"
    want 60 tfjob tf '.status.conditions[-1].message | test("^TFJob tf is created. Waiting for tf-worker-[01]: SchedulingGated: ")' true
    local i
    for i in 0 1; do
        k patch pod "tf-worker-$i" --type=json -p '[{"op":"remove","path":"/spec/schedulingGates"},{"op":"add","path":"/spec/nodeSelector","value":{"rack":"a"}}]' >/dev/null || problem "pod tf-worker-$i keeps its gate"
    done
    running tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    want 60 tfjob tf '.status.conditions[] | select(.type == "Created") | .message' "TFJob tf is created."
}

# Kueue creates nothing itself: it suspends, changes templates, and reads labels, counts and conditions.
test_kueue_contract() {
    begin
    tfjob tf 'suspend: true, ttlSecondsAfterFinished: 1' Chief=1 PS=1 Worker=1 | sed 's/^metadata: .*/metadata: {name: tf, labels: {kueue.x-k8s.io\/queue-name: user-queue}}/' | k apply -f - >/dev/null
    want_condition 60 tfjob tf Suspended "True TFJobSuspended"
    want_pods 1 ""
    # admitted: a flavour's node selector and toleration, then resumed
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":false},"tfReplicaSpecs":{"Worker":{"template":{"metadata":{"labels":{"kueue.x-k8s.io/podset":"worker"}},"spec":{"nodeSelector":{"pool":"spot"},"tolerations":[{"key":"spot","operator":"Exists"}]}}}}}}'
    want_pods 60 "tf-chief-0 tf-ps-0 tf-worker-0"
    same "$(value pod tf-worker-0 .spec.nodeSelector.pool)" spot "the node selector"
    same "$(value pod tf-worker-0 '.spec.tolerations | map(select(.key == "spot")) | length')" 1 "tolerations"
    same "$(value pod tf-worker-0 '.metadata.labels["kueue.x-k8s.io/podset"]')" worker "the label that was injected"
    same "$(k get pods -l 'training.kubeflow.org/job-name=tf,training.kubeflow.org/operator-name=tfjob-controller' --no-headers | wc -l)" 3 "pods by Kueue's selector"
    running tf-chief-0 tf-ps-0 tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning" # PodsReady
    want 60 tfjob tf '[.status.replicaStatuses[].active] | add' 3
    # preempted: it must become inactive, keep its object in spite of the time to live, and be able to resume
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":true},"tfReplicaSpecs":{"Worker":{"template":{"spec":{"nodeSelector":null}}}}}}'
    want_pods 60 ""
    want_condition 60 tfjob tf Suspended "True TFJobSuspended"
    want 60 tfjob tf '[.status.replicaStatuses[].active // 0] | add' 0
    want_condition 1 tfjob tf Running "False TFJobSuspended"
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":false}}}'
    want_pods 60 "tf-chief-0 tf-ps-0 tf-worker-0"
    never_failed tfjob tf
    same "$(value tfjob tf '[.status.replicaStatuses[].restarts // 0] | add')" 0 "restarts after a suspension"
    succeeded tf-chief-0
    want 60 tfjob tf .metadata.name ""
}
