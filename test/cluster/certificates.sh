# shellcheck shell=bash
# One authority per instance, a certificate per component, kubeconfigs. Sourced by cluster.sh.

# certificate FILE SUBJECT [SUBJECT-ALT-NAMES]
certificate() {
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$1.key"
    {
        echo "extendedKeyUsage=clientAuth,serverAuth"
        [ -z "${3:-}" ] || echo "subjectAltName=$3"
    } >"$PKI/$1.ext"
    openssl req -new -key "$PKI/$1.key" -subj "$2" |
        openssl x509 -req -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 3650 \
            -extfile "$PKI/$1.ext" -out "$PKI/$1.crt" 2>/dev/null
    rm "$PKI/$1.ext"
}

authority() {
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/ca.key"
    openssl req -x509 -new -key "$PKI/ca.key" -subj /CN=test-cluster-ca -days 3650 -out "$PKI/ca.crt" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,digitalSignature
    openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
    openssl rsa -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
}

kubeconfig() { # CERTIFICATE
    cat <<END
apiVersion: v1
kind: Config
clusters: [{name: $INSTANCE, cluster: {server: "https://$API", certificate-authority: $PKI/ca.crt}}]
users: [{name: $1, user: {client-certificate: $PKI/$1.crt, client-key: $PKI/$1.key}}]
contexts: [{name: $INSTANCE, context: {cluster: $INSTANCE, user: $1}}]
current-context: $INSTANCE
END
}

make_certificates() {
    local part
    mkdir -p "$PKI"
    if [ ! -f "$PKI/done" ]; then
        authority
        certificate apiserver /CN=kube-apiserver "IP:$GATEWAY,IP:127.0.0.1,IP:${SERVICE_CIDR%.0.0/16}.0.1,DNS:localhost,DNS:kubernetes,\
DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
        certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
        certificate kubelet-serving "/CN=$NODE" "IP:$GATEWAY,DNS:$NODE"
        certificate admin /O=system:masters/CN=admin
        certificate kwok /O=system:masters/CN=kwok
        certificate node "/O=system:nodes/CN=system:node:$NODE"
        for part in kube-controller-manager kube-scheduler kube-proxy coredns; do certificate "$part" "/CN=system:$part"; done
        touch "$PKI/done"
    fi
    for part in kwok node kube-controller-manager kube-scheduler kube-proxy coredns; do kubeconfig "$part" >"$PKI/$part.kubeconfig"; done
    kubeconfig admin >"$RUN/admin.kubeconfig"
}

# user_kubeconfig NAME [GROUP]...: the audit log records the requests of group bench by user name.
user_kubeconfig() {
    local name=${1:?a name} subject="" group
    shift
    [ -f "$PKI/done" ] || fail "cluster $INSTANCE is not up"
    for group; do subject+=/O=$group; done
    API=$(sed -n 's#.*server: "https://\([^"]*\)".*#\1#p' "$RUN/admin.kubeconfig")
    certificate "user-$name" "$subject/CN=$name"
    kubeconfig "user-$name"
}
