# shellcheck shell=bash
# How sanitized programs and unit tests run. Sourced by tiers.sh and flakes.sh, from the repository's root.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=suppressions=$PWD/test/tools/tsan.supp:halt_on_error=1
export CK_TIMEOUT_MULTIPLIER=10 # libcheck gives a test 4 s; no test depends on the speed of the machine
unit_settings() { # FLAVOUR COMMAND...: with the settings of its unit tests
    if [ "$1" = tsan ]; then CK_FORK=no UNIT_SECONDS=120 "${@:2}"; else "${@:2}"; fi
}
