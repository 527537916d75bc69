# shellcheck shell=bash
# The programs of the cluster, from Go modules. Two binaries hold several programs each, chosen by the name they are
# called by, because linking once saves half of the build. Sourced by cluster.sh. Each program NAME has a file
# NAME.inputs, a hash of its inputs; when that is unchanged nothing is built.
TRAINING_OPERATOR=github.com/kubeflow/training-operator/cmd/training-operator.v1@v1.9.3

links() { # PROGRAM NAME...
    local program=$1 name
    shift
    for name; do ln -sf "$program" "$BIN/$name"; done
}

build_kube() {
    local version minor package=k8s.io/component-base/version
    version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "$HERE/kubernetes/go.mod")
    minor=${version#v1.}
    (cd "$HERE/kubernetes" && go build -trimpath -o "$BIN/kube.new" -ldflags "-s -w -X $package.gitVersion=$version \
        -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean" .)
    mv "$BIN/kube.new" "$BIN/kube"
    links kube etcd kubectl kubelet kube-apiserver kube-controller-manager kube-scheduler kube-proxy
}

build_addons() {
    (cd "$HERE/addons" && go build -trimpath -ldflags '-s -w' -o "$BIN/addons.new" .)
    mv "$BIN/addons.new" "$BIN/addons"
    links addons coredns helm kwok
}

# The peer of the benchmark, with the dependencies of its own go.mod: the program as released.
build_training-operator() { GOBIN=$BIN go install -trimpath -ldflags '-s -w' "$TRAINING_OPERATOR"; }

inputs_of() { # PART
    case $1 in
    kube) cat "$HERE"/kubernetes/{go.mod,go.sum,main.go} ;;
    addons) cat "$HERE"/addons/{go.mod,go.sum,main.go} ;;
    training-operator) echo "$TRAINING_OPERATOR" ;;
    *) fail "no such program: $1 (there are kube, addons, training-operator)" ;;
    esac | sha256sum | cut -d' ' -f1
}

# build_parts PART...: those that are missing or old; all without arguments. Only one build runs at a time.
build_parts() {
    local part inputs started
    [ $# -gt 0 ] || set -- kube addons training-operator
    mkdir -p "$BIN"
    exec 8>"$CACHE/build.lock"
    flock 8
    for part; do
        inputs=$(inputs_of "$part")
        [ "$(cat "$BIN/$part.inputs" 2>/dev/null)" != "$inputs" ] || continue
        command -v go >/dev/null || skip "the cluster's programs cannot be built: there is no Go"
        started=$SECONDS
        echo "building $part for the test cluster (minutes, the first time only)"
        CGO_ENABLED=0 GOFLAGS=-buildvcs=false "build_$part"
        echo "$inputs" >"$BIN/$part.inputs"
        echo "built $part in $((SECONDS - started)) s"
    done
    exec 8>&-
}
