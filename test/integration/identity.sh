# Identities: which bytes travel, which peers are refused, and which files a run leaves. Sourced by run.sh, whose functions it
# uses.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # dir, root, data are run.sh's, and it uses the ports

# Trains a job whose weights are all 1.2345678 at the beginning, through a link that records its bytes.
recorded_job() { # FOLDER FLAG-OF-IDENTITY...: "" is --tls-dir
    local out=$1 flag=$2 link=$root/build/release/fault/slow_link link_pid ps chief port
    [ -x "$link" ] || make -s -C "$root" build/release/fault/slow_link || problem "slow_link cannot be built"
    mkdir -p "$out"
    echo 1000000000 >"$out/rate"
    port=$(free_port) chief_port=$(free_port)
    "$link" "127.0.0.1:$port" "$out/rate" "$out/bytes" >"$out/port" &
    link_pid=$!
    wait_for 60 test -s "$out/port" || return
    ps_port=$(cat "$out/port")
    member ps 0 --listen "127.0.0.1:$port" --no-shared-memory >"$out/ps" 2>&1 &
    ps=$!
    member chief 0 --output-dir "$out/run" >"$out/chief" 2>&1 &
    chief=$!
    member worker 0 --output-dir "$out/run" >"$out/worker" 2>&1 & # member replaces the shell that it runs in
    wait $! || ended_badly $? "the worker failed: $(tail -n 1 "$out/worker")"
    wait $chief || ended_badly $? "the chief failed: $(tail -n 1 "$out/chief")"
    wait $ps || ended_badly $? "the ps failed: $(tail -n 1 "$out/ps")"
    kill $link_pid
    wait $link_pid 2>/dev/null
    [ "$problem_kind" = race ] || return 134 # this is a subshell: its kind of problem is told so
    [ "$problems" = 0 ]
}
member() { # ROLE INDEX [FLAG...], with $flag or its certificate
    local program=trainyard-worker identity=(--tls-dir "$dir/tls/$1-$2")
    [ "$1" = ps ] && program=trainyard-ps
    [ -z "$flag" ] || identity=("$flag")
    TF_CONFIG=$(tf_config "$1" "$2" 1) exec "$program" --job "$dir/job.yaml" --data-dir "$data" "${identity[@]}" "${@:3}"
}
weights_in() { LC_ALL=C grep -qaP '(\x51\x06\x9e\x3f){8}' "$1"; } # 8 numbers of 1.2345678 in a row

test_no_parameter_is_readable_on_the_wire() {
    counting_job 2
    sed -i 's/\(kernel_initializer\): zeros/\1: {Constant: {value: 1.2345678}}/' "$dir/job.yaml"
    replica_file
    (recorded_job "$dir/plain" --insecure) || ended_badly $? "the job without identities failed"
    (recorded_job "$dir/tls-run" "") || ended_badly $? "the job with identities failed"
    at_least "$(stat -c %s "$dir/tls-run/bytes")" 100000 "the number of bytes on the link"
    weights_in "$dir/plain/bytes" || problem "the test does not find the weights in plain text"
    weights_in "$dir/tls-run/bytes" && wrong "weights are readable"
    grep -qa 'worker-0' "$dir/plain/bytes" || problem "the test does not find names in plain text"
    grep -qa 'worker-0\|trainyard.v1\|spiffe' "$dir/tls-run/bytes" && wrong "names are readable"
    for replica in ps chief worker; do
        want_line 'warning: --insecure: everything travels in plain text' "$dir/plain/$replica"
        want_no_line 'plain text' "$dir/tls-run/$replica"
    done
}

test_worker_of_another_job_is_refused() { # it has a certificate of its own, with the same name
    counting_job 400
    replica_file
    identities ps=1,worker=4 "$dir/other"
    local ps chief stranger worker
    ps_port=$(free_port) chief_port=$(free_port)
    replica ps 0 1 >"$dir/ps" 2>&1 &
    ps=$!
    in_background replica chief 0 1
    chief=$!
    wait_for 60 grep -q 'initialised' "$dir/out"
    replica worker 0 1 --tls-dir "$dir/other/worker-0" >"$dir/stranger" 2>&1 &
    stranger=$!
    wait_for 60 grep -q 'waiting .* for the chief: .*certificate' "$dir/stranger"
    wait_for 60 grep -q 'warning: refused: ' "$dir/out"
    want_no_line 'workers 1/1' "$dir/out"
    kill $stranger
    wait $stranger 2>/dev/null
    replica worker 0 1 >"$dir/worker" 2>&1 &
    worker=$!
    wait $worker || ended_badly $? "the worker failed: $(tail -n 1 "$dir/worker")"
    wait $chief || ended_badly $? "the chief failed: $(tail -n 1 "$dir/out")"
    wait $ps || ended_badly $? "the ps failed"
    want_count $((400 * batches))
}

# The certificates of a run: in a private folder that is removed, also after a signal.
test_certificates_of_a_run_are_removed() {
    local pid folder
    mkdir "$dir/runtime"
    XDG_RUNTIME_DIR=$dir/runtime in_background run_bg --set fit.epochs=100000
    pid=$!
    wait_for 60 grep -qE 'step [0-9]+' "$dir/out"
    folder=$(echo "$dir"/runtime/trainyard-identity.*)
    [ "$(ls "$folder" | tr '\n' ' ')" = "chief-0 launcher ps-0 worker-0 worker-1 " ] || problem "$folder has $(ls "$folder")"
    [ "$(stat -c %a "$folder")$(stat -Lc %a "$folder/ps-0/tls.key")" = 700600 ] || problem "others can read the keys"
    kill -INT $pid
    wait $pid
    [ -z "$(ls "$dir/runtime")" ] || problem "left: $(ls "$dir/runtime")"
    want_exit 0 env XDG_RUNTIME_DIR="$dir/runtime" trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" --fresh --tls-dir "$dir/kept" || return
    [ -z "$(ls "$dir/runtime")" ] || problem "left: $(ls "$dir/runtime")"
    want_file "$dir/kept/worker-1/tls.crt"
    want_exit 0 env XDG_RUNTIME_DIR="$dir/runtime" trainyard run "$digits" --data-dir "$data" --output-dir "$dir/run" --fresh --insecure || return
    want_line 'chief-0. warning: --insecure'
}

test_progress_is_for_members() { # of the job
    counting_job 1
    replica_file
    identities ps=1 "$dir/other"
    local port http_port chief
    ps_port=$(free_port) chief_port=$(free_port) port=$(free_port) http_port=$(free_port)
    in_background replica chief 0 1 --https-port "$port" --http-port "$http_port"
    chief=$!
    is_open() { https "$port" progress >"$dir/progress"; }
    wait_for 60 is_open
    want_line '"state": *"[a-z]+"' "$dir/progress"
    http "$http_port" healthz >/dev/null || problem "/healthz needs a certificate"
    http "$http_port" progress >/dev/null && problem "/progress is readable without a certificate"
    curl -sk --max-time 60 "https://127.0.0.1:$port/progress" >"$dir/none"
    want_no_line '"state"' "$dir/none"
    curl -sk --max-time 60 --cert "$dir/other/ps-0/tls.crt" --key "$dir/other/ps-0/tls.key" "https://127.0.0.1:$port/progress" >"$dir/wrong"
    want_no_line '"state"' "$dir/wrong"
    kill -9 $chief
    wait $chief 2>/dev/null
}

# The launcher's clock is 17 hours late when it makes the certificates, so that they are due when the clock is right.
test_certificates_of_a_run_are_renewed() {
    local pid preload=$dir/other_clock.so
    "${CC:-cc}" -shared -fPIC -O1 -o "$preload" "$root/test/integration/other_clock.c" || { problem "no late clock"; return; }
    echo $((-17 * 3600)) >"$dir/late"
    LD_PRELOAD=$preload OTHER_CLOCK=$dir/late OTHER_CLOCK_OF=trainyard in_background run_bg --set fit.epochs=1000000 --tls-dir "$dir/kept"
    pid=$!
    wait_for 60 grep -qE 'step [0-9]+' "$dir/out"
    cp "$dir/kept/worker-0/ca.crt" "$dir/ca"
    rm "$dir/late"
    for replica in ps-0 chief-0 worker-0 worker-1; do
        wait_for 60 grep -qE "^.$replica. took the new certificate in $dir/kept/$replica, valid until" "$dir/out"
    done
    cmp -s "$dir/ca" "$dir/kept/worker-0/ca.crt" || wrong "the CA is another one"
    kill -INT $pid
    wait $pid
    want_no_line 'refused|restart|lost' "$dir/out"
}
