#!/bin/bash
# Attacks on the operator, against a real API server: huge jobs, hostile specs, objects of other owners, exhausted
# limits. Each test is one attack. After it the operator must still serve other jobs, and objects of other owners must
# be unchanged. Tests named test_ have their own namespace and operator and run concurrently; those named alone_ follow.
# usage: operator.sh [NAME-PART]...
# shellcheck disable=SC2154 # variables of the libraries
# shellcheck source=test/operator/lib.sh
. "$(dirname "$0")/../operator/lib.sh"
for part in "$root"/test/attack/operator_*.sh; do
    # shellcheck source=/dev/null
    [ ! -e "$part" ] || . "$part"
done
cluster_up
run_several "${BESIDE:-4}" test_ "$@"
run_several 1 alone_ "$@"
drop_gangs
[ "${KEEP:-0}" = 1 ] || "$cluster" down --purge
totals
