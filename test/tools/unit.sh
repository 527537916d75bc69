#!/bin/bash
# Runs unit test programs, shows the output of those that fail, and closes with "N passed, N failed, N skipped".
# usage: unit.sh PROGRAM...    (from the repository's root)
set -u
passed=0 failed=0
for program in "$@"; do
    out=$("$program" 2>&1)
    status=$?
    line=$(grep -Eo 'Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' <<<"$out" | tail -n 1)
    read -r checks failures errors <<<"$(grep -Eo '[0-9]+' <<<"$line" | tr '\n' ' ')"
    bad=$((${failures:-0} + ${errors:-0}))
    if [ "$status" != 0 ] || [ -z "$line" ]; then
        printf -- '--- %s (exit %d)\n%s\n' "$program" "$status" "$(tail -n 40 <<<"$out")"
        [ "$bad" = 0 ] && bad=1
    fi
    failed=$((failed + bad))
    passed=$((passed + ${checks:-0} - ${failures:-0} - ${errors:-0}))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
