# Gang schedulers: their PodGroup, and pods that wait for it. Their controllers do not run; the test acts for them.
# shellcheck shell=bash disable=SC2154 # variables of the libraries

gang_job() {
    tfjob tf "$1" PS=1 Worker=2 | sed 's/^metadata: .*/metadata: {name: tf, annotations: {team: vision}}/; s/image: example\/test-server/image: i, resources: {requests: {cpu: 500m, memory: 1Gi}}/'
}

test_volcano() {
    gang_crds volcano-podgroups.yaml podgroups.scheduling.volcano.sh
    begin --gang-scheduler-name volcano
    local group=podgroups.scheduling.volcano.sh
    gang_job 'schedulingPolicy: {minAvailable: 10, queue: night, priorityClass: high}' | k apply -f - >/dev/null
    want 60 $group tf '.spec | tojson' '{"minMember":10,"minResources":{"cpu":"1500m","memory":"3Gi"},"priorityClassName":"high","queue":"night"}'
    same "$(value $group tf .metadata.annotations.team)" vision "an annotation of the job"
    same "$(value $group tf '.metadata.ownerReferences[0] | "\(.kind) \(.uid) \(.controller)"')" "TFJob $(uid_of tfjob tf) true" "its owner"
    k patch $group tf --type=merge -p '{"status":{"phase":"Pending"}}' >/dev/null
    want 60 tfjob tf '.status.conditions[-1] | "\(.type) \(.message | test("PodGroup"))"' "Created true"
    want_pods 1 ""
    # as a user does when the gang waits for more than the cluster has; the queue to which it was moved is kept
    k patch $group tf --type=merge -p '{"spec":{"queue":"day"}}' >/dev/null
    set_job tfjob tf '{"spec":{"runPolicy":{"schedulingPolicy":{"minAvailable":1}}}}'
    want 60 $group tf .spec.minMember 1
    same "$(value $group tf .spec.queue)" day "the queue"
    want_pods 1 ""
    k patch $group tf --type=merge -p '{"status":{"phase":"Inqueue"}}' >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    same "$(value pod tf-ps-0 '"\(.spec.schedulerName) \(.metadata.annotations["scheduling.k8s.io/group-name"]) \(.metadata.annotations["volcano.sh/task-spec"])"')" "volcano tf ps" "scheduler and group of the pod"
    running tf-ps-0 tf-worker-0 tf-worker-1
    succeeded tf-worker-0
    want_condition 60 tfjob tf Succeeded "True TFJobSucceeded"
    want 60 $group tf .metadata.name ""
    want_event 60 tf SuccessfulDeletePodGroup
}

test_scheduler_plugins() {
    gang_crds scheduler-plugins-podgroups.yaml podgroups.scheduling.x-k8s.io
    begin --gang-scheduler-name scheduler-plugins-scheduler
    local group=podgroups.scheduling.x-k8s.io
    gang_job 'schedulingPolicy: {scheduleTimeoutSeconds: 30}' | sed '0,/spec: {containers/s//spec: {schedulerName: mine, containers/' | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1" # they do not wait: the scheduler itself holds them
    want 60 $group tf '.spec | tojson' '{"minMember":3,"minResources":{"cpu":"1500m","memory":"3Gi"},"scheduleTimeoutSeconds":30}'
    same "$(value pod tf-worker-0 '"\(.spec.schedulerName) \(.metadata.labels["scheduling.x-k8s.io/pod-group"])"')" "scheduler-plugins-scheduler tf" "scheduler and group of the pod"
    same "$(value pod tf-ps-0 .spec.schedulerName)" mine "a scheduler that the template names"
    want_event 60 tf SetPodTemplateSchedulerName
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":true}}}'
    want 60 $group tf .metadata.name ""
    want_pods 60 ""
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":false}}}'
    want 60 $group tf .spec.minMember 3
    # a completed replica is not re-created: a group that waited for it would never start again
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    running tf-ps-0 tf-worker-0 tf-worker-1
    succeeded tf-worker-1
    want 60 $group tf '.spec | "\(.minMember) \(.minResources.cpu)"' "2 1"
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":true}}}'
    want 60 $group tf .metadata.name ""
    set_job tfjob tf '{"spec":{"runPolicy":{"suspend":false}}}'
    want_pods 60 "tf-ps-0 tf-worker-0"
    want 60 $group tf .spec.minMember 2 # after it was resumed
}
