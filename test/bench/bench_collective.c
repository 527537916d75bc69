/* bench_collective - the time of an all-reduce of MultiWorkerMirrored between processes of this host.
 *
 *     bench_collective [--members N] [--seconds S] [--tls] [--only KIB [--tcp]]
 *
 * N processes (default 2) each have a vector of gradients. The time runs from a barrier until the last of them has all
 * sums. The update with these sums, and the order to begin the next step, are not counted. Each size is measured in
 * turns through shared memory, as between workers of one host, and through TCP, as between hosts. Each process checks
 * the sums once. ms: the median of the rounds; GB/s: the size over this time. --only: one measurement of one size, in
 * ms.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/str.h"
#include "bench_tls.h"
#include "collective/collective_internal.h"
#include "params/parameters_codec.h"

enum { MEMBERS_MAX = 4, ROUNDS_MAX = 1 << 14, TURNS = 3 };
#define UID "bench"

static double seconds = 1.0;
static int64_t members = 2, only_kib;
static bool tls, only_tcp;

/* What the processes of a case share. */
struct board {
    _Atomic int arrived, port[MEMBERS_MAX];
    _Atomic uint32_t turn;
    _Atomic int64_t begin_ns, end_ns[MEMBERS_MAX];
    _Atomic size_t rounds;
    int64_t ns[ROUNDS_MAX]; /* [rounds] */
};
static struct board *board;

static void must(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "bench_collective: %s\n", e->msg);
        exit(1);
    }
}

/* Returns when all have come. Threads of other processes need the cores meanwhile. */
static void barrier(void)
{
    uint32_t turn = atomic_load(&board->turn);
    if (atomic_fetch_add(&board->arrived, 1) + 1 == members) {
        atomic_store(&board->arrived, 0);
        atomic_store(&board->begin_ns, clock_ns());
        atomic_store(&board->turn, turn + 1);
        return;
    }
    while (atomic_load(&board->turn) == turn)
        sched_yield();
}

/* ---- a member ---- */

struct member {
    int index;
    char name[16];
    struct rpc_credentials credentials;
    struct layout *layout;
    float *vector, *own;
    struct shard *shard;
    struct collective *collective;
    struct rpc_server *server;
};

static struct layout *layout_with(size_t floats)
{
    const struct variable v = {
        .name = "v", .shape = { 2, { (int64_t)floats / 64, 64 } }, .count = floats, .kind = VAR_TRAINABLE
    };
    const struct variable *list[] = { &v };
    return layout_of(list, 1, floats);
}

static struct groups groups(void)
{
    return (struct groups){ .size = members, .batches = INT64_MAX / 4 / members * members, .examples = 1, .rest = 1 };
}

static void fill_shard(struct member *m)
{
    static const struct shard_caller CHIEF = { .job_uid = UID, .sender = "chief-0", .generation = 1, .incarnation = 1 };
    const struct groups g = groups();
    struct err e;
    must(shard_init(m->shard, &CHIEF, "{\"SGD\":{}}", m->layout->segments, m->layout->n, m->layout->hash, &e), &e);
    must(shard_set_groups(m->shard, &CHIEF, &g, &e), &e);
    for (size_t i = 0; i < m->layout->n; i++) {
        AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
        const struct segment_spec *s = &m->layout->segments[i];
        struct one_range range = { .data = m->own + s->offset, .size = s->count * sizeof(float) };
        struct bytes_in in = one_range(&range);
        must(shard_restore(m->shard, &CHIEF, s->id, false, 0, &none, &in, &e), &e);
    }
    must(shard_serve(m->shard, &CHIEF, &e), &e);
}

static void member_open(struct member *m, size_t floats, bool share)
{
    struct err e;
    struct rpc_method methods[COLLECTIVE_METHODS];
    void *memory[2];
    str_fmt(m->name, sizeof(m->name), "worker-%d", m->index);
    m->credentials = bench_credentials(m->name);
    m->layout = layout_with(floats);
    for (int i = 0; i < 2; i++) {
        must(mem_alloc(floats * sizeof(float), "a vector", &memory[i], &e), &e);
        memset(memory[i], 0, floats * sizeof(float));
    }
    m->vector = memory[0];
    m->own = memory[1];
    m->shard = shard_new((uint64_t)m->index + 1);
    shard_take_sums(m->shard);
    shard_use_vector(m->shard, m->vector);
    fill_shard(m);
    const struct collective_config config = { .layout = m->layout,
                                              .shard = m->shard,
                                              .name = m->name,
                                              .incarnation = (uint64_t)m->index + 1,
                                              .credentials = &m->credentials,
                                              .share = share };
    must(collective_new(&config, &m->collective, &e), &e);
    collective_methods(m->collective, methods);
    const struct rpc_server_options options = { .threads = 4, .payload_max = PARAMETERS_PAYLOAD_MAX };
    must(rpc_server_start("127.0.0.1:0", &m->credentials, methods, COLLECTIVE_METHODS, &options, &m->server, &e), &e);
    collective_serve(m->collective, m->server);
    atomic_store(&board->port[m->index], rpc_server_port(m->server));
}

/* As a thread that trains and has come for the next step, without the update before it. */
static bool await_sums(struct collective *c, const struct reduction *r)
{
    MUTEX_GUARD(&c->lock);
    c->waiting = true;
    cond_signal(&c->due);
    bool in_time = true;
    while (!reduction_complete(r) && in_time)
        in_time = cond_wait_until(&c->changed, &c->lock, clock_ms() + CALL_MS);
    c->waiting = false;
    return reduction_complete(r);
}

/* The sums of the members' gradients, whose values are index + 1 and more. */
static void check_sums(const struct member *m, const float *sums)
{
    for (size_t i = 0; i < m->layout->vector; i++) {
        float want = 0;
        for (int k = 0; k < members; k++)
            want += (float)(k + 1 + (int)(i % 7));
        if (sums[i] < want - 1e-4F || sums[i] > want + 1e-4F) {
            fprintf(stderr, "bench_collective: sum %zu is %g, wanted %g\n", i, (double)sums[i], (double)want);
            exit(1);
        }
    }
}

static void note_round(int64_t begin_ns)
{
    int64_t end_ns = begin_ns;
    size_t n = atomic_load(&board->rounds);
    for (int i = 0; i < members; i++)
        end_ns = MAX(end_ns, (int64_t)atomic_load(&board->end_ns[i]));
    if (n < ROUNDS_MAX) {
        board->ns[n] = end_ns - begin_ns;
        atomic_store(&board->rounds, n + 1);
    }
}

static void member_round(struct member *m, int64_t at, bool check)
{
    struct err e;
    struct collective *c = m->collective;
    must(collective_enter(c, at, at + members, CALL_MS, &e), &e);
    float *shared = collective_gradient(c), *gradient = shared != NULL ? shared : m->own;
    if (check)
        for (size_t i = 0; i < m->layout->vector; i++)
            gradient[i] = (float)(m->index + 1 + (int)(i % 7));
    barrier();
    int64_t begin_ns = atomic_load(&board->begin_ns);
    collective_give(c, at + m->index, gradient, 0);
    struct reduction *r = reduction_ref(c->giving.to);
    must(collective_given(c, &e), &e);
    collective_leave(c);
    must(await_sums(c, r) ? 0 : err_set(&e, ERR_TIMEOUT, "the sums are not complete"), &e);
    atomic_store(&board->end_ns[m->index], clock_ns());
    barrier();
    if (m->index == 0 && !check)
        note_round(begin_ns);
    if (check)
        check_sums(m, reduction_sums(r));
    reduction_unref(r);
}

static void member_main(int index, size_t floats, bool share)
{
    struct member m = { .index = index };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mem_keep_pages();
    rpc_init();
    member_open(&m, floats, share);
    for (int64_t round = 0;; round++)
        member_round(&m, round * members, round == 0);
}

/* ---- the chief, and the cases ---- */

static void order_start(int to, const struct rpc_credentials *own)
{
    static const char *const NAMES[MEMBERS_MAX] = { "worker-0", "worker-1", "worker-2", "worker-3" };
    struct err e;
    char address[MEMBERS_MAX][32];
    Trainyard__V1__Header header;
    Trainyard__V1__ViewRequest q;
    Trainyard__V1__ViewMember wire[MEMBERS_MAX], *list[MEMBERS_MAX];
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *answer = NULL;
    trainyard__v1__view_request__init(&q);
    trainyard__v1__header__init(&header);
    header.job_uid = unconst(UID);
    header.sender = unconst("chief-0");
    header.generation = header.incarnation = q.view = 1;
    q.header = &header;
    q.action = TRAINYARD__V1__VIEW_ACTION__VIEW_START;
    q.members = list;
    q.n_members = (size_t)members;
    for (int i = 0; i < members; i++) {
        str_fmt(address[i], sizeof(address[i]), "127.0.0.1:%d", atomic_load(&board->port[i]));
        trainyard__v1__view_member__init(list[i] = &wire[i]);
        wire[i].name = unconst(NAMES[i]);
        wire[i].address = address[i];
        wire[i].incarnation = (uint64_t)i + 1;
    }
    const struct rpc_channel_options options = { .lanes = 1, .peer = NAMES[to] };
    AUTO(rpc_channel) *channel = rpc_channel_new(address[to], own, &options);
    codec_pack(&q.base, &head);
    must(rpc_unary(channel, "/trainyard.v1.Peer/View", head.data, head.len, NULL, 0, CALL_MS, &answer, &e), &e);
}

static void chief_main(void)
{
    rpc_init();
    const struct rpc_credentials own = bench_credentials("chief-0");
    for (int i = 0; i < members; i++)
        order_start(i, &own);
    _exit(0);
}

static int order_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void pause_for_members(void)
{
    if (waitpid(-1, NULL, WNOHANG) > 0) /* it has said why */
        exit(1);
    clock_sleep_ms(1);
}

/* The median, in ns. */
static int64_t run_case(size_t floats, bool share)
{
    int status;
    pid_t pids[MEMBERS_MAX], chief;
    memset(board, 0, sizeof(*board));
    for (int i = 0; i < members; i++)
        if ((pids[i] = fork()) == 0)
            member_main(i, floats, share);
    for (int i = 0; i < members; i++)
        while (atomic_load(&board->port[i]) == 0)
            pause_for_members();
    if ((chief = fork()) == 0)
        chief_main();
    if (waitpid(chief, &status, 0) < 0 || status != 0)
        exit(1);
    while (atomic_load(&board->rounds) == 0)
        pause_for_members();
    clock_sleep_ms((int64_t)(seconds * 1000));
    size_t n = atomic_load(&board->rounds);
    for (int i = 0; i < members; i++)
        kill(pids[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    qsort(board->ns, n, sizeof(*board->ns), order_ns);
    return board->ns[n / 2];
}

static void show(const char *how, size_t bytes, int64_t ns[TURNS])
{
    qsort(ns, TURNS, sizeof(*ns), order_ns);
    double middle = (double)ns[TURNS / 2];
    printf("all-reduce, %lld processes, %8zu KiB, %-13s %8.3f ms (%.3f-%.3f) %6.2f GB/s\n", (long long)members,
           bytes >> 10, how, middle / 1e6, (double)ns[0] / 1e6, (double)ns[TURNS - 1] / 1e6, (double)bytes / middle);
    fflush(stdout);
}

static void read_settings(int argc, char **argv)
{
    struct err e;
    const char *seconds_text = "1";
    AUTO_FINI(strlist) args = { 0 };
    enum opt_result result = OPT_OK;
    const struct opt opts[] = {
        OPT_INT("members", NULL, "N", &members, 2, MEMBERS_MAX, "processes (2)"),
        OPT_STR("seconds", NULL, "S", &seconds_text, "how long each case runs, three times (1)"),
        OPT_BOOL("tls", &tls, "calls through TLS"),
        OPT_INT("only", NULL, "KIB", &only_kib, 1, 1 << 20, "one measurement of this size"),
        OPT_BOOL("tcp", &only_tcp, "that through TCP"),
        OPT_END,
    };
    const struct opt_program program = { .name = "bench_collective",
                                         .usage = "[flags]",
                                         .about = "The time of an all-reduce between processes of this host." };
    must(opt_parse(&program, opts, argc, argv, &args, &result, &e), &e);
    must(str_f64(seconds_text, &seconds, &e), &e);
    if (result == OPT_DONE)
        exit(0);
}

int main(int argc, char **argv)
{
    static const size_t BYTES[] = { 64 << 10, 1 << 20, 16 << 20, 64 << 20 };
    read_settings(argc, argv);
    if (tls)
        bench_tls_make();
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    if (only_kib > 0)
        printf("%.4f ms\n", (double)run_case((size_t)only_kib * 1024 / sizeof(float), !only_tcp) / 1e6);
    for (size_t i = 0; only_kib == 0 && i < COUNT_OF(BYTES); i++) {
        int64_t ns[2][TURNS];
        for (int turn = 0; turn < TURNS; turn++)
            for (int share = 0; share < 2; share++)
                ns[share][turn] = run_case(BYTES[i] / sizeof(float), share == 1);
        show("shared memory", BYTES[i], ns[1]);
        show(tls ? "TCP with TLS" : "TCP", BYTES[i], ns[0]);
    }
    bench_tls_remove();
    return 0;
}
