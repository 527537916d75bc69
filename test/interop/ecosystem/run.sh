#!/bin/bash
# run.sh: Kubeflow's Python SDK with TFJobs that our operator looks after, on a real API server with fake nodes. Makes a venv
# (INTEROP_VENV, default build/interop-sdk; needs PyPI once). KEEP=1 leaves the cluster running.
# shellcheck disable=SC2154 # variables of the libraries
# shellcheck source=../../operator/lib.sh
. "$(dirname "$0")/../../operator/lib.sh"
venv=${INTEROP_VENV:-build/interop-sdk}

if ! "$venv/bin/python" -c 'import kubeflow.training' 2>/dev/null; then
    if ! python3 -m venv "$venv"; then
        echo "SKIP the SDK: no Python that makes a venv"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    # with the newer kubernetes packages this SDK can create no job
    "$venv/bin/pip" install --quiet kubeflow-training==1.9.3 kubernetes==32.0.1 || exit 1
fi
cluster_up
"$cluster" kwok 2 || exit 1
dir=$scratch/sdk
mkdir "$dir"
new_namespace sdk
own_operator
"$venv/bin/python" "$(dirname "$0")/sdk.py" "$KUBECONFIG" "$ns"
failed=$?
stop_operator
drop_namespace
[ "${KEEP:-0}" = 1 ] || "$cluster" down --purge
exit "$failed"
