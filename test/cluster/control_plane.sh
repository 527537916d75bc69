# shellcheck shell=bash disable=SC2034 # API is read by certificates.sh
# etcd, API server, controllers, scheduler, and fake nodes. Sourced by cluster.sh.

api_ready() { kubectl get --raw /readyz >/dev/null 2>&1; }

fill() { # FILE of config/, to the instance's folder
    sed -e "s#@RUN@#$RUN#g; s#@PKI@#$PKI#g; s#@GATEWAY@#$GATEWAY#g; s#@BRIDGE@#$BRIDGE#g; s#@NODE@#$NODE#g" \
        -e "s#@POD_CIDR@#$POD_CIDR#g; s#@FIRST_POD@#${POD_CIDR%.0.0/16}.1.1#g" "$HERE/config/$1" >"$RUN/$1"
}

start_etcd() {
    start etcd etcd --name=etcd --data-dir="$RUN/etcd" --unsafe-no-fsync --quota-backend-bytes=6442450944 --log-level=warn \
        --listen-client-urls="http://127.0.0.1:$PORT_ETCD" --advertise-client-urls="http://127.0.0.1:$PORT_ETCD" \
        --listen-peer-urls="http://127.0.0.1:$PORT_ETCD_PEER" --initial-advertise-peer-urls="http://127.0.0.1:$PORT_ETCD_PEER" \
        --initial-cluster="etcd=http://127.0.0.1:$PORT_ETCD_PEER"
}

# On loopback the kubernetes Service gets no endpoint (reconciler none), because the API refuses loopback addresses
# there.
start_apiserver() { # ADDRESS RECONCILER
    # shellcheck disable=SC2086 # a list of words
    start kube-apiserver kube-apiserver --etcd-servers="http://127.0.0.1:$PORT_ETCD" --bind-address="$1" --advertise-address="$1" \
        --secure-port="$PORT_API" --endpoint-reconciler-type="$2" \
        --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
        --kubelet-client-certificate="$PKI/kubelet-client.crt" --kubelet-client-key="$PKI/kubelet-client.key" \
        --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
        --service-account-issuer=https://kubernetes.default.svc.cluster.local \
        --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" \
        --service-cluster-ip-range="$SERVICE_CIDR" --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction --allow-privileged=true --enable-aggregator-routing=true --event-ttl=1h \
        --audit-policy-file="$RUN/audit.yaml" --audit-log-path="$RUN/audit.log" --audit-log-maxsize=4096 ${APISERVER_FLAGS:-}
}

start_controllers() {
    start kube-controller-manager kube-controller-manager --kubeconfig="$PKI/kube-controller-manager.kubeconfig" \
        --authentication-kubeconfig="$PKI/kube-controller-manager.kubeconfig" \
        --authorization-kubeconfig="$PKI/kube-controller-manager.kubeconfig" \
        --bind-address=127.0.0.1 --secure-port="$PORT_CONTROLLERS" --leader-elect=false --use-service-account-credentials=true \
        --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key" \
        --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
        --enable-hostpath-provisioner=true --terminated-pod-gc-threshold=100000 \
        --node-monitor-grace-period="${NODE_GRACE:-20s}" --kube-api-qps=500 --kube-api-burst=1000
    start kube-scheduler kube-scheduler --config="$RUN/scheduler.yaml" --bind-address=127.0.0.1 --secure-port="$PORT_SCHEDULER" \
        --authentication-kubeconfig="$PKI/kube-scheduler.kubeconfig" --authorization-kubeconfig="$PKI/kube-scheduler.kubeconfig"
}

start_control_plane() {
    local address=127.0.0.1 reconciler=none file
    if [ "$(cat "$RUN/kind")" = node ]; then
        address=$GATEWAY reconciler=lease
        make_bridge
    fi
    choose_ports
    API=$address:$PORT_API
    make_certificates
    for file in audit.yaml base.yaml scheduler.yaml; do fill "$file"; done
    start_etcd
    start_apiserver "$address" "$reconciler"
    until_ok 240 api_ready
    start_controllers
    kubectl apply -f "$RUN/base.yaml" >/dev/null
    until_ok 240 kubectl -n default get serviceaccount default # without it no pod can be created
}

# The folders of the controller manager's hostpath provisioner are in /tmp/hostpath_pv, a fixed path: only ours are
# removed.
remove_host_paths() {
    kubectl get pv -o jsonpath='{range .items[*]}{.spec.hostPath.path}{"\n"}{end}' 2>/dev/null |
        grep '^/tmp/hostpath_pv/[^/]*$' | xargs -r rm -rf || true
    [ ! -d /tmp/hostpath_pv ] || rmdir --ignore-fail-on-non-empty /tmp/hostpath_pv
}

fake_nodes() { # N TAINTS
    local i
    for ((i = 0; i < $1; i++)); do
        cat <<END
---
apiVersion: v1
kind: Node
metadata:
  name: kwok-$i
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {type: kwok, kubernetes.io/hostname: kwok-$i, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
spec: {taints: [$2]}
END
    done
}

# With a real node the fake ones are tainted (kwok.x-k8s.io/node=fake:NoSchedule), so that only pods that tolerate it
# run there.
start_kwok() { # N
    local taints=
    [[ $1 =~ ^(0|[1-9][0-9]*)$ ]] || fail "kwok wants a number of nodes, not '$1'"
    [ -f "$RUN/ports" ] || fail "cluster $INSTANCE is not up"
    if [ "$1" = 0 ]; then
        stop kwok
        rm -f "$RUN/kwok.command" # kwok is no longer expected to run
        kubectl delete nodes -l type=kwok >/dev/null
        return
    fi
    [ "$(cat "$RUN/kind")" = control-plane ] || taints="{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}"
    build_parts addons
    choose_ports
    fake_nodes "$1" "$taints" | kubectl apply -f - >/dev/null
    running kwok || start kwok kwok --kubeconfig="$PKI/kwok.kubeconfig" --config="$HERE/config/kwok.yaml" --manage-all-nodes=false \
        --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --cidr="$FAKE_CIDR" --node-lease-duration-seconds=40 \
        --server-address="127.0.0.1:$PORT_KWOK"
    kubectl wait --for=condition=Ready "node/kwok-$(($1 - 1))" --timeout=240s >/dev/null
}
