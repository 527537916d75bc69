# Sourced by the shell tests: programs, a scratch folder, checks that count.
# A test is a function test_NAME; run_tests runs those whose name matches the arguments and closes with the totals.
# shellcheck shell=bash
set -u
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE TF_CONFIG JOB_NAME TASK_INDEX PS_HOSTS WORKER_HOSTS CHIEF_HOST
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-test.XXXXXX")
given_ports=${TRAINYARD_GIVEN_PORTS:-$scratch/ports} # a folder that concurrent scripts share
mkdir -p "$given_ports"
# A copy, so that a build during the tests does not change their programs.
mkdir "$scratch/bin" && cp "${TRAINYARD_TEST_BIN:-$root/build/release/bin}"/trainyard* "$scratch/bin"
export PATH="$scratch/bin:$PATH"
for program in pgrep curl awk cmp; do
    command -v "$program" >/dev/null || { echo "these tests need the program $program (make test installs it)"; exit 2; }
done
passed=0 failed=0 skipped=0 problems=0
trap 'cleanup' EXIT

cleanup() {
    local pid
    for pid in $(jobs -p); do kill -9 "$pid" 2>/dev/null; done
    [ "$failed" = 0 ] && rm -rf "$scratch"
}

# problem TEXT: the running test fails, but continues.
problem() { problems=$((problems + 1)); echo "    $*"; }
# want_exit CODE COMMAND...: stdout and stderr go to $dir/out.
want_exit() {
    local want=$1 got
    shift
    "$@" >"$dir/out" 2>&1
    got=$?
    [ "$got" = "$want" ] || { problem "exit code $got, not $want: $*"; tail -n 25 "$dir/out"; return 1; }
}
want_line() { grep -qE -- "$1" "${2:-$dir/out}" || problem "no line matches '$1' in ${2:-the output}"; }
want_no_line() { # REGEX [FILE]
    local line
    line=$(grep -m 1 -E -- "$1" "${2:-$dir/out}") && problem "a line matches '$1': $line"
    return 0
}
want_file() { [ -s "$1" ] || problem "$1 is missing or empty"; }
# at_least VALUE BOUND WHAT
at_least() { awk -v a="$1" -v b="$2" 'BEGIN{exit !(a + 0 >= b + 0)}' || problem "$3 is $1, wanted >= $2"; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN{exit !(a + 0 <= b + 0)}' || problem "$3 is $1, wanted <= $2"; }
# final OUTPUT METRIC: the value in history.json's "final" (or "" )
final() { sed -n '/"final"/,/}/p' "$1/history.json" 2>/dev/null | sed -n "s/.*\"$2\": *\"\\{0,1\\}\\([-0-9.eE+NaInfity]*\\).*/\\1/p" | head -n 1; }
# wait_for SECONDS COMMAND...: polls until the command succeeds; bounded.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        [ "$SECONDS" -ge "$end" ] && { problem "timed out waiting for: $*"; return 1; }
        sleep 0.05
    done
}
# No process of this test is left: our programs have the scratch folder in their arguments.
want_no_process() {
    local left
    left=$(pgrep -f -- "$dir" | while read -r pid; do
        case "$(cat "/proc/$pid/comm" 2>/dev/null)" in trainyard*) echo "$pid" ;; esac
    done)
    [ -z "$left" ] || problem "processes are left: $left"
}
# A free port, another one each time. Below the ranges of `trainyard run` and clusters, and below the kernel's ephemeral
# ports, because an outgoing connection could take the port before the server does.
free_port() {
    local port
    while :; do
        port=$((11000 + RANDOM % 4000))
        mkdir "$given_ports/$port" 2>/dev/null || continue
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
    done
}

# The last log lines of a failed test's processes, because sometimes only the console is kept.
tell_logs() { # FOLDER
    local file
    for file in "$1"/*; do
        [ -f "$file" ] && [ -s "$file" ] && [[ $file != *.yaml && $file != */words && $file != */result ]] && grep -qI . "$file" || continue
        echo "    --- the end of ${file##*/}:"
        tail -n "${LOG_LINES:-15}" "$file" | cut -c 1-500 | sed 's/^/    | /'
    done
}

# Zero initial values, so that every cell of the checkpoint is the count itself.
counting_job() { # EPOCHS
    cat >"$dir/job.yaml" <<YAML
apiVersion: trainyard.dev/v1alpha1
kind: TrainJob
metadata: {name: counting}
spec:
  model:
    inputShape: [8, 8]
    layers:
      - Flatten: {}
      - Dense: {units: 64, activation: relu, kernel_initializer: zeros, bias_initializer: zeros}
      - Dense: {units: 10, kernel_initializer: zeros, bias_initializer: zeros}
  compile: {optimizer: Counting, loss: mean_squared_error}
  data:
$(sed -n '/^  data:/,/^  [a-ce-z]/p' "$root/deploy/examples/digits.yaml" | sed '1d;$d')
  fit: {epochs: $1, batchSize: 30, seed: 3}
  checkpoint: {everySeconds: 0.5, keep: 3}
  replicaSpecs:
    Chief: {}
    PS: {replicas: 2}
    Worker: {replicas: 3}
  runPolicy: {backoffLimit: 100000}
YAML
    sed -i 's/loss: mean_squared_error/loss: {SparseCategoricalCrossentropy: {from_logits: true}}/' "$dir/job.yaml"
    # shellcheck disable=SC2034 # used by the tests
    batches=50 # 1,500 examples
}

# Every cell of every variable equals the wanted count; several counts: one for each variable.
want_count() { # WANT [WANT WANT WANT]
    local name
    for name in dense/kernel dense/bias dense_1/kernel dense_1/bias; do
        trainyard show checkpoint "$dir/run/checkpoints" --tensor $name >"$dir/cells" 2>&1
        grep -q "min $1  max $1 " "$dir/cells" || problem "$name is not $1 in every cell: $(sed -n 2p "$dir/cells")"
        [ $# = 1 ] || shift
    done
}
# The counts of the newest checkpoint. They differ where a job was stopped while gradients were on their way.
counts() {
    local name
    for name in dense/kernel dense/bias dense_1/kernel dense_1/bias; do
        trainyard show checkpoint "$dir/run/checkpoints" --tensor $name | sed -n 's/.*min [0-9]*  max \([0-9]*\) .*/\1/p'
    done
}

run_tests() {
    local name began
    for name in $(declare -F | awk '{print $3}' | grep '^test_'); do
        if [ $# -gt 0 ] && ! grep -qE "$(tr ' ' '|' <<<"$*")" <<<"$name"; then continue; fi
        dir=$scratch/$name problems=0 skip_reason=
        mkdir -p "$dir"
        began=$SECONDS
        "$name"
        if [ -n "$skip_reason" ]; then
            skipped=$((skipped + 1)); echo "SKIP ${name#test_}: $skip_reason"
        elif [ $problems = 0 ]; then
            passed=$((passed + 1)); echo "ok   ${name#test_} ($((SECONDS - began)) s)"
        else
            failed=$((failed + 1)); echo "FAIL ${name#test_} (files in $dir)"
            if declare -F look_around >/dev/null; then look_around >"$dir/around" 2>&1; fi
            tell_logs "$dir"
        fi
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
