# TFJobs: their pods and environment, and how they end. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of the libraries
test_tfjob_names_labels_owner() {
    begin
    tfjob tf '' Chief=1 PS=1 Worker=2 | k apply -f - >/dev/null
    want_pods 60 "tf-chief-0 tf-ps-0 tf-worker-0 tf-worker-1"
    want_services 60 "tf-chief-0 tf-ps-0 tf-worker-0 tf-worker-1"
    local labels='{"training.kubeflow.org/job-name":"tf","training.kubeflow.org/operator-name":"tfjob-controller","training.kubeflow.org/replica-index":"1","training.kubeflow.org/replica-type":"worker"}'
    is pod tf-worker-1 '.metadata.labels | tojson' "$labels" || problem "labels: $(value pod tf-worker-1 '.metadata.labels | tojson')"
    is service tf-worker-1 '.metadata.labels | tojson' "$labels" || problem "service labels: $(value service tf-worker-1 '.metadata.labels | tojson')"
    is pod tf-chief-0 '.metadata.labels["training.kubeflow.org/job-role"]' master || problem "the chief has no job-role"
    local uid
    uid=$(value tfjob tf .metadata.uid)
    is pod tf-ps-0 '.metadata.ownerReferences | tojson' "[{\"apiVersion\":\"kubeflow.org/v1\",\"blockOwnerDeletion\":true,\"controller\":true,\"kind\":\"TFJob\",\"name\":\"tf\",\"uid\":\"$uid\"}]" ||
        problem "owner: $(value pod tf-ps-0 '.metadata.ownerReferences | tojson')"
    is service tf-ps-0 '.spec.clusterIP' None || problem "the service is not headless"
    is pod tf-worker-0 '.spec.containers[0].ports | tojson' '[{"containerPort":2222,"name":"tfjob-port","protocol":"TCP"}]' || problem "ports"
    is pod tf-worker-0 '.spec.containers[0].env | map(select(.name == "TF_CONFIG")) | .[0].value' \
        "{\"cluster\":{\"chief\":[\"tf-chief-0.$ns.svc:2222\"],\"ps\":[\"tf-ps-0.$ns.svc:2222\"],\"worker\":[\"tf-worker-0.$ns.svc:2222\",\"tf-worker-1.$ns.svc:2222\"]},\"task\":{\"type\":\"worker\",\"index\":0},\"environment\":\"cloud\"}" ||
        problem "TF_CONFIG: $(value pod tf-worker-0 '.spec.containers[0].env')"
    is pod tf-worker-0 '.spec.containers[0].env | map(select(.name == "WORKER_HOSTS")) | .[0].value' "tf-worker-0.$ns.svc:2222,tf-worker-1.$ns.svc:2222" || problem "WORKER_HOSTS"
    want_condition 60 tfjob tf Created "True TFJobCreated"
    want_event 60 tf SuccessfulCreatePod 'Created pod'
    want_event 60 tf SuccessfulCreateService
}

test_tfjob_one_worker_has_no_tf_config() {
    begin
    tfjob one '' worker=1 | k apply -f - >/dev/null
    want_pods 60 "one-worker-0"
    is pod one-worker-0 '.spec.containers[0].env // [] | map(select(.name == "TF_CONFIG")) | length' 0 || problem "it has TF_CONFIG"
}

test_tfjob_life() {
    begin
    tfjob tf '' Chief=1 PS=1 Worker=1 | k apply -f - >/dev/null
    want_pods 60 "tf-chief-0 tf-ps-0 tf-worker-0"
    running tf-ps-0 tf-worker-0
    want 60 tfjob tf .status.replicaStatuses.Worker.active 1
    is tfjob tf '.status.conditions[-1].type' Created || problem "it runs before its chief"
    running tf-chief-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
    succeeded tf-chief-0
    want_condition 60 tfjob tf Succeeded "True TFJobSucceeded"
    want_condition 60 tfjob tf Running "False TFJobRunning"
    is tfjob tf '.status.completionTime | type' string || problem "no completionTime"
    [ "$(k get tfjobs --no-headers | awk '{print $1, $2}')" = "tf Succeeded" ] || problem "kubectl get: $(k get tfjobs --no-headers)"
    want_pods 1 "tf-chief-0 tf-ps-0 tf-worker-0" # cleanPodPolicy None
    want_event 60 tf TFJobSucceeded 'successfully completed'
}

test_tfjob_clean_policies() {
    begin
    tfjob all 'cleanPodPolicy: All' Chief=1 PS=1 Worker=1 | k apply -f - >/dev/null
    tfjob run 'cleanPodPolicy: Running' Chief=1 PS=1 Worker=1 | k apply -f - >/dev/null
    want_pods 60 "all-chief-0 all-ps-0 all-worker-0 run-chief-0 run-ps-0 run-worker-0"
    running all-chief-0 all-ps-0 all-worker-0 run-chief-0 run-ps-0 run-worker-0
    succeeded all-chief-0 run-worker-0 run-chief-0
    want_pods 60 "run-chief-0 run-worker-0"
    want 60 tfjob all .status.state Succeeded
    want_services 60 "run-chief-0 run-worker-0"
}

test_tfjob_exit_codes() {
    begin
    tfjob retry '' Worker=2:ExitCode PS=1:ExitCode | k apply -f - >/dev/null
    tfjob stop '' Worker=1:ExitCode PS=1:ExitCode | k apply -f - >/dev/null
    want_pods 60 "retry-ps-0 retry-worker-0 retry-worker-1 stop-ps-0 stop-worker-0"
    local uid
    uid=$(value pod retry-worker-1 .metadata.uid)
    running retry-ps-0 retry-worker-0 retry-worker-1 stop-ps-0 stop-worker-0
    failed retry-worker-1 137 OOMKilled
    failed stop-worker-0 2
    want_condition 60 tfjob stop Failed "True TFJobFailed"
    another_pod 60 retry-worker-1 "$uid"
    want 60 pod retry-worker-1 .status.phase Pending
    is tfjob retry '.status.conditions | map(select(.type == "Failed")) | length' 0 || problem "a retryable exit failed the job"
    running retry-worker-1
    want_condition 60 tfjob retry Running "True TFJobRunning"
}

test_tfjob_deleted_pod_is_no_failure() {
    begin
    tfjob tf '' Worker=2:OnFailure PS=1:OnFailure | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    running tf-ps-0 tf-worker-0 tf-worker-1
    want_condition 60 tfjob tf Running "True TFJobRunning"
    succeeded tf-worker-1
    want 60 tfjob tf .status.replicaStatuses.Worker.succeeded 1
    k delete pod tf-worker-0 tf-worker-1 --grace-period=0 --force >/dev/null 2>&1
    want_pods 60 "tf-ps-0 tf-worker-0" # the one that had succeeded is not run again
    is tfjob tf '.status.conditions | map(select(.type == "Failed")) | length' 0 || problem "a deleted pod failed the job"
    running tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
}

test_tfjob_deadline_and_ttl() {
    begin
    tfjob gone 'ttlSecondsAfterFinished: 2' Worker=1 | k apply -f - >/dev/null
    want_pods 60 gone-worker-0
    tfjob late 'activeDeadlineSeconds: 3, cleanPodPolicy: All' Worker=1 | k apply -f - >/dev/null
    want_event 60 late SuccessfulCreatePod # it may already be deleted
    succeeded gone-worker-0
    want_condition 60 tfjob late Failed "True TFJobFailed"
    local took
    took=$(value tfjob late '((.status.completionTime | fromdate) - (.status.startTime | fromdate))')
    at_least "$took" 3 "seconds to a deadline of 3"
    want 60 tfjob gone '.metadata.name' ""
    want_pods 60 "" # cleanPodPolicy All; the other job's pod was deleted with its owner
    want_event 60 gone SuccessfulDeleteJob "Deleted job: gone"
}

test_tfjob_suspend() {
    begin
    tfjob tf 'suspend: true' Worker=1 PS=1 | k apply -f - >/dev/null
    want_condition 60 tfjob tf Suspended "True TFJobSuspended"
    want_pods 1 ""
    k patch tfjob tf --type=merge -p '{"spec":{"runPolicy":{"suspend":false}}}' >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0"
    want_condition 60 tfjob tf Suspended "False TFJobResumed"
    running tf-ps-0 tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
    k patch tfjob tf --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}' >/dev/null
    want_pods 60 ""
    want_condition 60 tfjob tf Running "False TFJobSuspended"
    want_services 60 ""
}

# A typical manifest: keys in lower case, no port, no runPolicy, members of the template that the operator must not
# change.
test_tfjob_manifest_unchanged() {
    begin
    k apply -f - >/dev/null <<'END'
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dist-mnist, labels: {team: vision}}
spec:
  tfReplicaSpecs:
    ps:
      replicas: 1
      restartPolicy: OnFailure
      template: {metadata: {annotations: {sidecar.istio.io/inject: "false"}}, spec: {containers: [{name: tensorflow, image: example/mnist}]}}
    WORKER:
      replicas: 2
      template:
        metadata: {annotations: {sidecar.istio.io/inject: "false"}, labels: {mine: kept}}
        spec:
          restartPolicy: Always
          containers:
          - {name: helper, image: example/helper}
          - name: tensorflow
            image: example/mnist
            command: [python, /var/tf_mnist/mnist.py]
            args: ["--steps=10"]
            env: [{name: A, value: b}]
            volumeMounts: [{mountPath: /train, name: training}]
            resources: {limits: {cpu: 500m}}
          volumes: [{name: training, emptyDir: {}}]
END
    want_pods 60 "dist-mnist-ps-0 dist-mnist-worker-0 dist-mnist-worker-1"
    want_services 60 "dist-mnist-ps-0 dist-mnist-worker-0 dist-mnist-worker-1"
    is tfjob dist-mnist '.spec.tfReplicaSpecs | keys | join(" ")' "WORKER ps" || problem "the keys were changed"
    is tfjob dist-mnist '.spec.runPolicy.suspend // false' false || problem "it is suspended"
    local pod=dist-mnist-worker-1
    same "$(value pod $pod '.spec.containers | map(.name) | join(" ")')" "helper tensorflow" containers
    same "$(value pod $pod '.spec.containers[1] | [.command[], .args[]] | join(" ")')" "python /var/tf_mnist/mnist.py --steps=10" command
    same "$(value pod $pod '.spec.containers[1].resources | tojson')" '{"limits":{"cpu":"500m"},"requests":{"cpu":"500m"}}' resources
    same "$(value pod $pod '.spec.containers[1].volumeMounts[0].mountPath')" /train "the mount"
    same "$(value pod $pod '.spec.containers[1].ports[0] | "\(.name) \(.containerPort)"')" "tfjob-port 2222" "the port"
    same "$(value pod $pod .metadata.labels.mine)" kept "a label of the template"
    same "$(value pod $pod .metadata.labels.team)" null "a label of the job"
    same "$(value pod $pod '.metadata.annotations["sidecar.istio.io/inject"]')" false "an annotation of the template"
    same "$(value pod $pod .spec.restartPolicy)" Never "restartPolicy" # the replica's default counts, not the template's
    same "$(value pod dist-mnist-ps-0 .spec.restartPolicy)" OnFailure "the ps's restartPolicy"
    same "$(env_of $pod A 1)" b "its own variable"
    same "$(env_of $pod TF_CONFIG 0)" null "TF_CONFIG of another container"
    same "$(env_of $pod TF_CONFIG 1 | jq -r '.task | tojson')" '{"type":"worker","index":1}' "its task"
    same "$(value pod $pod '.metadata.labels["training.kubeflow.org/replica-type"]')" worker "replica-type"
    want_event 60 dist-mnist SetPodTemplateRestartPolicy
    same "$(value service $pod '.spec.selector | tojson')" "$(value pod $pod '.metadata.labels | del(.mine) | del(.["training.kubeflow.org/job-role"]) | tojson')" "the service's selector"
    k get tfjobs >"$dir/table"
    want_line '^NAME +STATE +AGE' "$dir/table"
}

test_tfjob_tf_config() {
    begin
    k apply -f - >/dev/null <<'END'
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: all}
spec:
  tfReplicaSpecs:
    Chief: {template: {spec: {containers: [{name: tensorflow, image: i, ports: [{name: tfjob-port, containerPort: 3000}]}]}}}
    PS: {template: {spec: {containers: [{name: tensorflow, image: i, ports: [{name: web, containerPort: 80}]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}
    Evaluator: {template: {spec: {containers: [{name: tensorflow, image: i}]}}}
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dyn}
spec:
  enableDynamicWorker: true
  tfReplicaSpecs:
    PS: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}
END
    want_pods 60 "all-chief-0 all-evaluator-0 all-ps-0 all-worker-0 all-worker-1 dyn-ps-0 dyn-ps-1 dyn-worker-0 dyn-worker-1"
    want_services 60 "all-chief-0 all-evaluator-0 all-ps-0 all-worker-0 all-worker-1 dyn-ps-0 dyn-ps-1 dyn-worker-0 dyn-worker-1"
    local cluster="{\"chief\":[\"all-chief-0.$ns.svc:3000\"],\"evaluator\":[\"all-evaluator-0.$ns.svc:2222\"],\"ps\":[\"all-ps-0.$ns.svc:2222\"],\"worker\":[\"all-worker-0.$ns.svc:2222\",\"all-worker-1.$ns.svc:2222\"]}"
    local role
    for role in chief ps evaluator; do
        same "$(env_of all-$role-0 TF_CONFIG)" "{\"cluster\":$cluster,\"task\":{\"type\":\"$role\",\"index\":0},\"environment\":\"cloud\"}" "TF_CONFIG of the $role"
    done
    same "$(env_of all-worker-1 TF_CONFIG)" "{\"cluster\":$cluster,\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}" "TF_CONFIG of worker 1"
    same "$(value service all-chief-0 '.spec.ports | map("\(.name) \(.port)") | join(",")')" "tfjob-port 3000" "the chief's port"
    same "$(value service all-ps-0 '.spec.ports | map("\(.name) \(.port)") | sort | join(",")')" "tfjob-port 2222,web 80" "the ps's ports"
    same "$(env_of all-chief-0 PS_HOSTS)" "all-ps-0.$ns.svc:2222" PS_HOSTS
    same "$(env_of all-worker-1 JOB_NAME) $(env_of all-worker-1 TASK_INDEX)" "worker 1" "JOB_NAME and TASK_INDEX"
    same "$(env_of dyn-worker-1 TF_CONFIG)" "{\"cluster\":{\"worker\":{\"1\":\"dyn-worker-1.$ns.svc:2222\"},\"ps\":[\"dyn-ps-0.$ns.svc:2222\",\"dyn-ps-1.$ns.svc:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1}}" "a dynamic worker's TF_CONFIG"
    same "$(env_of dyn-ps-0 TF_CONFIG | jq -r '.task | tojson')" '{"type":"ps","index":0}' "a dynamic job's ps"
    # The last ps must find itself in the list that it is given.
    same "$(env_of dyn-ps-1 TF_CONFIG | jq -r '.cluster.ps[.task.index]')" "dyn-ps-1.$ns.svc:2222" "the place of ps 1 in its own list"
}

test_tfjob_cluster_domain() {
    new_namespace tfjob-cluster-domain
    CUSTOM_CLUSTER_DOMAIN=cluster.local own_operator
    tfjob tf '' PS=1 Worker=1 | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0"
    same "$(env_of tf-ps-0 TF_CONFIG)" "{\"cluster\":{\"ps\":[\"tf-ps-0.$ns.svc.cluster.local:2222\"],\"worker\":[\"tf-worker-0.$ns.svc.cluster.local:2222\"]},\"task\":{\"type\":\"ps\",\"index\":0},\"environment\":\"cloud\"}" TF_CONFIG
}

test_tfjob_who_decides_success() {
    begin
    { tfjob first '' Worker=2; echo ---; tfjob every '' Worker=2 | sed 's/^spec:/spec:\n  successPolicy: AllWorkers/'; echo ---; tfjob chief '' Chief=1 Worker=1; } | k apply -f - >/dev/null
    want_pods 60 "chief-chief-0 chief-worker-0 every-worker-0 every-worker-1 first-worker-0 first-worker-1"
    running chief-chief-0 every-worker-1 first-worker-1
    succeeded first-worker-0 every-worker-0 chief-worker-0
    want_condition 60 tfjob first Succeeded "True TFJobSucceeded"
    want 60 tfjob every .status.replicaStatuses.Worker.succeeded 1
    want 60 tfjob chief .status.replicaStatuses.Worker.succeeded 1
    same "$(condition tfjob every Succeeded)" "null null" "success of a job of which one worker of two has succeeded"
    same "$(condition tfjob chief Succeeded)" "null null" "success of a job whose chief runs"
    succeeded every-worker-1
    want_condition 60 tfjob every Succeeded "True TFJobSucceeded"
    k delete pod chief-worker-0 --grace-period=0 --force >/dev/null 2>&1 # its work is complete
    succeeded chief-chief-0
    want_condition 60 tfjob chief Succeeded "True TFJobSucceeded"
    want_pods 60 "chief-chief-0 every-worker-0 every-worker-1 first-worker-0 first-worker-1"
}

# cleanPodPolicy when the job fails: by a replica, by its deadline, by backoffLimit.
test_tfjob_clean_policies_of_failures() {
    begin
    local policy names=''
    for policy in None Running All; do
        local p=${policy,,}
        { tfjob "$p-exit" "cleanPodPolicy: $policy" Worker=2; echo ---
          tfjob "$p-late" "cleanPodPolicy: $policy" Worker=1; echo ---
          tfjob "$p-back" "cleanPodPolicy: $policy, backoffLimit: 0" Worker=1:OnFailure; } | k apply -f - >/dev/null
        names+="$p-back-worker-0 $p-exit-worker-0 $p-exit-worker-1 $p-late-worker-0 "
    done
    want_pods 60 "$(tr ' ' '\n' <<<"${names% }" | sort | tr '\n' ' ' | sed 's/ $//')"
    for policy in none running all; do
        running $policy-exit-worker-1
        failed $policy-exit-worker-0 1
        restarted $policy-back-worker-0 1
        set_job tfjob $policy-late '{"spec":{"runPolicy":{"activeDeadlineSeconds":1}}}' # now that its pod was seen
    done
    for policy in none running all; do
        want_condition 60 tfjob $policy-exit Failed "True TFJobFailed"
        want_condition 60 tfjob $policy-back Failed "True TFJobFailed"
        want_condition 60 tfjob $policy-late Failed "True TFJobFailed"
    done
    same "$(value tfjob all-back '.status.conditions[-1].message')" "Job all-back has failed because it has reached the specified backoff limit" "the message"
    same "$(value tfjob all-late '.status.conditions[-1].message')" "Job all-late has failed because it was active longer than specified deadline" "the message"
    same "$(value tfjob all-exit '.status.conditions[-1].message')" "TFJob $ns/all-exit has failed because 1 Worker replica(s) failed." "the message"
    want_pods 60 "none-back-worker-0 none-exit-worker-0 none-exit-worker-1 none-late-worker-0 running-exit-worker-0"
    want_services 60 "none-back-worker-0 none-exit-worker-0 none-exit-worker-1 none-late-worker-0 running-exit-worker-0"
}

# More workers by an edit or by kubectl scale, fewer, and which of them remain.
test_tfjob_scaled() {
    begin
    tfjob tf '' Worker=1:OnFailure PS=1:OnFailure | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0"
    k scale tfjob/tf --replicas=3 >/dev/null || problem "kubectl scale"
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1 tf-worker-2"
    set_job tfjob tf '{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2}}}}'
    want_pods 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    want_services 60 "tf-ps-0 tf-worker-0 tf-worker-1"
    never_failed tfjob tf
}

# Another owner's pod has the name of one of ours.
test_tfjob_foreign_pod() {
    begin
    k apply -f - >/dev/null <<'END'
apiVersion: v1
kind: Pod
metadata: {name: tf-worker-0}
spec: {containers: [{name: c, image: i}]}
END
    tfjob tf '' PS=1 Worker=1 | k apply -f - >/dev/null
    want_event 60 tf FailedCreatePod
    want_pods 60 "tf-ps-0 tf-worker-0"
    local uid
    uid=$(uid_of pod tf-worker-0)
    same "$(value pod tf-worker-0 '.metadata.ownerReferences')" null "the owner of a foreign pod"
    k delete pod tf-worker-0 --grace-period=0 --force >/dev/null 2>&1
    at_most "$(events_count tf FailedCreatePod)" 6 "events about the foreign pod"
    another_pod 120 tf-worker-0 "$uid" # it is retried with growing delays
    same "$(value pod tf-worker-0 '.metadata.ownerReferences[0].uid')" "$(uid_of tfjob tf)" "the owner"
}

# A pod that the API server refuses: its conditions are those of training-operator, and the latest one has the reason
# for waiting.
test_tfjob_refused_pod() {
    begin
    may_be_forbidden=1 # that is what it is about
    tfjob tf '' Worker=1 | sed 's/spec: {containers/spec: {serviceAccountName: trainer, containers/' | k apply -f - >/dev/null
    want_event 60 tf FailedCreatePod 'Error creating: pods "tf-worker-0" is forbidden: .*serviceaccount "trainer" not found'
    want 60 tfjob tf '.status.conditions | map(.type) | join(" ")' Created
    want 60 tfjob tf '.status.conditions[0].message | test("^TFJob tf is created. Waiting for pod tf-worker-0: pods .* serviceaccount .trainer. not found$")' true
    k create serviceaccount trainer >/dev/null
    want_pods 180 tf-worker-0
    running tf-worker-0
    want_condition 60 tfjob tf Running "True TFJobRunning"
    same "$(value tfjob tf '.status.conditions[0].message')" "TFJob tf is created." "the first condition"
}

# One of our pods whose owner was removed is adopted, not re-created.
test_tfjob_orphan_is_adopted() {
    begin
    tfjob tf '' PS=1 Worker=1 | k apply -f - >/dev/null
    want_pods 60 "tf-ps-0 tf-worker-0"
    stop_operator
    local uid
    uid=$(uid_of pod tf-worker-0)
    k patch pod tf-worker-0 --type=json -p '[{"op":"remove","path":"/metadata/ownerReferences"}]' >/dev/null
    own_operator
    want 60 pod tf-worker-0 '.metadata.ownerReferences[0] | "\(.uid) \(.controller) \(.blockOwnerDeletion)"' "$(uid_of tfjob tf) true true"
    same "$(uid_of pod tf-worker-0)" "$uid" "the pod's uid"
}

# The job ended while no operator ran, and one of its pods was deleted: its service is deleted nevertheless.
test_tfjob_orphan_service() {
    begin
    tfjob tf 'cleanPodPolicy: All' Chief=1 Worker=1 | k apply -f - >/dev/null
    want_pods 60 "tf-chief-0 tf-worker-0"
    want_services 60 "tf-chief-0 tf-worker-0"
    stop_operator -KILL
    k delete pod tf-worker-0 --grace-period=0 --force >/dev/null 2>&1
    succeeded tf-chief-0
    own_operator
    want_condition 60 tfjob tf Succeeded "True TFJobSucceeded"
    want_services 60 ""
    want_pods 60 ""
}
