#!/bin/bash
# Runs unit test programs, twice JOBS (2) at a time since many wait. Shows the output of those that fail, and closes
# with "N passed, N failed, N skipped".
# usage: unit.sh PROGRAM...    (from the repository's root)
set -u
outputs=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-unit.XXXXXX")
trap 'rm -rf "$outputs"' EXIT
export outputs
run_one() { # PROGRAM: its output and exit status go to files
    local name=${1//\//_}
    "$1" >"$outputs/$name" 2>&1
    echo $? >"$outputs/$name.status"
}
export -f run_one
printf '%s\n' "$@" | xargs -P $((2 * ${JOBS:-2})) -I PROGRAM bash -c 'run_one PROGRAM'

passed=0 failed=0
for program in "$@"; do
    out=$outputs/${program//\//_}
    status=$(cat "$out.status")
    line=$(grep -aEo 'Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$out" | tail -n 1)
    read -r checks failures errors <<<"$(grep -Eo '[0-9]+' <<<"$line" | tr '\n' ' ')"
    bad=$((${failures:-0} + ${errors:-0}))
    if [ "$status" != 0 ] || [ -z "$line" ]; then
        printf -- '--- %s (exit %d)\n%s\n' "$program" "$status" "$(tail -n 100 "$out")"
        [ "$bad" = 0 ] && bad=1
    fi
    failed=$((failed + bad))
    passed=$((passed + ${checks:-0} - ${failures:-0} - ${errors:-0}))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
