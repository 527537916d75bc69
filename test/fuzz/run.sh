#!/bin/bash
# Fuzzes everything that reads bytes from outside: builds test/fuzz/fuzz_X.c, runs every file of corpus/X and of
# regression/X (inputs that once broke it), then fuzzes X for SECONDS, starting from both.
# usage: run.sh [SECONDS [X...]]      default 20 seconds each; 0 runs the files only; JOBS (2) at a time
# A crash leaves its input in build/fuzz-crashes: fix it, then move the input to regression/X. What longer runs find by
# themselves is kept in build/fuzz/found/X and is where the next run begins.
set -u
cd "$(dirname "$0")/../.." || exit 1
. test/tools/verdict.sh
seconds=${1:-20}
shift
here=test/fuzz build=build/fuzz crashes=build/fuzz-crashes logs=build/logs/fuzz
if [ $# = 0 ]; then
    mapfile -t names < <(find "$here" -name 'fuzz_*.c' | sed 's|.*/fuzz_||; s|\.c$||' | sort)
    set -- "${names[@]}"
fi
mkdir -p "$crashes" "$logs"
make --no-print-directory -s -j"${JOBS:-2}" FLAVOUR=fuzz DEV=1 "${@/#/$build/fuzz/fuzz_}" || exit 1

# Leaks, undefined behaviour and anything slower than 10 s or larger than 1 GiB count as crashes.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
limits="-rss_limit_mb=1024 -timeout=10"

files_of() { find "$here/corpus/$1" "$here/regression/$1" -type f 2>/dev/null | sort; }

# Words that mutation would hardly hit on: signs of the format, and for manifests every name in the tables that read them.
dictionary() { # X
    case $1 in
    job | model) cat "$here/dict/yaml" && grep -ohE '"[A-Za-z_0-9]{2,40}"' "lib/${1/model/nn}"/*.c | sort -u ;;
    *) cat "$here/dict/$1" 2>/dev/null ;;
    esac
}

one() { # X: what went wrong is said on standard output
    local files folders found=$build/found/$1 options
    mapfile -t files < <(files_of "$1")
    if [ ${#files[@]} = 0 ]; then
        echo "FAIL $1: no file in $here/corpus/$1"
        return
    fi
    # shellcheck disable=SC2086 # lists of words
    if "$build/fuzz/fuzz_$1" $limits -artifact_prefix="$crashes/$1-" "${files[@]}" >"$logs/$1.files" 2>&1; then
        echo "ok   $1: ${#files[@]} files"
    else
        echo "FAIL $1: $(grep '^Running: ' "$logs/$1.files" | tail -n 1), see $logs/$1.files"
        grep -E 'ERROR|SUMMARY|runtime error|^ +#[0-9]+ .* (lib|ps|worker)/' "$logs/$1.files" | head -n 12
        return
    fi
    [ "$seconds" = 0 ] && return
    mkdir -p "$found"
    options="-max_total_time=$seconds -max_len=65536 -print_final_stats=1"
    dictionary "$1" >"$logs/$1.dict"
    [ -s "$logs/$1.dict" ] && options="$options -dict=$logs/$1.dict"
    folders=$(find "$here/corpus/$1" "$here/regression/$1" -maxdepth 0 2>/dev/null)
    # shellcheck disable=SC2086
    if "$build/fuzz/fuzz_$1" $limits $options -artifact_prefix="$crashes/$1-" "$found" $folders >"$logs/$1" 2>&1; then
        echo "ok   $1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$1") inputs in $seconds s"
    else
        echo "FAIL $1: $(sed -n 's/.*Test unit written to //p' "$logs/$1"), see $logs/$1"
        grep -E 'ERROR|SUMMARY|runtime error|^ +#[0-9]+ .* (lib|ps|worker)/' "$logs/$1" | head -n 12
    fi
}
export here build crashes logs limits seconds
export -f files_of dictionary one
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I X bash -c 'one X' | tee "$logs/verdicts"
while IFS= read -r line; do
    name=${line#FAIL } problem=${line#*: }
    record FAIL "${name%%:*}" 1 exact - "$logs/${name%%:*}" "$problem"
done < <(grep '^FAIL ' "$logs/verdicts")
passed=$(grep -c '^ok ' "$logs/verdicts") failed=$(grep -c '^FAIL ' "$logs/verdicts")
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
