# shellcheck shell=bash disable=SC2154 # variables of the libraries
# Specs that are large or expensive to validate.

# many_layers NAME COUNT KEY: a job whose model has so many layers without names; KEY: `layers`, or `keras` as Keras writes it
many_layers() {
    jq -nc --arg name "$1" --argjson count "$2" --arg key "$3" '
        def dense($x): [range($count) | $x];
        {apiVersion: "trainyard.dev/v1alpha1", kind: "TrainJob", metadata: {name: $name}, spec: {
            model: (if $key == "keras" then {keras: {class_name: "Sequential", config: {name: "s", layers:
                    ([{class_name: "InputLayer", config: {batch_shape: [null, 1]}}] + dense({class_name: "Dense", config: {units: 1}}))}}}
                else {inputShape: [1], layers: dense({Dense: {units: 1}})} end),
            compile: {loss: "mse"}, data: {train: {format: "idx", features: "x", labels: "y"}}, fit: {epochs: 1},
            runPolicy: {suspend: true}, replicaSpecs: {PS: {}, Worker: {}}}}'
}
cpu_ms() { awk -v tick="$(getconf CLK_TCK)" '{print int(($14 + $15) * 1000 / tick)}' "/proc/$1/stat"; } # PID

# Six jobs of 10,000 layers, and six with the allowed maximum: together they cost the operator less than a second of CPU
# time, the leader stays the leader, and a job that is created after them has its pods. The same holds after a restart.
test_spec_many_layers() {
    new_namespace spec_many_layers
    own_flags=(--namespace "$ns" --leader-election-id spec --leader-election-namespace "$ns")
    k create role lease --verb='*' --resource=leases.coordination.k8s.io >/dev/null
    k create rolebinding lease --role=lease --serviceaccount=trainyard-system:trainyard >/dev/null
    start_operator "${own_flags[@]}"
    want 60 lease spec '.spec.leaseTransitions // 0' 0
    local i spent before
    many_layers short 10000 layers >"$dir/short.json"
    k create -f "$dir/short.json" >"$dir/refused" 2>&1 && problem "the API server takes 10,000 layers"
    want_line 'spec.model.layers: Too many: .*at most 5000' "$dir/refused"
    before=$(cpu_ms "$operator")
    for i in 1 2 3 4 5 6; do
        many_layers "long-$i" 10000 keras | k create -f - >/dev/null || problem "long-$i is not taken"
        many_layers "most-$i" 5000 layers | k create -f - >/dev/null || problem "most-$i is not taken"
    done
    k create -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
    for i in 1 2 3 4 5 6; do
        want_condition 60 trainjob "long-$i" Failed "True InvalidSpec"
        want_condition 60 trainjob "most-$i" Suspended "True TrainJobSuspended"
    done
    value trainjob long-1 '.status.conditions | map(select(.type == "Failed"))[0].message' >"$dir/message"
    want_line 'more than 5000 layers' "$dir/message"
    spent=$(($(cpu_ms "$operator") - before))
    echo "    twelve jobs of 5,000 and 10,000 layers cost $spent ms of CPU time"
    at_most "$spent" 5000 "CPU time of the operator in ms"
    is lease spec '.spec.leaseTransitions // 0' 0 || problem "the leader changed before the crash"
    crash_operator
    want 60 lease spec '.spec.leaseTransitions // 0' 1
    is trainjob most-1 '.status.state' Suspended || problem "most-1 is $(value trainjob most-1 .status.state)"
    is trainjob long-1 '.status.state' Failed || problem "long-1 is $(value trainjob long-1 .status.state)"
    want_no_line 'lost|no longer lead' "$dir/operator.log"
}
