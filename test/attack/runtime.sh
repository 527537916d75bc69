#!/bin/bash
# Attacks on the processes of a job, on loopback: slow and hostile clients, bad messages, bad files. Each test is one
# attack. After it the job must continue, or end with the exit code and the message of the contract; memory and time are
# bounded.
# usage: runtime.sh [NAME...]
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/../integration/lib.sh"
for part in "$root"/test/attack/runtime_*.sh; do
    # shellcheck source=/dev/null
    [ ! -e "$part" ] || . "$part"
done
run_tests "$@"
