# Attacks on the HTTP pages of a replica, and on its descriptors. Sourced by runtime.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # dir, root are lib.sh's

hostile() { # MODE...: see test/attack/hostile_rpc.c
    [ -x "$root/build/release/attack/hostile_rpc" ] || make -s -C "$root" build/release/attack/hostile_rpc
    "$root/build/release/attack/hostile_rpc" "$@"
}
page() { curl -sS --max-time "${3:-60}" "http://127.0.0.1:$1/$2"; } # PORT PAGE [SECONDS]
page_status() { curl -s -o /dev/null --max-time 60 -w '%{http_code}' "http://127.0.0.1:$1/$2"; }

# A single ps that was never initialised: $ps is its pid, $ps_port and $http_port its ports.
lone_ps() { # [COMMAND that starts it, such as prlimit ...]
    ps_port=$(free_port) http_port=$(free_port)
    "$@" trainyard-ps --insecure --listen "127.0.0.1:$ps_port" --http-port "$http_port" >"$dir/ps" 2>&1 &
    ps=$!
    wait_for 60 page "$http_port" healthz >/dev/null
}
is_ready() { [ "$(page_status "$http_port" readyz)" = 200 ]; } # its page says that the gRPC port answers
end_ps() { kill -9 "$ps" 2>/dev/null; wait "$ps" 2>/dev/null; }

test_slow_http_clients() { # 40 clients send a byte every second: probes are answered, and the clients are cut off
    local clients left
    lone_ps env
    slow_are_gone() {
        left=$(for i in "${clients[@]}"; do kill -0 "$i" 2>/dev/null && echo "$i"; done | wc -l)
        [ "$left" = 0 ]
    }
    served_beside_slow() { # while they are there: if this shell was held for longer, it does not count
        local i
        clients=()
        for i in $(seq 40); do
            (exec 3<>"/dev/tcp/127.0.0.1/$http_port" && printf 'GET /metrics HTTP/1.1\r\nX: ' >&3 &&
                while printf x >&3; do sleep 1; done) 2>/dev/null &
            clients+=($!)
        done
        for i in 1 2 3 4 5; do
            [ "$(page "$http_port" healthz)" = ok ] || problem "/healthz is not answered beside 40 slow clients"
        done
        ! slow_are_gone
    }
    wait_for 60 served_beside_slow || problem "/healthz is answered only when the slow clients are gone"
    wait_for 60 slow_are_gone || problem "$left clients are still connected"
    [ "$(page "$http_port" healthz)" = ok ] || problem "/healthz is not answered any more"
    end_ps
}

# 40 clients do not finish their handshake: some send nothing, some the start of a record, some a byte of it from time to
# time. Members are served beside them, they are disconnected, and the ps spends no processor time on them.
test_unfinished_handshakes() {
    local i clients=() before tls_port
    counting_job 1
    identities ps=1
    ps_port=$(free_port) http_port=$(free_port) tls_port=$(free_port)
    trainyard-ps --listen "127.0.0.1:$ps_port" --tls-dir "$dir/tls/ps-0" --http-port "$http_port" --https-port "$tls_port" --metrics-tls >"$dir/ps" 2>&1 &
    ps=$!
    wait_for 60 https "$tls_port" metrics >/dev/null
    ticks() { awk '{print $14 + $15}' "/proc/$ps/stat"; }
    all_are_gone() { for i in "${clients[@]}"; do ! kill -0 "$i" 2>/dev/null || return 1; done; }
    served_beside_them() { # while they are there: if this shell was held for longer, it does not count
        local i
        clients=() before=$(ticks)
        for i in $(seq 40); do
            (exec 3<>"/dev/tcp/127.0.0.1/$tls_port"
                case $((i % 3)) in
                0) read -r -t 60 -u 3 ;;
                1) printf '\x16\x03\x01\x02\x00\x01\x00' >&3; read -r -t 60 -u 3 ;;
                2) printf '\x16\x03\x01\x02\x00' >&3; while printf '\x01' >&3; do sleep 1; done ;;
                esac) 2>/dev/null &
            clients+=($!)
        done
        for i in 1 2 3 4 5; do
            https "$tls_port" metrics >"$dir/metrics" || problem "a member is not served beside 40 unfinished handshakes"
        done
        ! all_are_gone
    }
    wait_for 60 served_beside_them || problem "members are served only when the unfinished handshakes are gone"
    wait_for 60 all_are_gone || problem "clients are still connected"
    at_most "$(($(ticks) - before))" $(($(getconf CLK_TCK) * 3)) "the processor time of the ps in ticks"
    want_line '^process_open_fds [1-9][0-9]?$' "$dir/metrics"
    end_ps
}

# With a hard limit of 200 descriptors, 500 connections to the gRPC port take them all. Later clients are served, which
# gRPC 1.51 alone does not do: it never accepts again.
test_no_descriptor_is_left() {
    local client
    lone_ps prlimit --nofile=200:200
    hostile connections "127.0.0.1:$ps_port" 500 30 >"$dir/client" &
    client=$!
    wait_for 60 grep -q connections "$dir/client"
    kill -9 $client
    wait $client 2>/dev/null
    wait_for 60 is_ready || problem "the port takes no connection any more: $(page "$http_port" readyz)"
    end_ps
}

test_soft_limit_of_descriptors_is_raised() {
    lone_ps prlimit --nofile=64:4096
    grep -q '^Max open files *4096 *4096' "/proc/$ps/limits" || problem "$(grep 'open files' "/proc/$ps/limits")"
    end_ps
}

test_ready_asks_its_own_port() { # a ps whose gRPC port does not answer is alive but not ready
    lone_ps prlimit --nofile=200:200
    wait_for 60 is_ready || problem "a fresh ps is not ready"
    hostile connections "127.0.0.1:$ps_port" 500 300 >"$dir/client" &
    wait_for 60 grep -q connections "$dir/client"
    not_ready() { ! is_ready; }
    wait_for 60 not_ready || problem "/readyz says 200 while the port turns everybody away"
    kill -9 $!
    end_ps
}
