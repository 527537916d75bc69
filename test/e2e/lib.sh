# Sourced by the end-to-end tests: a real node with the images of the Dockerfile and the chart installed by helm.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the tests and of the libraries
# shellcheck source=../operator/lib.sh
export TRAINYARD_CLUSTER=${TRAINYARD_CLUSTER:-e2e}
. "$(dirname "${BASH_SOURCE[0]}")/../operator/lib.sh"
system=trainyard-system

node_up() {
    bring_up
    # The StorageClass of most clusters honours fsGroup; the default one here does not.
    kubectl annotate storageclass hostpath storageclass.kubernetes.io/is-default-class- >/dev/null
    kubectl annotate --overwrite storageclass local storageclass.kubernetes.io/is-default-class=true >/dev/null
    build_images >"$scratch/images.log" 2>&1 && return
    ! grep -qE "$no_network" "$scratch/images.log" || infrastructure "the images cannot be built" "$scratch/images.log"
    tail -n 40 "$scratch/images.log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
no_network='Unable to fetch|Failed to fetch|Could not resolve|Temporary failure|Connection (timed out|refused|reset)'
build_images() {
    "$cluster" images operator trainer && "$cluster" image trainyard/test-server:1 "$root/test/server"
}

chart_values=(--set trainjob.progressSeconds=1 --set image.pullPolicy=Never --set trainer.image.pullPolicy=Never)
# shellcheck disable=SC2120 # tests give arguments
helm_install() { # FURTHER-ARGUMENTS
    helm upgrade --install trainyard "$root/charts/trainyard" --namespace $system --create-namespace --wait --timeout 240s \
        "${chart_values[@]}" "$@" >"$dir/helm.out" 2>&1 || { problem "helm: $(tail -n 5 "$dir/helm.out")"; return 1; }
}
before_test() { # a test that runs alone, or again, has no operator from the first ones
    operator='' operators=() ns='' may_be_forbidden=''
    [[ $dir = */test_long_a* ]] || helm status trainyard -n $system >/dev/null 2>&1 || helm_install
}
after_test() { :; } # namespaces stay until the node goes
# What exists when a test has failed: in its namespace, and the operators' logs.
look_around() {
    [ -z "${ns:-}" ] || look_at_namespace
    kubectl -n $system get pods -o wide --no-headers
    operator_log --since=10m | tail -n 15
}
operator_log() { kubectl -n $system logs -l app.kubernetes.io/component=operator --tail=-1 --prefix "$@"; }

volume() { "$cluster" local-pv "pv-$RANDOM-$ns" 1Gi >/dev/null; } # one that a claim of this test can bind
# digits NAME EPOCHS [SED-EXPRESSION]: the example under another name, with more epochs, and a volume for it
digits() {
    volume
    sed -e "s/{name: digits}/{name: $1}/; s/{name: digits-out}/{name: $1-out}/; s/claimName: digits-out/claimName: $1-out/; s/epochs: 20/epochs: $2/" \
        -e "${3:-s/^/&/}" "$root/deploy/examples/digits.yaml"
}
step() { value trainjob "$1" '.status.progress.step // 0'; }
at_step() { [ "$(step "$1")" -ge "$2" ]; } # NAME STEP
phase() { value pod "$1" .status.phase; }
in_phase() { [ "$(phase "$1")" = "$2" ]; } # POD PHASE
uid() { value pod "$1" .metadata.uid; }
other_pod() { local now; now=$(uid "$1"); [ -n "$now" ] && [ "$now" != "$2" ]; } # POD UID: another pod has that name
want_success() { # SECONDS NAME
    k wait --for=condition=Succeeded "trainjob/$2" --timeout="$1s" >/dev/null 2>&1 ||
        problem "$2 has not succeeded: $(value trainjob "$2" '.status | tojson') $(k get pods --no-headers | tr '\n' ';')"
}
