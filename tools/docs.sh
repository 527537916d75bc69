#!/bin/sh
# Writes what comes from tables: two pages of docs, the CRDs and the chart's copies of them. Usage: docs.sh BUILD
set -eu
new=$(mktemp)
trap 'rm -f "$new"' EXIT
write() { # FILE PROGRAM...: nothing is lost when the program fails
    file=$1
    shift
    "$@" >"$new"
    cat "$new" >"$file"
}
# The chart's README with a new table of values.
readme() {
    awk '/^<!-- values:/ {print; print ""; exit} {print}' "$1"
    tools/values_table.sh charts/trainyard/values.yaml
    awk '/^<!-- end of values/ {on = 1; print ""} on' "$1"
}
templates=charts/trainyard/templates/crds
write docs/manifest.md "$1/tools/manifest_doc"
write docs/layers.md "$1/tools/nn_doc"
write deploy/crd/trainyard.dev_trainjobs.yaml "$1/tools/crd" spec tools/crd/trainjob.yaml
write $templates/trainjobs.yaml "$1/tools/crd" chart deploy/crd/trainyard.dev_trainjobs.yaml .Values.crds.enabled
write $templates/tfjobs.yaml "$1/tools/crd" chart deploy/crd/kubeflow.org_tfjobs.yaml .Values.tfjob.installCRD
write charts/trainyard/README.md readme charts/trainyard/README.md
