/* bench_rpc - the cost of a call of lib/rpc, compared with one raw TCP connection in the same run.
 *
 *     bench_rpc [--seconds S] [--threads N] [--only TEXT] [--tls]
 *
 * A server process (RPC and raw TCP on loopback) is forked off; this process is the client. Every case runs for S
 * seconds (default 1.5); us a call is the mean, p50 the median; CPU is the sum of both processes. Bulk cases move 64
 * MiB a round and alternate with raw TCP, so that a noisy machine disturbs both.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/thread.h"
#include "bench_tls.h"
#include "codec/pb.h"

enum { BULK = 64 << 20, MODEL = 407080, RAW_CHUNK = 4 << 20, ROUNDS_MAX = 1 << 20, LANES_MAX = 8 };

static char memory[BULK]; /* what is sent; both processes have it */
static double seconds = 1.5;

static void must(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "bench_rpc: %s\n", e->msg);
        exit(1);
    }
}

/* ---- server process ---- */

/* Request { uint64 answer_size = 1; bytes payload = 15; } -> so many bytes */
static int exchange(void *user UNUSED, const struct rpc_caller *caller UNUSED, const struct rpc_message *request,
                    struct rpc_reply *reply, struct err *e)
{
    size_t n;
    const void *head = rpc_message_head(request, &n);
    struct reader r = reader_of(head, n);
    struct pb_field f;
    size_t want = 0;
    while (pb_next(&r, &f) > 0)
        want = f.number == 1 ? f.u : want;
    if (want > BULK)
        return err_set(e, ERR_INPUT, "%zu bytes, at most %d", want, BULK);
    reply->pieces[0] = (struct rpc_piece){ .data = memory, .size = want };
    reply->npieces = want > 0;
    return 0;
}

static void move_all(int fd, size_t n, ssize_t (*move)(int fd, void *p, size_t n))
{
    static char scratch[RAW_CHUNK];
    while (n > 0) {
        ssize_t got = move(fd, scratch, MIN(n, sizeof(scratch)));
        if (got <= 0)
            exit(got == 0 ? 0 : 1);
        n -= (size_t)got;
    }
}

static ssize_t send_some(int fd, void *p, size_t n)
{
    return send(fd, p, n, MSG_NOSIGNAL);
}

static ssize_t recv_some(int fd, void *p, size_t n)
{
    return recv(fd, p, n, 0);
}

/* One byte 'p' requests 64 MiB; 'P' is followed by 64 MiB and answered with one byte. */
static void raw_loop(void *user)
{
    int fd = accept(*(int *)user, NULL, NULL);
    char c;
    while (recv(fd, &c, 1, 0) == 1) {
        move_all(fd, BULK, c == 'p' ? send_some : recv_some);
        if (c == 'P')
            send(fd, &c, 1, MSG_NOSIGNAL);
    }
}

static int raw_listen(int *ret_port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(a);
    if (bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 4) < 0 || getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        exit(1);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static void server_main(int ports_fd, int threads)
{
    struct err e;
    struct thread raw = { 0 };
    int ports[2];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mem_keep_pages();
    rpc_init();
    struct rpc_method methods[] = {
        { .path = "/bench.Bench/Exchange", .handle = exchange, .no_header = true, .callers = RPC_MEMBERS, .bulk = true }
    };
    struct rpc_server *s = NULL;
    const struct rpc_server_options options = { .threads = threads, .payload_max = BULK };
    const struct rpc_credentials own = bench_credentials("ps-0");
    must(rpc_server_start("127.0.0.1:0", &own, methods, 1, &options, &s, &e), &e);
    ports[0] = rpc_server_port(s);
    int fd = raw_listen(&ports[1]);
    must(thread_start(&raw, "raw", raw_loop, &fd, &e), &e);
    printf("resident memory of the server process before any call: %.1f MB\n",
           (double)(mem_resident() - sizeof(memory)) / 1e6);
    fflush(stdout);
    if (write(ports_fd, ports, sizeof(ports)) != sizeof(ports))
        exit(1);
    for (;;)
        pause();
}

/* ---- client process ---- */

static pid_t server_pid;
static struct rpc_credentials credentials;

static double cpu_now(void) /* of both processes */
{
    clockid_t id;
    struct timespec t = { 0 };
    if (clock_getcpuclockid(server_pid, &id) == 0)
        clock_gettime(id, &t);
    return (double)clock_cpu_ns() / 1e9 + (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t make_head(char out[16], size_t answer)
{
    AUTO_FINI(buf) b = BUF_INIT;
    pb_put_varint(&b, 1, answer);
    memcpy(out, b.data, b.len);
    return b.len;
}

static struct rpc_call *start(struct rpc_channel *c, int lane, size_t push, size_t pull)
{
    char head[16];
    size_t n = make_head(head, pull);
    struct rpc_piece piece = { .data = memory, .size = push };
    return rpc_start(c, lane, "/bench.Bench/Exchange", head, n, &piece, push > 0, 60000);
}

static void finish(struct rpc_call *k, size_t expect, char *copy_to)
{
    struct err e;
    AUTO(rpc_message) *m = NULL;
    must(rpc_wait(k, &m, &e), &e);
    if (rpc_message_payload_size(m) != expect || (copy_to != NULL && !rpc_message_copy(m, 0, copy_to, expect)))
        exit(1);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct client {
    struct thread thread;
    struct rpc_channel *channel;
    size_t push, pull;
    int64_t *ns;
    size_t rounds;
};

static void client_loop(void *user)
{
    struct client *c = user;
    for (int i = 0; i < 50; i++)
        finish(start(c->channel, 0, c->push, c->pull), c->pull, NULL);
    int64_t end = clock_ns() + (int64_t)(seconds * 1e9);
    for (int64_t before = clock_ns(); before < end && c->rounds < ROUNDS_MAX;) {
        finish(start(c->channel, 0, c->push, c->pull), c->pull, NULL);
        int64_t now = clock_ns();
        c->ns[c->rounds++] = now - before;
        before = now;
    }
}

/* n clients, each a thread with its own channel and one call at a time. */
static void latency(const char *target, const char *name, int n, size_t push, size_t pull)
{
    struct err e;
    struct client clients[LANES_MAX] = { 0 };
    for (int i = 0; i < n; i++) {
        clients[i] = (struct client){ .channel = rpc_channel_new(target, &credentials,
                                                                 &(struct rpc_channel_options){ .payload_max = BULK }),
                                      .push = push,
                                      .pull = pull,
                                      .ns = xcalloc(ROUNDS_MAX, sizeof(int64_t)) };
    }
    int64_t t0 = clock_ns();
    double cpu0 = cpu_now();
    for (int i = 0; i < n; i++)
        must(thread_start(&clients[i].thread, "client", client_loop, &clients[i], &e), &e);
    size_t rounds = 0;
    for (int i = 0; i < n; i++) {
        thread_join(&clients[i].thread);
        rounds += clients[i].rounds;
    }
    double wall = (double)(clock_ns() - t0) / 1e9, cpu = cpu_now() - cpu0;
    struct client *c = &clients[0];
    qsort(c->ns, c->rounds, sizeof(c->ns[0]), compare);
    printf("%-44s %8.0f calls/s  p50 %6.1f us  p99 %6.1f us  CPU %6.1f us a call\n", name, (double)rounds / seconds,
           (double)c->ns[c->rounds / 2] / 1e3, (double)c->ns[c->rounds * 99 / 100] / 1e3,
           cpu / wall * seconds / (double)rounds * 1e6);
    for (int i = 0; i < n; i++) {
        rpc_channel_free(clients[i].channel);
        free(clients[i].ns);
    }
}

/* 64 MiB in chunks, one in flight on each lane. */
static void bulk_round(struct rpc_channel *c, int lanes, size_t chunk, bool push, char *copy_to)
{
    struct rpc_call *calls[LANES_MAX] = { NULL };
    size_t n = BULK / chunk;
    for (size_t i = 0; i < n + (size_t)lanes; i++) {
        size_t lane = i % (size_t)lanes;
        if (calls[lane] != NULL)
            finish(TAKE(calls[lane]), push ? 0 : chunk, copy_to != NULL ? copy_to + (i - (size_t)lanes) * chunk : NULL);
        if (i < n)
            calls[lane] = start(c, (int)lane, push ? chunk : 0, push ? 0 : chunk);
    }
}

static void raw_round(int fd, bool push)
{
    char c = push ? 'P' : 'p';
    if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
        exit(1);
    move_all(fd, BULK, push ? send_some : recv_some);
    if (push && recv(fd, &c, 1, 0) != 1)
        exit(1);
}

static double median(int64_t *ns, size_t n)
{
    qsort(ns, n, sizeof(*ns), compare);
    return (double)ns[n / 2];
}

static void bulk(const char *target, int raw, int lanes, size_t chunk, bool push, char *copy_to)
{
    static int64_t rpc_ns[1000], raw_ns[1000];
    AUTO(rpc_channel) *c =
        rpc_channel_new(target, &credentials, &(struct rpc_channel_options){ .lanes = lanes, .payload_max = BULK });
    double cpu = 0, raw_cpu = 0;
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        bulk_round(c, lanes, chunk, push, copy_to);
        raw_round(raw, push);
    }
    for (int64_t end = clock_ns() + (int64_t)(2 * seconds * 1e9); clock_ns() < end && n < COUNT_OF(rpc_ns); n++) {
        int64_t t0 = clock_ns();
        double c0 = cpu_now();
        bulk_round(c, lanes, chunk, push, copy_to);
        int64_t t1 = clock_ns();
        double c1 = cpu_now();
        raw_round(raw, push);
        rpc_ns[n] = t1 - t0;
        raw_ns[n] = clock_ns() - t1;
        cpu += c1 - c0;
        raw_cpu += cpu_now() - c1;
    }
    double ours = BULK / median(rpc_ns, n), tcp = BULK / median(raw_ns, n), gb = (double)n * BULK / 1e9;
    printf("%s 64 MiB, %d lanes x %4zu KiB%-10s %5.2f GB/s  raw TCP %5.2f GB/s  ratio %.2f  CPU %.2f s/GB (raw %.2f)\n",
           push ? "push" : "pull", lanes, chunk >> 10, copy_to != NULL ? ", copied" : "", ours, tcp, ours / tcp,
           cpu / gb, raw_cpu / gb);
}

static int raw_connect(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        exit(1);
    return fd;
}

static void latencies(const char *target)
{
    latency(target, "empty call", 1, 0, 0);
    latency(target, "pull of 64 B", 1, 0, 64);
    latency(target, "pull of 64 B, 2 clients", 2, 0, 64);
    latency(target, "pull of 407080 B", 1, 0, MODEL);
    latency(target, "push of 407080 B", 1, MODEL, 0);
    latency(target, "push of 407080 B, answer as long", 1, MODEL, MODEL);
    latency(target, "push of 407080 B, answer as long, 2 clients", 2, MODEL, MODEL);
}

static void bulks(const char *target, int raw_port)
{
    static const struct {
        int lanes;
        size_t chunk;
        bool copied;
    } CASES[] = { { 1, BULK, false },    { 1, 4 << 20, false }, { 2, 4 << 20, false }, { 4, 1 << 20, false },
                  { 4, 2 << 20, false }, { 4, 4 << 20, false }, { 4, 4 << 20, true } };
    static char destination[BULK];
    memset(destination, 1, sizeof(destination));
    int raw = raw_connect(raw_port);
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        bulk(target, raw, CASES[i].lanes, CASES[i].chunk, false, CASES[i].copied ? destination : NULL);
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        if (!CASES[i].copied)
            bulk(target, raw, CASES[i].lanes, CASES[i].chunk, true, NULL);
    close(raw);
}

struct settings {
    double seconds;
    int64_t threads;
    const char *seconds_text, *only;
    bool tls;
};

static void read_settings(int argc, char **argv, struct settings *ret)
{
    *ret = (struct settings){ .seconds_text = "1.5", .threads = 4, .only = "" };
    const struct opt opts[] = {
        OPT_STR("seconds", NULL, "S", &ret->seconds_text, "how long each case runs (1.5)"),
        OPT_INT("threads", NULL, "N", &ret->threads, 1, 64, "of the server (4)"),
        OPT_STR("only", NULL, "PART", &ret->only, "latency or bulk"),
        OPT_BOOL("tls", &ret->tls, "calls through TLS; raw TCP stays in plain text"),
        OPT_END,
    };
    const struct opt_program program = { .name = "bench_rpc",
                                         .usage = "[flags]",
                                         .about = "What a call of lib/rpc costs, against one raw TCP connection." };
    AUTO_FINI(strlist) args = { 0 };
    enum opt_result result = OPT_OK;
    struct err e;
    must(opt_parse(&program, opts, argc, argv, &args, &result, &e), &e);
    must(str_f64(ret->seconds_text, &ret->seconds, &e), &e);
    if (result == OPT_DONE)
        exit(0);
}

int main(int argc, char **argv)
{
    int ports_pipe[2], ports[2];
    char target[32];
    struct settings settings;
    read_settings(argc, argv, &settings);
    seconds = settings.seconds;

    memset(memory, 1, sizeof(memory));
    if (settings.tls)
        bench_tls_make();
    fflush(stdout);
    if (pipe(ports_pipe) < 0 || (server_pid = fork()) < 0) /* before gRPC starts threads */
        return 1;
    if (server_pid == 0)
        server_main(ports_pipe[1], (int)settings.threads);
    if (read(ports_pipe[0], ports, sizeof(ports)) != sizeof(ports))
        return 1;
    mem_keep_pages();
    rpc_init();
    credentials = bench_credentials("worker-0");
    snprintf(target, sizeof(target), "127.0.0.1:%d", ports[0]);
    if (strcmp(settings.only, "bulk") != 0)
        latencies(target);
    if (strcmp(settings.only, "latency") != 0)
        bulks(target, ports[1]);
    rpc_shutdown();
    kill(server_pid, SIGTERM);
    waitpid(server_pid, NULL, 0);
    bench_tls_remove();
    return 0;
}
