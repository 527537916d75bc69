# The content of a job's status, and the clock of its times. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of the libraries

# Another controller's condition, written before the operator writes again, and between two of its writes.
test_status_conditions_of_others() {
    begin
    tfjob tf '' Worker=1 | k apply -f - >/dev/null
    want_pods 60 tf-worker-0
    want_condition 60 tfjob tf Created "True TFJobCreated"
    add_condition QuotaReserved
    running tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
    add_condition Admitted
    succeeded tf-worker-0
    want_condition 60 tfjob tf Succeeded "True TFJobSucceeded"
    same "$(value tfjob tf '[.status.conditions[] | select(.reason == "Theirs") | .type] | sort | join(" ")')" "Admitted QuotaReserved" "conditions of others"
    same "$(value tfjob tf '.status.conditions[-1].type')" Succeeded "the last condition"
}
add_condition() { # TYPE
    k patch tfjob tf --subresource=status --type=json -p "[{\"op\":\"add\",\"path\":\"/status/conditions/-\",
        \"value\":{\"type\":\"$1\",\"status\":\"True\",\"reason\":\"Theirs\",\"message\":\"m\",\"lastTransitionTime\":\"$(now)\"}}]" >/dev/null || problem "no condition $1"
}

test_status_template_warnings() {
    begin
    tfjob tf '' Worker=1 | sed 's/image: example/resource: {limits: {cpu: 1}}, image: example/' | k apply -f - >/dev/null
    want_pods 60 tf-worker-0
    want_event 60 tf PodTemplateWarning 'pod tf-worker-0: unknown field "spec.containers\[0\].resource"'
    never_failed tfjob tf
}

# The operator's clock is 130 s fast. A pod keeps its grace, and the job's times are the API server's.
test_status_by_the_clock_of_the_api_server() {
    local preload=$dir/other_clock.so
    "${CC:-cc}" -shared -fPIC -O1 -o "$preload" "$root/test/integration/other_clock.c" || { problem "no wrong clock"; return; }
    echo 130 >"$dir/fast"
    local -x OTHER_CLOCK=$dir/fast # in the operator's environment
    begin --force-delete-seconds 2
    sed 's/Worker: {replicas: 2}/Worker: {replicas: 2, template: {spec: {terminationGracePeriodSeconds: 50}}}/' "$root/deploy/examples/digits.yaml" | k apply -f - >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    running digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1
    want_condition 60 trainjob digits Running "True TrainJobRunning"
    at_most "$(value trainjob digits '.status.startTime | fromdate')" "$(date +%s)" "its start by the API server's clock" # not in the future
    local uid
    uid=$(uid_of pod digits-worker-1)
    bind_to_node digits-worker-1
    k delete pod digits-worker-1 --wait=false >/dev/null
    want_condition 60 trainjob digits Restarting "True TrainJobRestarting" # it has seen the deletion
    same "$(uid_of pod digits-worker-1)" "$uid" "the pod within its grace"
    same "$(events_count digits NodeLost)" 0 "NodeLost events"
}
