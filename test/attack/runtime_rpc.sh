# Attacks on the gRPC services of a job: calls that no worker sends, while the job trains. Sourced by runtime.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # dir, root, batches are lib.sh's

# KiB of memory of workers that a ps has mapped.
mapped_kib() { awk '/^[0-9a-f]+-[0-9a-f]+ .*\/memfd:trainyard/ {found = 1; next} /^[0-9a-f]+-[0-9a-f]+ / {found = 0}
    found && /^Size:/ {sum += $2} END {print sum + 0}' "/proc/$1/smaps"; }
peak_kib() { awk '/^VmHWM/ {print $2}' "/proc/$1/status"; } # of resident memory

# A job that counts batches, as three processes: $ps $chief $worker, $ps_port $chief_port. It trains, and does not end
# before want_whole_job: the thread of the chief that would end it waits. The test checks the exact count. ps_flag:
# instead of --no-shared-memory. strategy: of the manifest. The hostile client has the identity of worker-1, which does not run; nor does worker-2.
attacked_job() { # EPOCHS [UNITS]
    counting_job "$1"
    [ $# -lt 2 ] || sed -i -e "s/units: 64,/units: $2,/" "$dir/job.yaml"
    sed -i -e 's/^\( *\(PS\|Worker\|Chief\):\).*/\1 {}/' -e '/^  runPolicy:/,$d' \
        -e 's/^metadata:.*/metadata: {name: job, namespace: default, uid: 0c5f9a3e-1}/' "$dir/job.yaml"
    [ -z "${strategy-}" ] || sed -i "s/^  checkpoint:/  strategy: $strategy\n&/" "$dir/job.yaml"
    ps_port=$(free_port) chief_port=$(free_port)
    identities worker=3
    attacked ps trainyard-ps "${ps_flag:---no-shared-memory}" >"$dir/ps" 2>&1 &
    ps=$!
    build_kill_at
    in_background held "log epoch 1/" "$dir/trains" chief attacked chief trainyard-worker
    chief=$!
    attacked worker trainyard-worker >"$dir/worker" 2>&1 &
    worker=$!
    wait_for 60 test -e "$dir/trains" || { kill -9 "$ps" "$chief" "$worker"; return 1; }
}
attacked() { # ROLE PROGRAM [FLAG...]
    local role=$1 program=$2
    shift 2
    TF_CONFIG="{\"cluster\":{\"chief\":[\"127.0.0.1:$chief_port\"],\"ps\":[\"127.0.0.1:$ps_port\"],\"worker\":[\"127.0.0.1:1\"]},\"task\":{\"type\":\"$role\",\"index\":0}}" \
        exec "$program" --job "$dir/job.yaml" --data-dir "$root/deploy/examples" --output-dir "$dir/run" --tls-dir "$dir/tls/$role-0" "$@"
}
as() { HOSTILE_TLS_DIR=$dir/tls/$1 "${@:2}"; } # MEMBER COMMAND...
want_whole_job() { # EPOCHS: it ends with success, and every batch was applied once
    rm -f "$dir/trains"
    wait "$worker" || ended_badly $? "the worker failed: $(tail -n 1 "$dir/worker")"
    wait "$chief" || ended_badly $? "the chief failed: $(tail -n 1 "$dir/out")"
    wait "$ps" || ended_badly $? "the ps failed: $(tail -n 1 "$dir/ps")"
    want_count $(($1 * batches))
}
answered() { # WANTED MODE...: the server's answer to a hostile call of worker-1, or of another member
    HOSTILE_TLS_DIR=${HOSTILE_TLS_DIR-$dir/tls/worker-1} hostile "${@:2}" >"$dir/answer" 2>&1
    want_line "$1" "$dir/answer"
}

test_last_generation() { # 2^64 - 1 overflowed to 0
    attacked_job 20
    as chief-0 answered '^INPUT generation 18446744073709551615 is out of range' generation "127.0.0.1:$ps_port" ps
    answered '^INPUT generation 18446744073709551615 is out of range' generation "127.0.0.1:$chief_port" chief
    want_whole_job 20
}

test_gradient_that_is_not_finite() {
    attacked_job 20
    answered '^DIVERGED a gradient of batch [0-9]+ is not finite: nothing of this push was applied' nan "127.0.0.1:$ps_port"
    want_whole_job 20
}

test_many_held_ranges() {
    attacked_job 20
    answered '^INPUT 88000 held ranges' held "127.0.0.1:$chief_port" 88000
    want_whole_job 20
}

# A worker of this host offers 3 GiB to a ps of some KiB, then slots beyond their memory: the ps maps nothing.
test_shared_memory_that_is_too_large() {
    local before ps_flag=--shared-memory
    attacked_job 20
    before=$(mapped_kib "$ps")
    answered '^REFUSED [0-9]+ bytes of shared memory, this job needs [0-9]{4,6} at most' share "127.0.0.1:$ps_port" $((3 << 30))
    [ "$(grep -c '^REFUSED the slots reach beyond the memory' "$dir/answer")" = 2 ] || wrong "$(cat "$dir/answer")"
    at_most "$(mapped_kib "$ps")" $((before + 1024)) "the most KiB that were mapped from workers"
    want_whole_job 20
}

# 100 calls whose message is never sent: other calls are served, and the server ends them (after 30 s).
test_calls_without_a_message() {
    lone_ps env
    hostile half-open "127.0.0.1:$ps_port" /trainyard.v1.Parameters/Describe 100 60 >"$dir/half-open" &
    wait_for 60 grep -q open "$dir/half-open"
    wait_for 60 is_ready || problem "the port does not answer beside them"
    want_no_line 'calls were ended' "$dir/half-open"
    wait $!
    want_line '^100 of 100 calls were ended' "$dir/half-open"
    kill -0 "$ps" || problem "the ps is gone"
    end_ps
}

# One client does not read its answers: another one is still served at once.
test_a_client_that_does_not_read_has_its_share() {
    attacked_job 2 87000
    as worker-1 hostile unread "127.0.0.1:$ps_port" 20 10 60 >"$dir/unread" &
    wait_for 60 grep -q refused "$dir/unread"
    as worker-2 answered '^ok' pull "127.0.0.1:$ps_port"
    wait $!
    want_line '^1[0-9] of 20 calls were ended' "$dir/unread"
    want_whole_job 2
}

# 40 pulls of 25 MiB whose answers are never read: the ps keeps some answers and refuses the other pulls, and training
# continues.
test_answers_that_nobody_reads() {
    local before
    attacked_job 2 87000
    before=$(peak_kib "$ps")
    as worker-1 hostile unread "127.0.0.1:$ps_port" 40 30 60 >"$dir/unread"
    at_most "$(peak_kib "$ps")" $((before + 400 * 1024)) "the most KiB that were resident"
    want_line '^3[0-9] of 40 calls were ended' "$dir/unread"
    want_whole_job 2
}

# Batch statistics out of bounds, then numbers of all batches of a step, phase by phase: the ps refuses them at a limit.
test_batch_statistics_without_end() {
    local before strategy='{updates: sync, replicasToAggregate: 2}'
    attacked_job 20
    before=$(peak_kib "$ps")
    answered '^INPUT 4294967295 numbers of a batch, at most 65536' reduce "127.0.0.1:$ps_port"
    want_line '^INPUT phase 4294967295, at most 65536 phases|^(STALE|PENDING) ' "$dir/answer"
    want_line '^INPUT batch 9223372036854775807 is not in the group|^(STALE|PENDING) ' "$dir/answer"
    want_line '^INPUT 17 bytes for 1 numbers of 2 batches' "$dir/answer"
    want_line '^INPUT 0 bytes for 1 numbers of 2 batches' "$dir/answer"
    want_line '^INPUT batch 9223372036854775807 is not the first of a group of 2' "$dir/answer"
    want_line '^after 4194 phases: INPUT more than 4194304 sums in a step' "$dir/answer"
    at_most "$(peak_kib "$ps")" $((before + 100 * 1024)) "the most KiB that were resident"
    want_whole_job 20
}

# 200 answers of half a megabyte are not read: the ps keeps 8 MiB of them, and refuses others.
test_batch_statistics_that_nobody_reads() {
    local before strategy='{updates: sync, replicasToAggregate: 2}'
    attacked_job 20
    before=$(peak_kib "$ps")
    as worker-1 hostile unread-sums "127.0.0.1:$ps_port" 200 50 30 >"$dir/unread"
    at_most "$(peak_kib "$ps")" $((before + 40 * 1024)) "the most KiB that were resident"
    want_line '^the first call was refused or ended' "$dir/unread"
    want_whole_job 20
}

# ---- who may call ----

no_call_is_answered() { # MEMBER or "": neither the chief nor the ps answers it
    local mode wanted='^(LOST|TIMEOUT) '
    for mode in "finish 127.0.0.1:$ps_port" "generation 127.0.0.1:$ps_port ps" "pull 127.0.0.1:$ps_port" \
        "stop 127.0.0.1:$chief_port" "generation 127.0.0.1:$chief_port chief"; do
        # shellcheck disable=SC2086 # words
        answered "$wanted" $mode
        [ $problems = 0 ] || { echo "    it was: $mode: $(cat "$dir/answer")"; break; }
    done
}

test_no_certificate() { # a process that reaches the ports can do nothing
    attacked_job 20
    HOSTILE_UID=0c5f9a3e-1 no_identity no_call_is_answered
    want_line 'warning: refused: ' "$dir/ps"
    want_line 'warning: refused: ' "$dir/out"
    want_whole_job 20
}
no_identity() { local HOSTILE_TLS_DIR=; "$@"; }

test_certificate_of_another_job() { # of the same roles and indexes
    attacked_job 20
    identities worker=2 "$dir/other"
    HOSTILE_UID=0c5f9a3e-1 HOSTILE_TLS_DIR=$dir/other/chief-0 no_call_is_answered
    want_line 'warning: refused: ' "$dir/ps"
    want_line 'warning: refused: ' "$dir/out"
    want_whole_job 20
}

test_a_worker_does_not_end_the_job() { # nor does it begin a life of it, or speak for another one
    attacked_job 20
    answered '^REFUSED .*worker-1 may not call /trainyard.v1.Parameters/Finish: only chief-0 may' finish "127.0.0.1:$ps_port"
    answered '^REFUSED .*worker-1 may not call /trainyard.v1.Parameters/Init: only chief-0 may' generation "127.0.0.1:$ps_port" ps
    answered '^REFUSED .*worker-1 may not call /trainyard.v1.Coordinator/RequestStop' stop "127.0.0.1:$chief_port"
    HOSTILE_SENDER=chief-0 answered "the sender of .* is 'chief-0', and the certificate of its connection is that of worker-1" finish "127.0.0.1:$ps_port"
    HOSTILE_SENDER=worker-0 answered "^REFUSED the sender of .*Register is 'worker-0', and the certificate" generation "127.0.0.1:$chief_port" chief
    want_line 'worker-1 may not call /trainyard.v1.Parameters/Finish' "$dir/ps"
    want_line 'worker-1 may not call /trainyard.v1.Parameters/Init' "$dir/ps"
    want_line "worker-1 called .* as 'chief-0'" "$dir/ps"
    want_line 'worker-1 may not call /trainyard.v1.Coordinator/RequestStop' "$dir/out"
    want_whole_job 20
}

# ---- floods of frames ----

frames() { # TARGET MODE CONNECTIONS SECONDS: see test/attack/hostile_frames.c
    [ -x "$root/build/release/attack/hostile_frames" ] || make -s -C "$root" build/release/attack/hostile_frames
    "$root/build/release/attack/hostile_frames" "$@"
}
# The ps has ended two connections of a client, and said why. It is held until the client has opened many connections, so
# that they come at the same time however slow the client is.
flooded() { # MODE REASON
    local client status
    [ "$1" != connects ] || kill -STOP "$ps"
    frames "127.0.0.1:$ps_port" "$1" 2 60 >"$dir/flood" 2>&1 &
    client=$!
    [ "$1" != connects ] || wait_for 60 grep -q 'all are open' "$dir/flood"
    kill -CONT "$ps"
    wait $client
    status=$?
    [ $status = 0 ] || problem "$1: no connection was ended: $(cat "$dir/flood")"
    grep -qE "warning: refused: a connection of 127.0.0.1 is closed: .*$2" "$dir/ps"
}
# Streams that are reset at once, headers without an end: each connection is ended by what it sends, the ps answers, and
# its memory does not grow.
test_floods_of_frames() {
    local before mode
    lone_ps env
    wait_for 60 is_ready
    before=$(peak_kib "$ps")
    for mode in "resets:200 RST_STREAM frames" "goaways:10 GOAWAY frames" "headers:a header block of more than 64 KiB" \
        "pings:1000 PING frames" "settings:200 SETTINGS frames" "connects:more than 500 came within a second"; do
        wait_for 60 flooded "${mode%%:*}" "${mode#*:}"
        wait_for 60 is_ready || problem "the ps does not answer after $mode"
    done
    at_most "$(peak_kib "$ps")" $((before + 100 * 1024)) "the most KiB that were resident"
    end_ps
}

# A member of the job floods the ps and the chief. The job ends well, and every batch counts once.
test_a_member_that_resets_its_calls() {
    local server before i floods=()
    attacked_job 20
    before=$(peak_kib "$ps")
    member() { openssl s_client -quiet -alpn h2 -tls1_3 -connect "$1" -cert "$dir/tls/worker-1/tls.crt" -key "$dir/tls/worker-1/tls.key" -CAfile "$dir/tls/worker-1/ca.crt"; }
    for server in "127.0.0.1:$ps_port" "127.0.0.1:$chief_port"; do
        for i in 1 2 3 4 5; do frames - resets 1 60 2>/dev/null | member "$server" >/dev/null 2>&1; done &
        floods+=($!)
    done
    wait "${floods[@]}"
    want_line 'warning: refused: a connection of 127.0.0.1 is closed: it sent more than 200 RST_STREAM frames' "$dir/ps"
    want_line 'warning: refused: a connection of 127.0.0.1 is closed: it sent more than 200 RST_STREAM frames' "$dir/out"
    at_most "$(peak_kib "$ps")" $((before + 100 * 1024)) "the most KiB that were resident"
    want_whole_job 20
}
