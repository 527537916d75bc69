#!/bin/bash
# The tiers of the test suite, one after the other, with a table of what each took.
# usage: tiers.sh all | check | TIER...        (from the repository's root)
# Every tier prints "N passed, N failed, N skipped" last; its full output is in build/logs/TIER.log.
set -u
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
jobs=${JOBS:-2}
make="make --no-print-directory -s -j$jobs DEV=1"

unit_programs() { find test/unit -name 'test_*.c' | sort | sed "s|^test/|build/$1/test/|; s|\.c\$||"; }
unit_of() { # FLAVOUR: build and run
    # shellcheck disable=SC2046 # a list of words
    $make FLAVOUR="$1" all $(unit_programs "$1") && test/tools/unit.sh $(unit_programs "$1")
}

tier_static() { $make all && test/tools/static.sh; } # the build makes headers that others include
# shellcheck disable=SC2046 # a list of words
tier_clang() { $make FLAVOUR=clang all $(unit_programs clang) && echo "1 passed, 0 failed, 0 skipped"; }
tier_unit() { unit_of release; }
# A real cluster of sanitized programs. What they find is in a file each, for a replica that dies of it is started again.
cluster_of() { # FLAVOUR SCRIPT [ARG]...
    local reports=$PWD/build/logs/$1-reports
    rm -rf "$reports" && mkdir -p "$reports"
    ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$reports/report UBSAN_OPTIONS=$UBSAN_OPTIONS:log_path=$reports/report \
    TSAN_OPTIONS=$TSAN_OPTIONS:log_path=$reports/report TRAINYARD_TEST_BIN=build/$1/bin "${@:2}" || return 1
    [ -z "$(ls "$reports")" ] || { tail -n 80 "$reports"/*; return 1; }
}
sanitized="quick_ interrupt two_ps_four_workers"
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=suppressions=$PWD/test/tools/tsan.supp:halt_on_error=1
# shellcheck disable=SC2086 # lists of words
tier_asan() { CK_TIMEOUT_MULTIPLIER=10 unit_of asan && cluster_of asan test/integration/run.sh $sanitized && cluster_of asan test/operator/soak.sh 20 40; }
# shellcheck disable=SC2086
tier_tsan() { CK_FORK=no CK_TIMEOUT_MULTIPLIER=10 unit_of tsan && cluster_of tsan test/integration/run.sh $sanitized && cluster_of tsan test/operator/soak.sh 20 40; }
tier_fuzz() { test/fuzz/run.sh "${FUZZ_SECONDS:-5}"; }
tier_quick() { $make all && test/integration/run.sh quick; }
tier_integration() { $make all build/release/fault/slow_link && test/integration/run.sh; }
tier_bad() { $make all && test/integration/bad_input.sh; }
tier_converge() { $make all && test/converge/run.sh; }
tier_fault() { $make all && test/fault/run.sh; }
# helm is a program of the cluster; where it cannot be built the tests that need it say so.
tier_chart() { $make all build/release/tools/crd build/release/tools/yaml2json && { test/cluster/cluster.sh build addons || true; } && test/chart/run.sh && test/chart/cel.sh; }
tier_operator() { $make all build/release/test/operator/kube_try && test/operator/run.sh; }
tier_e2e() { $make all && test/e2e/run.sh; }

all="static unit clang integration bad converge fault chart operator e2e fuzz asan tsan"
quick="unit quick"
case ${1:-} in
all) tiers=$all ;;
check) tiers=$quick ;;
'') echo "usage: tiers.sh all | check | TIER..." >&2; exit 2 ;;
*) tiers=$* ;;
esac

mkdir -p build/logs
passed=0 failed=0 skipped=0 table=
for tier in $tiers; do
    log=build/logs/$tier.log
    started=$(date +%s)
    echo "== $tier"
    "tier_$tier" >"$log" 2>&1
    status=$?
    # A tier may have several totals: they are added.
    read -r p f s <<<"$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" |
        awk '{p += $1; f += $3; s += $5} END {print p + 0, f + 0, s + 0}')"
    grep -E '^(SKIP|skip)' "$log"
    # A tier that cannot run here says so and is counted as skipped; one that ran nothing and does not say why has failed.
    if [ "$status" != 0 ] || [ $((p + s)) = 0 ]; then
        [ "$f" = 0 ] && f=1
        tail -n 400 "$log" # where only the console is kept, it is all there is to go by
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    table+=$(printf '%-12s %6.1f min  %5d passed %4d failed %4d skipped' "$tier" \
        "$(awk -v s=$(($(date +%s) - started)) 'BEGIN{print s/60}')" "$p" "$f" "$s")$'\n'
done
printf '\n%s\n' "$table"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
