#!/bin/bash
# A real Kubernetes for the tests, built from Go modules and Debian packages. See README.md in this folder.
#
#   packages                       install the Debian packages a node needs (root)
#   build [kube|addons|training-operator]...   build the programs; does nothing when their inputs are unchanged
#   up [--control-plane]           start: a whole node, or only etcd, API server, controllers and scheduler
#   down [--purge]                 stop; --purge also deletes all state and files
#   status                         what runs; exit status 0 when the API server answers
#   env                            lines for eval: KUBECONFIG and PATH
#   kwok N                         N fake nodes, whose pods run and end by their annotations; 0 removes them
#   images [TARGET]...             make the base images, once, and targets of the Dockerfile: operator, trainer
#   image TAG CONTEXT [ARG]...     build TAG with buildah from a folder with a Dockerfile (ARGs are buildah's), import it
#                                  when the node runs
#   import                         import all images that were built into the running node
#   local-pv NAME SIZE [MODE]...   a PersistentVolume of class local, whose folder belongs to root (0770)
#   user NAME [GROUP]...           print a kubeconfig with a client certificate of that name
#   pid PART                       the process id of etcd, kube-apiserver, kubelet, ...
#   restart PART                   start a part again with the command line it had
#
# TRAINYARD_CLUSTER=NAME (default main) names the instance. Several control planes can run at the same time.
# KUBECONFIG_TEST=FILE, or KUBECONFIG=FILE with TRAINYARD_USE_KUBECONFIG=1, uses another cluster instead.
# Exit status 77: skipped, and the reason is printed.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/settings.sh"
. "$HERE/process.sh"
. "$HERE/build.sh"
. "$HERE/certificates.sh"
. "$HERE/control_plane.sh"
. "$HERE/images.sh"
. "$HERE/node.sh"

usage() { awk 'NR > 1 && /^#/ {print substr($0, 3); next} NR > 1 {exit}' "$HERE/cluster.sh"; }

command_up() {
    local kind=node
    [ "${1:-}" = --control-plane ] && kind=control-plane
    if [ -n "$FOREIGN" ]; then
        command -v kubectl >/dev/null || build_parts kube
        kubectl get --raw /readyz >/dev/null || fail "the cluster of $FOREIGN does not answer"
        echo "using the cluster of $FOREIGN"
        return
    fi
    if [ "$(cat "$RUN/kind" 2>/dev/null)" = "$kind" ] && all_run && api_ready; then
        echo "cluster $INSTANCE is up"
        return
    fi
    [ "$kind" = control-plane ] || node_possible
    build_parts kube
    [ "$kind" = control-plane ] || { build_parts addons; base_images; }
    stop_all # processes of a crashed run
    [ "$(cat "$RUN/kind" 2>/dev/null)" = "$kind" ] || rm -rf "$RUN"
    mkdir -p "$RUN"
    echo "$kind" >"$RUN/kind"
    start_control_plane
    [ "$kind" = control-plane ] || start_node
    echo "cluster $INSTANCE is up in $SECONDS s; eval \"\$(TRAINYARD_CLUSTER=$INSTANCE test/cluster/cluster.sh env)\""
}

command_down() {
    [ -z "$FOREIGN" ] || return 0
    [ "${1:-}" != --purge ] || remove_host_paths
    stop_all
    [ "${1:-}" != --purge ] || rm -rf "$RUN"
}

command_status() {
    local part
    if [ -z "$FOREIGN" ]; then
        [ -d "$RUN" ] || { echo "cluster $INSTANCE: not there"; return 1; }
        for part in $(parts_known); do
            printf '%-24s %s\n' "$part" "$(running "$part" && echo "runs, process $(cat "$RUN/$part.pid")" || echo stopped)"
        done
    fi
    api_ready || { echo "the API server does not answer"; return 1; }
    kubectl get nodes
}

command_env() {
    echo "export KUBECONFIG=$KUBECONFIG"
    echo "case :\$PATH: in *:$BIN:*) ;; *) export PATH=$BIN:\$PATH ;; esac"
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
packages) "$HERE/../../make/deps.sh" --cluster ;;
build) build_parts "$@" ;;
up) command_up "$@" ;;
down) command_down "$@" ;;
status) command_status ;;
env) command_env ;;
kwok) start_kwok "${1:-1}" ;;
images) base_images && project_images "$@" ;;
image) command_image "$@" ;;
import) import_all ;;
local-pv) local_pv "$@" ;;
user) user_kubeconfig "$@" ;;
pid) running "$1" && cat "$RUN/$1.pid" ;;
restart) restart "$1" ;;
help | --help) usage ;;
*) usage >&2; exit 2 ;;
esac
