#!/bin/bash
# Peak resident memory of each role (and its part of mapped data), and the time from exec to the first log line of
# training. usage: footprint.sh BUILD DATA
set -u
build=$1 data=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
started=$(date +%s%N)
"$build/bin/trainyard" run deploy/examples/mnist.yaml --data-dir "$data" --output-dir "$out/run" --set fit.epochs=30 \
    --set fit.logEverySteps=1 >"$out/log" 2>&1 &
pid=$!
until grep -q 'step [0-9]' "$out/log" 2>/dev/null; do sleep 0.005; done
echo "first step after $((($(date +%s%N) - started) / 1000000)) ms (polled every 5 ms)"
sleep 2
pgrep -P "$pid" | while read -r child; do
    role=$(tr '\0' '\n' <"/proc/$child/environ" | sed -n 's/.*"task":{"type":"\([a-z]*\)","index":\([0-9]*\).*/\1-\2/p')
    awk -v role="$role" '/^VmHWM/{hwm = $2} /^RssFile/{file = $2} /^RssAnon/{anon = $2}
        END{printf "%-10s VmHWM %5.1f MiB: anonymous %5.1f, files (programs, libraries, data) %5.1f\n", role, hwm / 1024, anon / 1024, file / 1024}' "/proc/$child/status"
done
kill -INT "$pid"
wait "$pid" 2>/dev/null
exit 0 # the job was stopped, as intended
