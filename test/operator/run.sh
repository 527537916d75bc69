#!/bin/bash
# The operator against a real API server, as a user sees it. Each line of the TFJob conformance list has a test here or
# in test/e2e; restarts, limits and endings in all their combinations are cases of the plan (test/unit/operator). Tests
# named test_ have their own namespace and operator and run concurrently; those named alone_ follow.
# usage: run.sh [NAME-PART]...    (KEEP=1 leaves the cluster running, BESIDE=4 is how many run at a time)
# shellcheck disable=SC2154 # variables of the libraries
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
for part in tfjob sidecars status restarts suspend gang trainjob authors identity upgrade guard faults; do
    # shellcheck source=/dev/null
    . "$root/test/operator/$part.sh"
done
cluster_up
run_several "${BESIDE:-4}" test_ "$@"
run_several 1 alone_ "$@"
if [ "${KEEP:-0}" = 1 ]; then # others may follow
    drop_gangs
else
    "$cluster" down --purge
fi
totals
