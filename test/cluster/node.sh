# shellcheck shell=bash
# The real node: bridge, containerd, kubelet, kube-proxy, DNS. A machine has one at a time, since kube-proxy's rules
# have fixed names. Sourced by cluster.sh.
OWNER=$CACHE/node # holds the name of the instance whose node it is

node_possible() {
    local other
    [ "$(id -u)" = 0 ] || skip "a real node needs root: containers, a bridge, packet filter rules"
    "$HERE/../../make/deps.sh" --cluster
    other=$(cat "$OWNER" 2>/dev/null || true)
    if [ -n "$other" ] && [ "$other" != "$INSTANCE" ]; then
        [ ! -d "$CACHE/run/$other" ] || fail "instance $other has the real node; TRAINYARD_CLUSTER=$other $0 down"
    elif [ -z "$other" ] && iptables -S KUBE-SERVICES >/dev/null 2>&1; then
        skip "this machine is a node of another Kubernetes"
    fi
}

forward_rule() { iptables "$1" FORWARD -i "$BRIDGE" ! -o "$BRIDGE" -j DROP; }

# Created before the first pod, so that the servers can bind to its address. Pods reach the node and each other, nothing
# outside.
make_bridge() {
    echo "$INSTANCE" >"$OWNER"
    sysctl -n net.ipv4.ip_forward >"$RUN/ip_forward"
    ip link show "$BRIDGE" >/dev/null 2>&1 || ip link add "$BRIDGE" type bridge
    ip addr replace "$GATEWAY/16" dev "$BRIDGE"
    ip link set "$BRIDGE" up
    sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
    forward_rule -C 2>/dev/null || forward_rule -I
}

start_node() {
    local file
    mkdir -p "$RUN/cni"
    for file in cni.conflist Corefile containerd.toml kubelet.yaml proxy.yaml; do fill "$file"; done
    mv "$RUN/cni.conflist" "$RUN/cni/10-bridge.conflist"
    start containerd containerd --config "$RUN/containerd.toml"
    start coredns coredns -conf "$RUN/Corefile"
    start kube-proxy kube-proxy --config="$RUN/proxy.yaml"
    until_ok 240 containers version
    import_images pause debian
    start kubelet kubelet --config="$RUN/kubelet.yaml" --kubeconfig="$PKI/node.kubeconfig" \
        --root-dir="$RUN/kubelet" --cert-dir="$RUN/kubelet-pki" --hostname-override="$NODE" --node-ip="$GATEWAY"
    until_ok 240 kubectl get node "$NODE"
    until_ok 240 node_ready
}

node_ready() { [ "$(kubectl get node "$NODE" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = True ]; }

containers() { timeout "${CTR_SECONDS:-60}" ctr -a "$SOCKET" -n k8s.io "$@"; }

remove_containers() {
    local id
    for id in $(containers task ls -q); do containers task kill -s KILL "$id"; done
    for id in $(containers task ls -q); do containers task rm -f "$id"; done
    for id in $(containers container ls -q); do containers container rm "$id"; done
}

# Container processes that nothing manages any more: their root is an overlay of folders of this instance.
kill_orphans() {
    local process
    for process in /proc/[0-9]*; do
        ! awk -v folder="=$RUN/containerd" '$5 == "/" && index($0, folder) {found = 1} END {exit !found}' "$process/mountinfo" \
            2>/dev/null || kill -KILL "${process#/proc/}" 2>/dev/null || true
    done
}

unmount_all() {
    awk -v folder="$RUN/" 'index($2, folder) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l
}

# kubelet's rules in the packet filter: chains of fixed names.
remove_kubelet_chains() { # iptables or ip6tables
    local table
    for table in filter nat mangle; do
        "$1" -t "$table" -D INPUT -j KUBE-FIREWALL
        "$1" -t "$table" -D OUTPUT -j KUBE-FIREWALL
        "$1" -t "$table" -F KUBE-FIREWALL
        "$1" -t "$table" -X KUBE-FIREWALL
        "$1" -t "$table" -X KUBE-KUBELET-CANARY
        "$1" -t "$table" -X KUBE-PROXY-CANARY
        "$1" -t "$table" -X KUBE-IPTABLES-HINT
    done >/dev/null 2>&1 || true
}

remove_network() {
    local namespace
    for namespace in $(ip -o link show master "$BRIDGE" 2>/dev/null | grep -o 'link-netns [^ ]*' | cut -d' ' -f2); do
        ip netns del "$namespace" || true
    done
    kube-proxy --cleanup >/dev/null 2>&1 || true
    remove_kubelet_chains iptables
    remove_kubelet_chains ip6tables
    forward_rule -D 2>/dev/null || true
    ip link del "$BRIDGE" 2>/dev/null || true
    rm -rf "$RUN/addresses"
    [ ! -s "$RUN/ip_forward" ] || sysctl -qw net.ipv4.ip_forward="$(cat "$RUN/ip_forward")"
}

# Files outside our folder, which runc, CNI and kubelet keep at fixed paths.
remove_traces() {
    local id
    find "$RUN/containerd/io.containerd.grpc.v1.cri/sandboxes" -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null |
        while read -r id; do rm -f "/var/lib/cni/results/"*"-$id-"*; done || true # no such folder: nothing has run yet
    rm -f /var/lib/cni/results/trainyard-* /var/lib/kubelet/device-plugins/kubelet.sock
    find /var/log/containers -lname "$RUN/*" -delete 2>/dev/null || true
    find /sys/fs/cgroup/*/k8s.io /sys/fs/cgroup/k8s.io /var/log/containers /run/containerd /var/lib/kubelet /var/lib/cni \
        -depth -type d -empty -delete 2>/dev/null || true
    find /sys/fs/cgroup/*/k8s.io /sys/fs/cgroup/k8s.io -depth -type d -exec rmdir {} + 2>/dev/null || true
}

stop_node() {
    [ "$(cat "$OWNER" 2>/dev/null)" = "$INSTANCE" ] || return 0
    stop kubelet
    stop kube-proxy
    stop coredns 1
    running containerd && remove_containers >/dev/null 2>&1 || true
    stop containerd
    kill_orphans
    stop_marked
    unmount_all
    remove_network
    remove_traces
    rm -f "$OWNER"
}

# local_pv NAME SIZE [ACCESS-MODE]...: a volume of StorageClass local. Only root has access to its folder (0770);
# kubelet gives access to the fsGroup of the pod that mounts it.
local_pv() {
    local name=${1:?a name} size=${2:?a size, such as 100Mi} folder=$RUN/volumes/$1 modes=ReadWriteOnce
    [ "$(cat "$RUN/kind" 2>/dev/null)" = node ] || fail "a local volume needs the real node"
    [ $# -le 2 ] || modes=$(tr ' ' , <<<"${*:3}")
    mkdir -p "$folder"
    chmod 0770 "$folder"
    kubectl apply -f - <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: $name}
spec:
  capacity: {storage: $size}
  accessModes: [$modes]
  storageClassName: local
  persistentVolumeReclaimPolicy: Retain
  local: {path: $folder}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$NODE]}]}]}
END
}
