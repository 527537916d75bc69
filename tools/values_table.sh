#!/bin/sh
# The values of the chart as the table of its README: each key with its default and the comment above it.
# Usage: values_table.sh VALUES.yaml
exec awk '
BEGIN { print "| value | default | |"; print "|---|---|---|" }
/^ *#/ { line = $0; sub(/^ *# ?/, "", line); comment = comment == "" ? line : comment " " line; next }
/^ *$/ { comment = ""; next }
{
    match($0, /^ */)
    depth = RLENGTH / 2
    key = $1; sub(/:$/, "", key)
    value = $0; sub(/^[^:]*: ?/, "", value)
    path[depth] = key
    full = path[0]
    for (i = 1; i <= depth; i++) full = full "." path[i]
    if (value != "") printf "| `%s` | `%s` | %s |\n", full, value, comment
    comment = ""
}' "$1"
