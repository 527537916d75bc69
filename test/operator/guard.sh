# A training-operator in the same cluster: it controls the TFJobs until it is removed; then its pods are adopted. Alone,
# because every operator of the cluster sees the objects that represent it.
# shellcheck shell=bash disable=SC2154 # variables of the libraries
other=1ca428e5.training-operator.kubeflow.org

other_lease() {
    k apply -f - >/dev/null <<END
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: $other}
spec: {holderIdentity: training-operator-0_1, leaseDurationSeconds: 120, renewTime: "$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)"}
END
}
renew_lease() { # SECONDS for which it is valid from now on
    k patch lease $other --type=merge -p "{\"spec\":{\"leaseDurationSeconds\":$1,\"renewTime\":\"$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)\"}}" >/dev/null
}
keep_lease() { # until $dir/stop exists: then for 4 s more
    while [ ! -e "$dir/stop" ]; do
        renew_lease 120
        sleep 0.5
    done
    renew_lease 4
}
begin_as_pod() { # the operator knows its pod and records events about it
    new_namespace "${FUNCNAME[1]#*_}"
    k run operator --image=i >/dev/null
    POD_NAME=operator POD_NAMESPACE=$ns POD_UID=$(uid_of pod operator) own_operator
}
# A replica's pod as training-operator 1.9 creates it: names, labels and owner
their_pod() { # JOB UID TYPE INDEX
    local meta="{name: $1-$3-$4, labels: {training.kubeflow.org/job-name: $1, training.kubeflow.org/operator-name: tfjob-controller, training.kubeflow.org/replica-type: $3, training.kubeflow.org/replica-index: \"$4\"},
  ownerReferences: [{apiVersion: kubeflow.org/v1, kind: TFJob, name: $1, uid: $2, controller: true, blockOwnerDeletion: true}]}"
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: %s\nspec: {restartPolicy: Never, containers: [{name: tensorflow, image: i, ports: [{name: tfjob-port, containerPort: 2222}]}]}\n' "$meta"
    printf -- '---\napiVersion: v1\nkind: Service\nmetadata: %s\nspec: {clusterIP: None, ports: [{name: tfjob-port, port: 2222}], selector: {training.kubeflow.org/job-name: %s}}\n' "$meta" "$1"
}

alone_training_operator_leads_then_goes() {
    new_namespace guard-lease
    other_lease
    k run operator --image=i >/dev/null
    keep_lease &
    local keeper=$!
    POD_NAME=operator POD_NAMESPACE=$ns POD_UID=$(uid_of pod operator) own_operator
    wait_for 60 grep -q "TFJobs are ignored: training-operator holds its Lease $ns/$other" "$dir/operator.log"
    same "$(metric trainyard_operator_tfjob_controller_active)" 0 "the TFJob controller"
    want_event 60 operator TFJobControllerOff 'Remove training-operator'
    tfjob tf '' PS=1 Worker=2 | k apply -f - >/dev/null
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    local uid
    uid=$(uid_of tfjob tf)
    { their_pod tf "$uid" ps 0; their_pod tf "$uid" worker 0; their_pod tf "$uid" worker 1; } | k apply -f - >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 operator tf-ps-0 tf-worker-0 tf-worker-1"
    running tf-ps-0 tf-worker-0 tf-worker-1
    succeeded tf-worker-1
    same "$(value tfjob tf '.status // {} | length')" 0 "the status of a TFJob that is training-operator's"
    k get pods -l training.kubeflow.org/job-name=tf -o json | jq -r '.items[] | "\(.metadata.name) \(.metadata.uid)"' >"$dir/before"
    touch "$dir/stop"
    wait "$keeper"
    want_event 60 operator TFJobControllerOn 'TFJobs are managed'
    eventually 60 1 metric trainyard_operator_tfjob_controller_active
    want_condition 60 tfjob tf Running "True TFJobRunning"
    want 60 tfjob tf '.status.replicaStatuses.Worker | "\(.active) \(.succeeded)"' "1 1"
    k get pods -l training.kubeflow.org/job-name=tf -o json | jq -r '.items[] | "\(.metadata.name) \(.metadata.uid)"' >"$dir/after"
    cmp -s "$dir/before" "$dir/after" || problem "pods were made again: $(diff "$dir/before" "$dir/after")"
    same "$(metric 'training_operator_created_pods_total{framework="tensorflow"}')" 0 "pods that were made"
    k delete lease $other >/dev/null
}

alone_training_operators_webhook() {
    begin_as_pod
    tfjob tf '' Worker=1 | k apply -f - >/dev/null
    want_pods 60 "operator tf-worker-0"
    kubectl apply -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validator.training-operator.kubeflow.org}
webhooks: []
END
    want_event 60 operator TFJobControllerOff 'ValidatingWebhookConfiguration'
    same "$(metric trainyard_operator_tfjob_controller_active)" 0 "the TFJob controller"
    tfjob later '' Worker=1 | k apply -f - >/dev/null
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null # a later job, whose pods show that it had its turn
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 operator tf-worker-0"
    kubectl delete validatingwebhookconfiguration validator.training-operator.kubeflow.org >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 later-worker-0 operator tf-worker-0"
    same "$(metric trainyard_operator_tfjob_controller_active)" 1 "the TFJob controller"
}
