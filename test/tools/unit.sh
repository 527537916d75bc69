#!/bin/bash
# Runs unit test programs, twice JOBS (2) at a time since many wait. Shows the output of those that fail, and closes
# with "N passed, N failed, N skipped". A program may take UNIT_SECONDS (300).
# usage: unit.sh PROGRAM...    (from the repository's root)
set -u
. test/tools/verdict.sh
outputs=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-unit.XXXXXX")
trap 'rm -rf "$outputs"' EXIT
export outputs
run_one() { # PROGRAM: its output and exit status go to files
    . test/tools/verdict.sh
    local name=${1//\//_}
    # A test may collect the standard error of its processes, and with it a sanitizer's report.
    local -x ASAN_OPTIONS=${ASAN_OPTIONS-}:log_path=$outputs/$name.report UBSAN_OPTIONS=${UBSAN_OPTIONS-}:log_path=$outputs/$name.report \
        TSAN_OPTIONS=${TSAN_OPTIONS-}:log_path=$outputs/$name.report
    limited "${UNIT_SECONDS:-300}" "$outputs/$name.stacks" "$1" >"$outputs/$name" 2>&1
    echo $? >"$outputs/$name.status"
    ! has_report "$outputs/$name" || cat "$outputs/$name".report.* >>"$outputs/$name"
}
has_report() { compgen -G "$1.report.*" >/dev/null; } # OUTPUT
export -f has_report
export -f run_one
printf '%s\n' "$@" | xargs -P $((2 * ${JOBS:-2})) -I PROGRAM bash -c 'run_one PROGRAM'

# kind_of_failure PROGRAM STATUS: exact for a program without threads, sockets and processes, which has no race
kind_of_failure() {
    local test=${1#build/*/}
    if [ "$2" -ge 124 ] || ! grep -qx "$test.c" test/unit/concurrent.txt; then echo exact; else kind_of "$outputs/${1//\//_}"; fi
}
# What the last process did: the functions of this project in its main thread, from the inner one on, and the innermost
# one of each other thread
waited_in() { # STACKS
    awk '/^== process/ {at = others = ""}
        /^Thread / {main = $2 == "1"; found = 0}
        /^#/ && match($0, / at (lib|operator|ps|worker|cli|test)\//) {
            sub(/^#[0-9]+ +(0x[0-9a-f]+ in )?/, "")
            if (main) at = at (at == "" ? "" : " < ") $1
            else if (!found++ && index(others ",", " " $1 ",") == 0) others = others (others == "" ? " " : ", ") $1
            last = at "; other threads:" others
        }
        END {print last}' "$1"
}
first_problem() { # PROGRAM STATUS
    if [ "$2" = 124 ]; then
        echo "it did not end within ${UNIT_SECONDS:-300} s; it waited in: $(waited_in "$outputs/${1//\//_}.stacks")"
    else
        sanitizer_problem "$outputs/${1//\//_}" | grep . || grep -aEm 1 '^[^ ]+:[0-9]+:[FE]:' "$outputs/${1//\//_}" ||
            tail -n 1 "$outputs/${1//\//_}"
    fi
}
tell_failure() { # PROGRAM STATUS
    echo "--- $1 (exit $2)"
    tail -n 100 "$outputs/${1//\//_}"
    cat "$outputs/${1//\//_}.stacks" 2>/dev/null
}

passed=0 failed=0
for program in "$@"; do
    out=$outputs/${program//\//_}
    status=$(cat "$out.status")
    line=$(grep -aEo 'Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$out" | tail -n 1)
    read -r checks failures errors <<<"$(grep -Eo '[0-9]+' <<<"$line" | tr '\n' ' ')"
    bad=$((${failures:-0} + ${errors:-0}))
    name=${program#build/*/test/unit/}
    if [ "$status" != 0 ] || [ -z "$line" ] || has_report "$out"; then
        tell_failure "$program" "$status"
        [ "$bad" = 0 ] && bad=1
        log=$(tell_failure "$program" "$status" | keep_log "$name")
        record FAIL "$name" $bad "$(kind_of_failure "$program" "$status")" "$program" "$log" "$(first_problem "$program" "$status")"
    else
        record ok "$name" 0 race "$program" - ''
    fi
    failed=$((failed + bad))
    passed=$((passed + ${checks:-0} - ${failures:-0} - ${errors:-0}))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
