# shellcheck shell=bash disable=SC2034 # read by those that source it
# Where things are, and the names, addresses and ports of an instance. Sourced by cluster.sh.
CACHE=${TRAINYARD_CACHE:-${HOME:-/root}/.cache/trainyard}/cluster
BIN=$CACHE/bin
INSTANCE=${TRAINYARD_CLUSTER:-main}
RUN=$CACHE/run/$INSTANCE # state, sockets, logs, process ids
PKI=$RUN/pki

NODE=node1
BRIDGE=trainyard0
GATEWAY=10.188.0.1 # of a real node: its bridge, its kubelet, the API server and the DNS server
POD_CIDR=10.188.0.0/16
FAKE_CIDR=10.189.0.0/16 # addresses of pods on fake nodes; no process answers there
SERVICE_CIDR=10.96.0.0/16
SOCKET=$RUN/containerd.sock

fail() { echo "cluster.sh: $*" >&2; exit 1; }
skip() { echo "SKIP $*"; exit 77; }
[[ $INSTANCE =~ ^[a-z0-9][a-z0-9-]{0,30}$ ]] || fail "TRAINYARD_CLUSTER='$INSTANCE' is not a name of a-z, 0-9 and -"

# Another cluster, which these scripts neither start nor stop.
FOREIGN=${KUBECONFIG_TEST:-}
[ -n "$FOREIGN" ] || [ "${TRAINYARD_USE_KUBECONFIG:-0}" = 0 ] || FOREIGN=${KUBECONFIG:?TRAINYARD_USE_KUBECONFIG needs KUBECONFIG}
KUBECONFIG=${FOREIGN:-$RUN/admin.kubeconfig}
PATH=$BIN:$PATH
export KUBECONFIG PATH

block_taken() { # FIRST: another instance has it, or a process listens at one of the first six (0A is LISTEN)
    local ports
    ! grep -qsx "$1" "$CACHE"/run/*/ports || return 0
    printf -v ports '%04X|' "$1" $(($1 + 1)) $(($1 + 2)) $(($1 + 3)) $(($1 + 4)) $(($1 + 5))
    # grep reads all lines: a closed pipe must not end awk.
    awk '$4 == "0A" {print $2}' /proc/net/tcp /proc/net/tcp6 | grep -E ":(${ports%|})\$" >/dev/null
}

# Sets PORT_*: a block of ten ports that is this instance's for as long as its folder exists. The search begins at a hash
# of the name, below the ports of tests (11000) and of `trainyard run` (15000): a server that is down keeps its own.
choose_ports() {
    local first
    if [ ! -s "$RUN/ports" ]; then
        exec 9>"$CACHE/ports.lock"
        flock 9
        first=$((5000 + $(cksum <<<"$INSTANCE" | cut -d' ' -f1) % 600 * 10))
        while block_taken "$first"; do first=$((5000 + (first - 5000 + 10) % 6000)); done
        echo "$first" >"$RUN/ports"
        exec 9>&-
    fi
    first=$(cat "$RUN/ports")
    PORT_API=$first PORT_ETCD=$((first + 1)) PORT_ETCD_PEER=$((first + 2))
    PORT_CONTROLLERS=$((first + 3)) PORT_SCHEDULER=$((first + 4)) PORT_KWOK=$((first + 5))
}
