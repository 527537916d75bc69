# Who may create a job: only users who may create its pods and other objects themselves (deploy/rbac/authors.yaml).
# Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of and for the libraries

# grant NAME VERBS RESOURCES: to the user author, in the test's namespace
grant() {
    k create role "$1" --verb="$2" --resource="$3" >/dev/null && k create rolebinding "$1" --role="$1" --user=author >/dev/null
}
as_author() { k "$@" --as=author >"$dir/out" 2>&1; }
author_may() { kubectl auth can-i -q "$1" "$2" -n "$ns" --as=author; } # VERB RESOURCE
refused() { # WORDS WHAT COMMAND...
    as_author "${@:3}" && { problem "$2 was accepted"; return; }
    want_line "$1" "$dir/out"
}
accepted() { as_author "${@:2}" || problem "$1 was refused: $(cat "$dir/out")"; } # WHAT COMMAND...
begin_authors() {
    new_namespace "${FUNCNAME[1]#*_}"
    grant jobs '*' trainjobs.trainyard.dev,tfjobs.kubeflow.org
    digits '' >"$dir/train.yaml"
    tfjob tf '' Worker=1 >"$dir/tf.yaml"
    wait_for 60 author_may create trainjobs.trainyard.dev
    # A policy takes effect a moment after the API server accepted it.
    wait_for 60 policy_is_active
}
policy_is_active() { ! as_author create --dry-run=server -f "$dir/train.yaml" && grep -q trainyard-authors "$dir/out"; }

test_authors_need_what_the_operator_creates() {
    begin_authors
    refused "user 'author' may not create pods in the namespace '$ns'" "a TrainJob without a right on pods" create -f "$dir/train.yaml"
    refused "user 'author' may not create pods in the namespace '$ns'" "a TFJob without a right on pods" create -f "$dir/tf.yaml"
    grant pods create pods
    wait_for 60 author_may create pods
    refused "may not create services" "a TFJob without a right on services" create -f "$dir/tf.yaml"
    grant services create services
    wait_for 60 author_may create services
    accepted "a TFJob" create -f "$dir/tf.yaml"
    refused "may not create configmaps" "a TrainJob without a right on ConfigMaps" create -f "$dir/train.yaml"
    grant configmaps create configmaps
    wait_for 60 author_may create configmaps
    accepted "a TrainJob" create -f "$dir/train.yaml"
    refused "may not create deployments" "TensorBoard without a right on Deployments" patch trainjob digits --type=merge -p '{"spec":{"tensorboard":{}}}'
    grant deployments create deployments.apps
    wait_for 60 author_may create deployments.apps
    accepted "TensorBoard" patch trainjob digits --type=merge -p '{"spec":{"tensorboard":{}}}'
}

# The template is as powerful as a new job. Labels and deletion create nothing, the operator writes only the status, and
# the garbage collector removes a finalizer.
test_authors_who_lost_the_right_cannot_change_the_spec() {
    begin_authors
    own_operator
    k create -f "$root/deploy/examples/digits.yaml" >/dev/null
    k create -f "$dir/tf.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1 tf-worker-0"
    want 60 trainjob digits .status.state Created
    refused "may not create pods" "a change of a TrainJob" patch trainjob digits --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}'
    refused "may not create pods" "a change of a TFJob" patch tfjob tf --type=json \
        -p '[{"op": "replace", "path": "/spec/tfReplicaSpecs/Worker/template/spec/containers/0/image", "value": "other"}]'
    accepted "a label" label trainjob digits a=b
    accepted "deletion" delete trainjob digits --cascade=foreground --wait=true --timeout=120s
    k get trainjob digits >"$dir/get" 2>&1 && problem "the job was not deleted"
}
