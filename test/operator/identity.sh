# Certificates of jobs: Secrets that the operator writes and cannot read. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of and for the libraries
digits_pods="digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1"
secret_of() { value "${2:-trainjob}" "$1" '.status.identity.secrets[0].name'; } # JOB [KIND]
secret_uid() { value secret "$1" .metadata.uid; }
secret_keys() { value secret "$1" '.data | keys | join(" ")'; }
entry() { value secret "$1" ".data[\"$2\"] | @base64d"; } # SECRET KEY
certificates() { grep -c 'BEGIN CERTIFICATE'; }
no_secrets() { [ -z "$(k get secrets -o name)" ]; }
master_key_there() { kubectl -n trainyard-system get secret trainyard-master-key >/dev/null 2>&1; }
may() { kubectl auth can-i -q "$@" --as=system:serviceaccount:trainyard-system:trainyard; }
# certifies SECRET REPLICA JOB-UID: key, certificate and CA belong together and name the replica
certifies() {
    local uri at=$dir/tls/$2
    mkdir -p "$dir/tls"
    k get secret "$1" -o json >"$at.json" # once: it may be renewed between two reads
    jq -r '.data["ca.crt"] | @base64d' "$at.json" >"$at.ca"
    jq -r --arg of "$2" '.data[$of + ".crt"] | @base64d' "$at.json" >"$at.crt"
    jq -r --arg of "$2" '.data[$of + ".key"] | @base64d' "$at.json" >"$at.key"
    openssl verify -x509_strict -CAfile "$at.ca" "$at.crt" >/dev/null 2>&1 || problem "$2: its CA did not sign the certificate"
    [ "$(openssl x509 -in "$at.crt" -noout -pubkey)" = "$(openssl pkey -in "$at.key" -pubout)" ] || problem "$2: the key is another one"
    uri=$(openssl x509 -in "$at.crt" -noout -ext subjectAltName | sed -n 's/.*URI://p')
    same "$uri" "spiffe://trainyard/$ns/$3/${2%-*}/${2##*-}" "the name of $2"
}
# nobody_told FILE...: no key is in the log, in the events or in the status
nobody_told() {
    want_no_line 'PRIVATE KEY' "$dir/operator.log"
    k get events,trainjobs -o json >"$dir/told"
    want_no_line 'PRIVATE KEY' "$dir/told"
}

test_identity_life() {
    local secret uid pod before
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "$digits_pods"
    secret=$(secret_of digits) uid=$(uid_of trainjob digits)
    [[ $secret == digits-identity-?* ]] || problem "the Secret is called '$secret'"
    same "$(secret_keys "$secret")" "ca.crt chief-0.crt chief-0.key ps-0.crt ps-0.key worker-0.crt worker-0.key worker-1.crt worker-1.key" "the Secret"
    for pod in $digits_pods; do
        certifies "$secret" "${pod#digits-}" "$uid"
        [ "$(value secret "$secret" .metadata.resourceVersion)" -lt "$(value pod "$pod" .metadata.resourceVersion)" ] || problem "$pod is older than the Secret"
        same "$(value pod "$pod" '[.spec.volumes[] | select(.secret != null) | .secret.secretName, .secret.items[].key] | join(" ")')" \
            "$secret ca.crt ${pod#digits-}.crt ${pod#digits-}.key" "what $pod mounts"
        same "$(env_of "$pod" TRAINYARD_TLS_DIR)" /etc/trainyard/tls "its variable"
    done
    same "$(cat "$dir"/tls/*.key | grep -v -e ---- -e '^$' | sort | uniq -d | wc -l)" 0 "keys that two replicas share"
    same "$(value trainjob digits '[.status.identity.leaves[] | "\(.role) \(.indexes)"] | sort | join(", ")')" "chief 0, ps 0, worker 0-1" "the status"
    is trainjob digits '.status.identity.leaves[0].notAfter | fromdate - now | . > 86000 and . < 86401' true || problem "they end at $(value trainjob digits '.status.identity.leaves[0].notAfter')"
    same "$(metric trainyard_operator_certificates_issued_total)" 4 "certificates that were issued"

    before=$(entry "$secret" worker-0.crt)
    set_job trainjob digits '{"spec":{"replicaSpecs":{"Worker":{"replicas":4}}}}'
    want_pods 60 "$digits_pods digits-worker-2 digits-worker-3"
    certifies "$secret" worker-3 "$uid"
    same "$(entry "$secret" worker-0.crt)" "$before" "the certificate of worker-0"
    set_job trainjob digits '{"spec":{"replicaSpecs":{"Worker":{"replicas":1}}}}'
    want_pods 60 "digits-chief-0 digits-ps-0 digits-worker-0"
    # somebody deletes it, and a pod that is on a node cannot start: made again long before its renewal. This operator has not
    # written it, so it does not first wait for a minute, in which PodGC would delete the pod of a node that does not exist.
    stop_operator
    before=$(secret_uid "$secret")
    k delete secret "$secret" >/dev/null
    start_operator "${own_flags[@]}"
    bind_to_node digits-worker-0
    wait_for 60 certified_again "$secret" "$before" || problem "the Secret that a pod waits for is not made again"
    want 60 trainjob digits .status.identity.secrets[0].uid "$(secret_uid "$secret")"
    certifies "$secret" worker-0 "$uid"
    nobody_told
    k delete trainjob digits >/dev/null
    wait_for 120 no_secrets || problem "the Secret outlives the job"
}

# Rights of the ServiceAccount.
test_identity_rights() {
    local verb
    begin
    for verb in get list watch delete update deletecollection; do
        may $verb secrets -A && problem "it may $verb all Secrets"
        may $verb secrets -n "$ns" && problem "it may $verb Secrets of a user's namespace"
        may $verb secrets -n trainyard-system && problem "it may $verb all Secrets of its namespace"
    done
    may create secrets -n "$ns" || problem "it may not create Secrets"
    may patch secrets -n "$ns" || problem "it may not patch Secrets"
    may get secrets/trainyard-master-key -n trainyard-system || problem "it may not read the master key"
    may get secrets/trainyard-master-key -n "$ns" && problem "it may read a Secret of that name elsewhere"
    wait_for 60 master_key_there || problem "no master key"
}

renewed() { [ "$(entry "$1" worker-0.crt)" != "$2" ]; } # SECRET CERTIFICATE
test_identity_renewal() {
    local secret uid pod before
    begin --certificate-seconds 12
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "$digits_pods"
    secret=$(secret_of digits) uid=$(secret_uid "$secret") pod=$(uid_of pod digits-worker-0) before=$(entry "$secret" worker-0.crt)
    running digits-chief-0 digits-ps-0 digits-worker-0 digits-worker-1
    wait_for 60 renewed "$secret" "$before" || problem "it is not renewed"
    certifies "$secret" worker-0 "$(uid_of trainjob digits)"
    same "$(secret_uid "$secret")" "$uid" "the Secret"
    same "$(uid_of pod digits-worker-0)" "$pod" "the pod"
    four_are_renewed() { [ "$(metric trainyard_operator_certificate_renewals_total)" -ge 4 ]; }
    wait_for 60 four_are_renewed # counted when the reply to the write has come
    nobody_told
    # somebody deletes it: made again under the name that the pods mount
    k delete secret "$secret" >/dev/null
    wait_for 60 certified_again "$secret" "$uid" || problem "the deleted Secret is not made again"
    want 60 trainjob digits .status.identity.secrets[0].uid "$(secret_uid "$secret")"
    certifies "$secret" worker-1 "$(uid_of trainjob digits)"
    # another one of that name is nobody's business
    stop_operator
    k delete secret "$secret" >/dev/null
    k create secret generic "$secret" --from-literal=mine=1 >/dev/null
    start_operator "${own_flags[@]}"
    want_event 60 digits IdentitySecretReplaced "kubectl delete secret $secret -n $ns"
    same "$(secret_keys "$secret")" mine "the other Secret"
}
certified_again() { local uid; uid=$(secret_uid "$1"); [ -n "$uid" ] && [ "$uid" != null ] && [ "$uid" != "$2" ]; }

# Killed at any moment: each pod's certificate is in a Secret that exists and that the status knows.
test_identity_survives_crashes() {
    local i pod secret
    begin
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    for i in 1 2 3 4; do
        set_job trainjob digits "{\"spec\":{\"replicaSpecs\":{\"Worker\":{\"replicas\":$((2 * i))}}}}"
        crash_operator
    done
    want_pods 60 "$(echo digits-chief-0 digits-ps-0 digits-worker-{0..7})"
    for pod in digits-chief-0 digits-ps-0 digits-worker-{0..7}; do
        secret=$(value pod "$pod" '.spec.volumes[] | select(.secret != null) | .secret.secretName')
        is trainjob digits "[.status.identity.secrets[].name] | index(\"$secret\") != null" true || problem "$pod mounts $secret, which the status does not know"
        certifies "$secret" "${pod#digits-}" "$(uid_of trainjob digits)"
    done
}

test_identity_insecure() {
    begin --insecure
    want_line 'warning: --insecure: new jobs run without certificates' "$dir/operator.log"
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "$digits_pods"
    same "$(env_of digits-ps-0 TRAINYARD_INSECURE)" true "TRAINYARD_INSECURE"
    want_condition 60 trainjob digits Insecure "True NoCertificates"
    want_event 60 digits Insecure
    same "$(metric trainyard_operator_insecure)" 1 trainyard_operator_insecure
    no_secrets || problem "there are Secrets"
    # the job that runs stays as it is; when none of its pods is left, it gets certificates
    stop_operator
    own_flags=(--no-leader-elect --namespace "$ns")
    start_operator "${own_flags[@]}"
    set_job trainjob digits '{"spec":{"replicaSpecs":{"Worker":{"replicas":3}}}}'
    want_pods 60 "$digits_pods digits-worker-2"
    same "$(env_of digits-worker-2 TRAINYARD_INSECURE)" true "TRAINYARD_INSECURE of the new pod"
    set_job trainjob digits '{"spec":{"runPolicy":{"suspend":true}}}'
    want_pods 60 ""
    set_job trainjob digits '{"spec":{"runPolicy":{"suspend":false}}}'
    want_pods 60 "$digits_pods digits-worker-2"
    same "$(env_of digits-worker-2 TRAINYARD_TLS_DIR)" /etc/trainyard/tls "TRAINYARD_TLS_DIR"
    want_condition 60 trainjob digits Insecure "null null"
    # and keeps them
    stop_operator
    own_flags=(--no-leader-elect --namespace "$ns" --insecure)
    start_operator "${own_flags[@]}"
    set_job trainjob digits '{"spec":{"replicaSpecs":{"Worker":{"replicas":4}}}}'
    want_pods 60 "$digits_pods digits-worker-2 digits-worker-3"
    certifies "$(secret_of digits)" worker-3 "$(uid_of trainjob digits)"
}

# Images of users get certificates only when they ask for them.
test_identity_of_a_tfjob() {
    begin
    tfjob plain '' Worker=1 | k apply -f - >/dev/null
    want_pods 60 plain-worker-0
    no_secrets || problem "there are Secrets"
    tfjob asks '' Chief=1 Worker=1 | sed 's/metadata: {name: asks}/metadata: {name: asks, annotations: {trainyard.dev\/identity: "true"}}/' | k apply -f - >/dev/null
    want_pods 60 "asks-chief-0 asks-worker-0 plain-worker-0"
    certifies "$(secret_of asks tfjob)" worker-0 "$(uid_of tfjob asks)"
    same "$(value pod asks-worker-0 '[.spec.volumes[] | select(.secret != null) | .secret.items[].key] | join(" ")')" "ca.crt worker-0.crt worker-0.key" "what the pod mounts"
    [ "$(value pod plain-worker-0 '[.spec.volumes[] | select(.secret != null)] | length')" = 0 ] || problem "the other one mounts a Secret"
}

master_key_entry() { # the command of docs/security.md
    kubectl -n trainyard-system patch secret trainyard-master-key -p \
        "{\"data\":{\"$(date -u +%Y%m%dT%H%M%SZ)\":\"$(head -c 32 /dev/urandom | base64 -w0)\"}}" >/dev/null
}
cas_of() { value trainjob digits '.status.identity.secrets[0].cas | join(" ")'; }
leaf_ca() { value trainjob digits '[.status.identity.leaves[].ca] | unique | join(" ")'; }
alone_long_identity_master_key_rotation() {
    local old new secret
    begin --certificate-seconds 30
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    want_pods 60 "$digits_pods"
    secret=$(secret_of digits) old=$(leaf_ca)
    same "$(cas_of)" "$old" "the only CA"
    master_key_entry
    wait_for 60 two_cas || problem "the new CA is not trusted"
    same "$(leaf_ca)" "$old" "the CA of the leaves"
    new=$(cas_of) new=${new/$old/} new=${new// /}
    same "$(entry "$secret" ca.crt | certificates)" 2 "the CAs of the Secret"
    eventually 60 "$new" leaf_ca
    certifies "$secret" worker-0 "$(uid_of trainjob digits)"
    eventually 120 "$new" cas_of
    same "$(entry "$secret" ca.crt | certificates)" 1 "the CAs of the Secret"
    certifies "$secret" worker-0 "$(uid_of trainjob digits)"
    # the entry that issued goes: all leaves are made again at once; and a deleted Secret comes back with what is known
    kubectl -n trainyard-system patch secret trainyard-master-key --type=json -p "[{\"op\":\"replace\",\"path\":\"/data\",\"value\":{\"20200101T000000Z\":\"$(head -c 32 /dev/urandom | base64 -w0)\"}}]" >/dev/null
    wait_for 60 other_ca "$new" || problem "the leaves of the removed key stay"
    new=$(leaf_ca)
    kubectl -n trainyard-system delete secret trainyard-master-key >/dev/null
    wait_for 60 master_key_there
    crash_operator
    wait_for 60 synced_again
    same "$(leaf_ca)" "$new" "the CA after the master key's Secret was deleted"
    same "$(cas_of)" "$new" "the trusted one"
    nobody_told
}
two_cas() { [ "$(cas_of | wc -w)" = 2 ]; }
other_ca() { [ "$(leaf_ca)" != "$1" ]; }
synced_again() { [ "$(grep -c 'master keys of Secret' "$dir/operator.log")" -ge 4 ]; }
