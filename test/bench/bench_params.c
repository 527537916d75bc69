/* bench_params - the cost of pulling and pushing parameters. 64 MiB are compared with one raw TCP connection in the
 * same run. Also measured: the 407 KB of the MNIST example in asynchronous steps, and the optimizer inside one process.
 *
 *     bench_params [--seconds S] [--threads N]
 *
 * A ps process is forked off; pushes apply Adam there. us is the time of a step, p50 the median; CPU is the sum of all
 * processes. Raw TCP moves the same bytes between two memories of that size.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/thread.h"
#include "params/parameters_codec.h"
#include "params/params_admin.h"
#include "params/shard_service.h"
#include "rpc/rpc.h"

enum { BULK = 64 << 20, CALL_MS = 60000, ROUNDS_MAX = 1 << 20, WORKERS_MAX = 4 };
#define UID  "bench"
#define ADAM "{\"Adam\":{}}"

static char *raw_memory; /* BULK bytes in each process */
static double seconds = 1.5;
static int server_threads = 2;

static void must(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "bench_params: %s\n", e->msg);
        exit(1);
    }
}

/* ---- models ---- */

static struct layout *layout_with(const int64_t (*shapes)[2], size_t n)
{
    static const char *const NAMES[] = { "a", "b", "c", "d", "e", "f" };
    struct variable v[COUNT_OF(NAMES)];
    const struct variable *list[COUNT_OF(NAMES)];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t count = (size_t)(shapes[i][0] * shapes[i][1]);
        v[i] = (struct variable){ .name = NAMES[i],
                                  .shape = { 2, { shapes[i][0], shapes[i][1] } },
                                  .offset = at,
                                  .count = count,
                                  .kind = VAR_TRAINABLE };
        list[i] = &v[i];
        at += (count + 15) / 16 * 16;
    }
    return layout_of(list, n, at);
}

static struct layout *mnist(void)
{
    static const int64_t SHAPES[][2] = { { 784, 128 }, { 1, 128 }, { 128, 10 }, { 1, 10 } };
    return layout_with(SHAPES, COUNT_OF(SHAPES));
}

static struct layout *large(void)
{
    static const int64_t SHAPES[][2] = { { 4096, 2048 }, { 2048, 4096 } }; /* 64 MiB */
    return layout_with(SHAPES, COUNT_OF(SHAPES));
}

static struct layout *tiny(void)
{
    static const int64_t SHAPES[][2] = { { 4, 4 } };
    return layout_with(SHAPES, COUNT_OF(SHAPES));
}

static struct layout *(*const MODELS[])(void) = { tiny, mnist, large };
enum { TINY, MNIST, LARGE, NMODELS };

/* ---- the ps process: a shard for each model, and raw TCP ---- */

static void move_all(int fd, bool out)
{
    for (size_t done = 0; done < BULK;) {
        ssize_t n =
            out ? send(fd, raw_memory + done, BULK - done, MSG_NOSIGNAL) : recv(fd, raw_memory + done, BULK - done, 0);
        if (n <= 0)
            _exit(1);
        done += (size_t)n;
    }
}

static void raw_loop(void *user)
{
    for (;;) {
        int fd = accept(*(int *)user, NULL, NULL), one = 1;
        char c;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        while (recv(fd, &c, 1, 0) == 1) {
            move_all(fd, c == 'p');
            if (c == 'P')
                send(fd, &c, 1, MSG_NOSIGNAL);
        }
        close(fd);
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

static void ps_main(int ports_fd)
{
    struct err e;
    struct thread raw = { 0 };
    int ports[NMODELS + 1];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rpc_init();
    for (size_t i = 0; i < NMODELS; i++) {
        struct rpc_method methods[SHARD_METHODS];
        struct rpc_server *server = NULL;
        shard_service_methods(shard_service_new(shard_new(1 + i)), methods);
        must(rpc_server_start(
                 "127.0.0.1:0", &RPC_INSECURE, methods, SHARD_METHODS,
                 &(struct rpc_server_options){ .threads = server_threads, .payload_max = PARAMETERS_PAYLOAD_MAX },
                 &server, &e),
             &e);
        ports[i] = rpc_server_port(server);
    }
    int fd = raw_listen(&ports[NMODELS]);
    must(thread_start(&raw, "raw", raw_loop, &fd, &e), &e);
    if (write(ports_fd, ports, sizeof(ports)) != sizeof(ports))
        exit(1);
    for (;;)
        pause();
}

/* ---- this process ---- */

static int ports[NMODELS + 1];
static pid_t ps_pid;

static double cpu_now(void)
{
    clockid_t id;
    struct timespec t = { 0 };
    if (clock_getcpuclockid(ps_pid, &id) == 0)
        clock_gettime(id, &t);
    return (double)clock_cpu_ns() / 1e9 + (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double median(int64_t *ns, size_t n)
{
    qsort(ns, n, sizeof(*ns), compare);
    return (double)ns[n / 2];
}

struct chief_client {
    char name[32]; /* a worker, with what it needs */
    struct layout *layout;
    struct placement *placement;
    struct params *params;
    float *grads;
    int64_t *ns, first, stride;
    size_t rounds;
    struct thread thread;
};

/* Each worker has its own name: a ps shares memory with one process of a name. */
static void member_open(struct chief_client *m, int model, int worker)
{
    char host[32];
    snprintf(host, sizeof(host), "127.0.0.1:%d", ports[model]);
    snprintf(m->name, sizeof(m->name), "bench-%d", worker);
    m->layout = MODELS[model]();
    m->placement = placement_new(m->layout, PLACEMENT_GREEDY, 1);
    m->params = params_new_grpc(m->layout, m->placement, (char *[]){ host },
                                &(struct params_identity){ UID, m->name, 1 }, &RPC_INSECURE);
    m->grads = xcalloc(m->layout->vector, sizeof(float));
    for (size_t i = 0; i < m->layout->vector; i++)
        m->grads[i] = (float)(i % 17) / 1000;
    m->ns = xcalloc(ROUNDS_MAX, sizeof(int64_t));
    params_set_generation(m->params, 1);
}

static void member_close(struct chief_client *m)
{
    params_free(m->params);
    placement_free(m->placement);
    layout_free(m->layout);
    free(m->grads);
    free(m->ns);
}

static void bring_up(struct params *p, const struct layout *l)
{
    struct err e;
    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    auto_free float *zeros = xcalloc(SEGMENT_MAX / sizeof(float), sizeof(float));
    must(params_init(p, 0, ADAM, CALL_MS, &e), &e);
    for (uint32_t i = 0; i < l->n; i++)
        must(params_restore(p, 0, i, false, 0, &none, zeros, l->segments[i].count, CALL_MS, &e), &e);
    must(params_serve(p, 0, CALL_MS, &e), &e);
}

static int64_t ordinals[NMODELS]; /* names are used up */

static void push_loop(void *user)
{
    struct chief_client *m = user;
    struct err e;
    struct push_result r;
    int64_t end = clock_ns() + (int64_t)(seconds * 1e9);
    for (int64_t before = clock_ns(); before < end && m->rounds < ROUNDS_MAX;) {
        must(params_push(m->params, m->first, m->grads, CALL_MS, &r, &e), &e);
        m->first += m->stride;
        int64_t now = clock_ns();
        m->ns[m->rounds++] = now - before;
        before = now;
    }
}

static void report(const char *name, int64_t *ns, size_t n, size_t all, double cpu)
{
    double p50 = median(ns, n);
    printf("%-44s %8.0f a second  p50 %7.1f us  p99 %7.1f us  CPU %6.1f us each\n", name, (double)all / seconds,
           p50 / 1e3, (double)ns[n * 99 / 100] / 1e3, cpu / (double)all * 1e6);
    fflush(stdout);
}

static void pushes(const char *name, int model, int workers)
{
    struct chief_client m[WORKERS_MAX] = { 0 };
    struct err e;
    size_t all = 0;
    for (int i = 0; i < workers; i++) {
        member_open(&m[i], model, i);
        m[i].first = ordinals[model] + i;
        m[i].stride = workers;
        must(params_pull(m[i].params, CALL_MS, &e), &e);
    }
    double cpu = cpu_now();
    for (int i = 0; i < workers; i++)
        must(thread_start(&m[i].thread, "worker", push_loop, &m[i], &e), &e);
    for (int i = 0; i < workers; i++) {
        thread_join(&m[i].thread);
        all += m[i].rounds;
        ordinals[model] = MAX(ordinals[model], m[i].first);
    }
    report(name, m[0].ns, m[0].rounds, all, cpu_now() - cpu);
    for (int i = 0; i < workers; i++)
        member_close(&m[i]);
}

static void pulls(const char *name, int model)
{
    struct chief_client m = { 0 };
    struct err e;
    member_open(&m, model, 0);
    must(params_pull(m.params, CALL_MS, &e), &e);
    double cpu = cpu_now();
    int64_t end = clock_ns() + (int64_t)(seconds * 1e9);
    for (int64_t before = clock_ns(); before < end && m.rounds < ROUNDS_MAX;) {
        must(params_pull(m.params, CALL_MS, &e), &e);
        int64_t now = clock_ns();
        m.ns[m.rounds++] = now - before;
        before = now;
    }
    report(name, m.ns, m.rounds, m.rounds, cpu_now() - cpu);
    member_close(&m);
}

/* ---- 64 MiB ---- */

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

/* 64 MiB to this process; push: to the ps, and then back. */
static void raw_round(int fd, bool push)
{
    char c = 'P';
    if (push && send(fd, &c, 1, MSG_NOSIGNAL) == 1) {
        move_all(fd, true);
        if (recv(fd, &c, 1, 0) != 1)
            exit(1);
    }
    c = 'p';
    if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
        exit(1);
    move_all(fd, false);
}

/* Ours and raw TCP alternate, so that a noisy machine disturbs both. */
static void bulk(const char *name, bool push)
{
    static int64_t ours[1000], raw[1000];
    struct chief_client m = { 0 };
    struct push_result r;
    struct err e;
    size_t n = 0;
    double cpu = 0;
    int fd = raw_connect(ports[NMODELS]);
    member_open(&m, LARGE, 0);
    must(params_pull(m.params, CALL_MS, &e), &e);
    raw_round(fd, push);
    for (int64_t end = clock_ns() + (int64_t)(4 * seconds * 1e9); clock_ns() < end && n < COUNT_OF(ours); n++) {
        double c0 = cpu_now();
        int64_t t0 = clock_ns();
        must(push ? params_push(m.params, ordinals[LARGE]++, m.grads, CALL_MS, &r, &e)
                  : params_pull(m.params, CALL_MS, &e),
             &e);
        int64_t t1 = clock_ns();
        cpu += cpu_now() - c0;
        raw_round(fd, push);
        ours[n] = t1 - t0;
        raw[n] = clock_ns() - t1;
    }
    double bytes = (push ? 2.0 : 1.0) * BULK, a = bytes / median(ours, n), b = bytes / median(raw, n);
    printf("%-44s %8.2f GB/s  raw TCP %5.2f GB/s  ratio %.2f  CPU %.2f s/GB\n", name, a, b, a / b,
           cpu / ((double)n * bytes / 1e9));
    fflush(stdout);
    close(fd);
    member_close(&m);
}

/* ---- one process ---- */

static void apply_alone(const struct layout *l, const float *grads, double *ret_us)
{
    AUTO(optimizer) *o = NULL;
    struct err e;
    json_auto_t *json = NULL;
    must(json_parse(ADAM, strlen(ADAM), "adam", &json, &e), &e);
    struct node node = node_root(json, NULL);
    must(optimizer_parse(&node, &o, &e), &e);
    void *memory;
    must(mem_alloc(3 * l->vector * sizeof(float), "vector", &memory, &e), &e);
    auto_free float *w = memory;
    float *slots[] = { w + l->vector, w + 2 * l->vector };
    struct opt_state state = { 0 };
    size_t n = 0;
    int64_t begun = clock_ns();
    for (; clock_ns() - begun < (int64_t)(seconds * 5e8); n++) {
        struct opt_step step;
        optimizer_begin(o, &state, &step);
        optimizer_apply(o, &step, w, slots, grads, l->vector);
        optimizer_end(o, &state);
    }
    *ret_us = (double)(clock_ns() - begun) / (double)n / 1e3;
}

static void local(void)
{
    AUTO(layout) *l = mnist();
    AUTO(shard) *shard = shard_new(1);
    AUTO(params) *p = params_new_local(l, shard, &(struct params_identity){ UID, "bench-0", 1 });
    auto_free float *grads = xcalloc(l->vector, sizeof(float));
    struct push_result r;
    struct err e;
    int64_t n = 0;
    double alone;
    for (size_t i = 0; i < l->vector; i++)
        grads[i] = (float)(i % 17) / 1000;
    params_set_generation(p, 1);
    bring_up(p, l);
    apply_alone(l, grads, &alone);
    int64_t begun = clock_ns();
    for (; clock_ns() - begun < (int64_t)(seconds * 5e8); n++)
        must(params_push(p, n, grads, CALL_MS, &r, &e), &e);
    printf("%-44s %8.1f us  optimizer alone %.1f us\n", "push in one process, MNIST",
           (double)(clock_ns() - begun) / (double)n / 1e3, alone);
}

/* ---- main ---- */

static void start_ps(void)
{
    int fds[2];
    if (pipe(fds) < 0 || (ps_pid = fork()) < 0)
        exit(1);
    if (ps_pid == 0)
        ps_main(fds[1]);
    if (read(fds[0], ports, sizeof(ports)) != sizeof(ports))
        exit(1);
}

static void read_flags(int argc, char **argv)
{
    const char *text = "1.5";
    int64_t threads = server_threads;
    struct err e;
    enum opt_result result;
    AUTO_FINI(strlist) args = { 0 };
    const struct opt opts[] = {
        OPT_STR("seconds", NULL, "S", &text, "how long each case runs (1.5)"),
        OPT_INT("threads", NULL, "N", &threads, 1, 64, "of the ps (2)"),
        OPT_END,
    };
    const struct opt_program program = { .name = "bench_params",
                                         .usage = "[flags]",
                                         .about = "Costs of pull and push." };
    must(opt_parse(&program, opts, argc, argv, &args, &result, &e), &e);
    if (result == OPT_DONE)
        exit(0);
    must(str_f64(text, &seconds, &e), &e);
    server_threads = (int)threads;
}

int main(int argc, char **argv)
{
    mem_keep_pages();
    read_flags(argc, argv);
    raw_memory = xmalloc(BULK);
    memset(raw_memory, 1, BULK);
    local();
    start_ps();
    rpc_init();
    for (int i = 0; i < NMODELS; i++) {
        struct chief_client chief = { 0 };
        member_open(&chief, i, 0);
        bring_up(chief.params, chief.layout);
        member_close(&chief);
    }
    pulls("pull of 64 B", TINY);
    pulls("pull, MNIST (407 KB)", MNIST);
    pushes("push and pull, MNIST (407 KB each way)", MNIST, 1);
    pushes("push and pull, MNIST, 2 workers", MNIST, 2);
    bulk("pull of 64 MiB", false);
    bulk("push and pull, 64 MiB each way", true);
    rpc_shutdown();
    kill(ps_pid, SIGKILL);
    return waitpid(ps_pid, NULL, 0) == ps_pid ? 0 : 1;
}
