/* hostile_rpc - a client of a job's replicas that sends calls which no worker sends, for tests.
 *
 *   half-open HOST:PORT METHOD N SECONDS   N calls whose message is never sent; prints how many the server ended
 *   unread HOST:PORT N LEAST SECONDS       N pulls of a whole ps that are not read, CALLS_OF_CONNECTION on each
 *                                          connection; prints how many the server ended, 1 s after LEAST of them or
 *                                          after SECONDS
 *   pull HOST:PORT                         one pull of a whole ps, which is read
 *   nan HOST:PORT                          a pull, then a push of NaN for a later batch
 *   generation HOST:PORT ps|chief          Init, or Register, with generation 2^64 - 1
 *   finish HOST:PORT                       Finish of the job
 *   stop HOST:PORT                         RequestStop
 *   held HOST:PORT N                       a Heartbeat that holds N ranges
 *   share HOST:PORT BYTES                  shared memory of that size, then slots beyond the end of a small one
 *   reduce HOST:PORT                       Reduce with numbers out of bounds, then all numbers of a step, phase by
 * phase, until they are refused; prints each answer unread-sums HOST:PORT N LEAST SECONDS  as unread, with calls of
 * Reduce for the widest sums connections HOST:PORT N SECONDS        N connections that send nothing
 *
 * HOSTILE_TLS_DIR is the folder of its identity; without it, or "", the calls are plain text. HOSTILE_SENDER is the
 * name in the Header; without it the name of the certificate, else worker-99.
 *
 * The job is the one that the ps describes, or HOSTILE_UID in generation 1.
 *
 * Prints the answer: "ok", or the code and the message. Ends with its parent. */
#include <arpa/inet.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "coord/coordinator_service.h"
#include "params/parameters_codec.h"
#include "params/push_slot.h"
#include "params/shm_region.h"
#include "rpc/coordinator.pb-c.h"
#include "rpc/rpc_status.h"
#include "rpc/settings.h"

enum { CALL_MS = 10000, ANSWER_MAX = 256 << 20, CALLS_MAX = 1000, CALLS_OF_CONNECTION = 20 };

static struct rpc_credentials credentials;
static char sender[IDENTITY_NAME_SIZE] = "worker-99";

static void die(const char *what)
{
    fprintf(stderr, "hostile_rpc: %s\n", what);
    exit(1);
}

static void identify(void)
{
    static struct rpc_tls *tls;
    struct err e = { .msg = "" };
    const char *dir = getenv("HOSTILE_TLS_DIR"), *name = getenv("HOSTILE_SENDER");
    credentials = RPC_INSECURE;
    if (dir != NULL && dir[0] != '\0') {
        if (rpc_tls_new(dir, &tls, &e) < 0)
            die(e.msg);
        credentials = (struct rpc_credentials){ .security = RPC_TLS, .tls = tls };
        identity_name(rpc_tls_identity(tls), sender);
    }
    if (name != NULL)
        str_fmt(sender, sizeof(sender), "%s", name);
}

static int tell(int rc, const struct err *e)
{
    if (rc < 0)
        printf("%s %s\n", rpc_error_name(e->code), e->msg);
    else
        printf("ok\n");
    return 0;
}

/* ---- calls in form ---- */

static int ask(const char *target, const char *path, const ProtobufCMessage *q, const struct rpc_piece *piece,
               struct rpc_message **ret, struct err *e)
{
    AUTO(rpc_channel) *c =
        rpc_channel_new(target, &credentials, &(struct rpc_channel_options){ .payload_max = ANSWER_MAX });
    AUTO_FINI(buf) head = BUF_INIT;
    codec_pack(q, &head);
    return rpc_unary(c, path, head.data, head.len, piece, piece != NULL, CALL_MS, ret, e);
}

/* The description that a ps sends to every member of the job, or HOSTILE_UID and a generation that may be right. */
static void look(const char *target, Trainyard__V1__DescribeReply **ret)
{
    static Trainyard__V1__DescribeReply guess;
    trainyard__v1__describe_reply__init(&guess);
    guess.job_uid = getenv("HOSTILE_UID");
    guess.generation = 1;
    *ret = &guess;
    if (guess.job_uid != NULL)
        return;
    Trainyard__V1__DescribeRequest q = TRAINYARD__V1__DESCRIBE_REQUEST__INIT;
    Trainyard__V1__Header h;
    AUTO(rpc_message) *m = NULL;
    ProtobufCMessage *answer = NULL;
    struct err e;
    trainyard__v1__header__init(&h);
    h.sender = sender;
    q.header = &h;
    if (ask(target, ps_method_path(PS_DESCRIBE), &q.base, NULL, &m, &e) < 0 ||
        codec_unpack(&trainyard__v1__describe_reply__descriptor, m, &answer, &e) < 0)
        die(e.msg);
    *ret = (Trainyard__V1__DescribeReply *)(void *)answer;
}

static Trainyard__V1__Header header_of(const Trainyard__V1__DescribeReply *ps)
{
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    h.job_uid = ps->job_uid;
    h.generation = ps->generation;
    h.sender = sender;
    h.incarnation = 99;
    return h;
}

/* A request that is only its header, as the job's chief would send it. */
static int ask_ps(const char *target, enum ps_method method, const ProtobufCMessage *q, Trainyard__V1__Header **header)
{
    Trainyard__V1__DescribeReply *ps;
    struct err e = { .msg = "" };
    AUTO(rpc_message) *m = NULL;
    look(target, &ps);
    Trainyard__V1__Header h = header_of(ps);
    *header = &h;
    return tell(ask(target, ps_method_path(method), q, NULL, &m, &e), &e);
}

static int pull(const char *target)
{
    Trainyard__V1__PullRequest q = TRAINYARD__V1__PULL_REQUEST__INIT;
    return ask_ps(target, PS_PULL, &q.base, &q.header);
}

/* Only the first segment, so that its size is found by trial. */
static int push_nan(const char *target)
{
    Trainyard__V1__DescribeReply *ps;
    struct err e = { .msg = "" };
    static float grads[SEGMENT_MAX / sizeof(float)];
    look(target, &ps);
    Trainyard__V1__Header h = header_of(ps);
    Trainyard__V1__PullRequest pull = TRAINYARD__V1__PULL_REQUEST__INIT;
    AUTO(rpc_message) *values = NULL, *m = NULL;
    pull.header = &h;
    pull.count = 1;
    if (ask(target, ps_method_path(PS_PULL), &pull.base, NULL, &values, &e) < 0)
        return tell(-1, &e);
    Trainyard__V1__PushRequest q = TRAINYARD__V1__PUSH_REQUEST__INIT;
    struct rpc_piece piece = { .data = grads, .size = rpc_message_payload_size(values) };
    grads[piece.size / sizeof(float) - 1] = NAN;
    q.header = &h;
    q.count = 1;
    q.ordinal = ps->applied->low_water + 100000;
    return tell(ask(target, ps_method_path(PS_PUSH), &q.base, &piece, &m, &e), &e);
}

static int last_generation(const char *target, bool ps)
{
    struct err e = { .msg = "" };
    AUTO(rpc_message) *m = NULL;
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    Trainyard__V1__RegisterRequest worker;
    trainyard__v1__register_request__init(&worker);
    Trainyard__V1__InitRequest init;
    trainyard__v1__init_request__init(&init);
    Trainyard__V1__DescribeReply *known;
    if (ps) {
        look(target, &known);
        h = header_of(known);
    }
    h.sender = sender;
    h.generation = UINT64_MAX;
    worker.header = init.header = &h;
    init.adopt = true;
    return tell(ps ? ask(target, ps_method_path(PS_INIT), &init.base, NULL, &m, &e)
                   : ask(target, coordinator_method_path(COORDINATOR_REGISTER), &worker.base, NULL, &m, &e),
                &e);
}

static int hold(const char *target, size_t n)
{
    struct err e = { .msg = "" };
    AUTO(rpc_message) *m = NULL;
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    Trainyard__V1__HeartbeatRequest q;
    trainyard__v1__heartbeat_request__init(&q);
    auto_free int64_t *held = xcalloc(2 * n, sizeof(*held));
    for (size_t i = 0; i < 2 * n; i++)
        held[i] = 2 * (int64_t)i;
    h.sender = sender;
    q.header = &h;
    q.held = held;
    q.n_held = 2 * n;
    return tell(ask(target, coordinator_method_path(COORDINATOR_HEARTBEAT), &q.base, NULL, &m, &e), &e);
}

static int finish(const char *target)
{
    Trainyard__V1__FinishRequest q = TRAINYARD__V1__FINISH_REQUEST__INIT;
    return ask_ps(target, PS_FINISH, &q.base, &q.header);
}

static int stop(const char *target)
{
    struct err e = { .msg = "" };
    AUTO(rpc_message) *m = NULL;
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    Trainyard__V1__StopRequest q;
    trainyard__v1__stop_request__init(&q);
    h.sender = sender;
    q.header = &h;
    q.reason = unconst("because I can");
    return tell(ask(target, coordinator_method_path(COORDINATOR_REQUEST_STOP), &q.base, NULL, &m, &e), &e);
}

/* Memory of a worker of this host, which is sparse, so it needs no memory in this process. */
static int offer(const char *target, Trainyard__V1__Header *h, size_t bytes, uint64_t slots_at)
{
    struct err e = { .msg = "" };
    AUTO(shm_region) *r = NULL;
    AUTO(rpc_message) *m = NULL;
    if (shm_region_make(bytes, &r, &e) < 0)
        die(e.msg);
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    q.header = h;
    q.pid = getpid();
    q.fd = r->fd;
    q.size = r->size;
    q.nonce = (ProtobufCBinaryData){ .data = r->data, .len = SHM_REGION_NONCE };
    q.slots_at = slots_at;
    q.slots = 1;
    q.slot_segments = 1;
    q.slot_version = PUSH_SLOT_VERSION;
    return tell(ask(target, ps_method_path(PS_ATTACH), &q.base, NULL, &m, &e), &e);
}

static int share(const char *target, size_t bytes)
{
    Trainyard__V1__DescribeReply *ps;
    look(target, &ps);
    Trainyard__V1__Header h = header_of(ps);
    offer(target, &h, bytes, SHM_REGION_START);
    offer(target, &h, SHM_SLOT_ALIGNMENT, SHM_REGION_START + SHM_SLOT_ALIGNMENT);
    return offer(target, &h, SHM_SLOT_ALIGNMENT, UINT64_MAX - SHM_SLOT_ALIGNMENT + 1);
}

/* ---- batch statistics ---- */

/* The step that is computed now, by all of its ordinals. */
struct step {
    Trainyard__V1__Header header;
    Trainyard__V1__ReduceRequest request;
    int64_t ordinals[GROUP_SUMS_ORDINALS_MAX];
};

static void look_at_step(const char *target, struct step *ret)
{
    Trainyard__V1__DescribeReply *ps;
    look(target, &ps);
    if (ps->groups == NULL)
        die("training is asynchronous");
    const struct groups groups = codec_groups_of(ps->groups);
    int64_t at = ps->applied->low_water, n = groups_end(&groups, at) - at;
    ret->header = header_of(ps);
    trainyard__v1__reduce_request__init(&ret->request);
    ret->request.header = &ret->header;
    ret->request.at = at;
    ret->request.ordinals = ret->ordinals;
    ret->request.n_ordinals = (size_t)MIN(n, (int64_t)GROUP_SUMS_ORDINALS_MAX);
    for (size_t i = 0; i < ret->request.n_ordinals; i++)
        ret->ordinals[i] = at + (int64_t)i;
}

static int reduce_on(struct rpc_channel *c, const Trainyard__V1__ReduceRequest *q, size_t bytes, struct err *e)
{
    static const double zeros[GROUP_SUMS_ORDINALS_MAX * GROUP_SUMS_WIDTH_MAX];
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    const struct rpc_piece piece = { .data = zeros, .size = bytes };
    codec_pack(&q->base, &head);
    return rpc_unary(c, ps_method_path(PS_REDUCE), head.data, head.len, &piece, bytes > 0, CALL_MS, &m, e);
}

static size_t fitting(const Trainyard__V1__ReduceRequest *q)
{
    return q->n_ordinals * q->width * sizeof(double);
}

/* All phases of a step, until one is refused. The job goes on meanwhile: then the next step. */
static int fill_step(const char *target, uint32_t width)
{
    AUTO(rpc_channel) *c =
        rpc_channel_new(target, &credentials, &(struct rpc_channel_options){ .payload_max = ANSWER_MAX });
    struct err e = { .code = ERR_STALE, .msg = "" };
    struct step step;
    while (err_is(&e, ERR_STALE) || err_is(&e, ERR_PENDING)) {
        look_at_step(target, &step);
        step.request.width = width;
        while (reduce_on(c, &step.request, fitting(&step.request), &e) == 0)
            step.request.phase++;
    }
    printf("after %u phases: ", step.request.phase);
    return tell(-1, &e);
}

static int reduce(const char *target)
{
    enum { WIDE, LATE, FAR, LONG, SHORT, LATER, CASES };
    AUTO(rpc_channel) *c =
        rpc_channel_new(target, &credentials, &(struct rpc_channel_options){ .payload_max = ANSWER_MAX });
    for (int i = 0; i < CASES; i++) {
        struct err e = { .msg = "" };
        struct step step;
        look_at_step(target, &step);
        Trainyard__V1__ReduceRequest *q = &step.request;
        q->width = i == WIDE ? UINT32_MAX : 1;
        q->phase = i == LATE ? UINT32_MAX : 0;
        if (i == FAR)
            step.ordinals[0] = INT64_MAX;
        if (i == LATER)
            q->at = INT64_MAX;
        size_t bytes = i == WIDE ? 8 : i == LONG ? fitting(q) + 1 : i == SHORT ? 0 : fitting(q);
        (void)tell(reduce_on(c, q, bytes, &e), &e);
    }
    return fill_step(target, 1000);
}

/* ---- calls that stay open ---- */

struct open_call {
    grpc_call *call;
    grpc_metadata_array initial, trailing;
    grpc_status_code status;
    grpc_slice details;
};

static grpc_channel *connect_to(const char *target)
{
    static char key[] = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL;
    grpc_arg arg = { .type = GRPC_ARG_INTEGER, .key = key, .value.integer = 1 };
    grpc_channel_args args = { 1, &arg };
    grpc_channel_credentials *own = rpc_channel_credentials(&credentials, NULL);
    grpc_channel *c = grpc_channel_create(target, own, &args);
    grpc_channel_credentials_release(own);
    return c;
}

static void open_call(struct open_call *k, grpc_channel *c, grpc_completion_queue *queue, const char *path,
                      grpc_byte_buffer *message)
{
    k->call = grpc_channel_create_call(c, NULL, GRPC_PROPAGATE_DEFAULTS, queue, grpc_slice_from_copied_string(path),
                                       NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_byte_buffer *copy = message != NULL ? grpc_byte_buffer_copy(message) : NULL; /* sending empties it */
    grpc_metadata_array_init(&k->initial);
    grpc_metadata_array_init(&k->trailing);
    grpc_op send[] = { { .op = GRPC_OP_SEND_INITIAL_METADATA },
                       { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = copy } };
    grpc_op hear[] = {
        { .op = GRPC_OP_RECV_INITIAL_METADATA, .data.recv_initial_metadata.recv_initial_metadata = &k->initial },
        { .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
          .data.recv_status_on_client = { .trailing_metadata = &k->trailing,
                                          .status = &k->status,
                                          .status_details = &k->details } },
    };
    if (grpc_call_start_batch(k->call, send, message != NULL ? 2 : 1, NULL, NULL) != GRPC_CALL_OK ||
        grpc_call_start_batch(k->call, hear, COUNT_OF(hear), k, NULL) != GRPC_CALL_OK)
        die("a call cannot be begun");
}

struct patience {
    size_t least;    /* calls that the server ended; then this waits for more of them for one second */
    int64_t seconds; /* at most */
};

/* Opens n calls, and counts those that the server ends. */
static int stay_open(const char *target, const char *path, grpc_byte_buffer *message, size_t n, struct patience p)
{
    static struct open_call calls[CALLS_MAX];
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    grpc_channel *channel = NULL;
    size_t ended = 0;
    for (size_t i = 0; i < MIN(n, (size_t)CALLS_MAX); i++) {
        if (i % CALLS_OF_CONNECTION == 0)
            channel = connect_to(target);
        open_call(&calls[i], channel, queue, path, message);
    }
    printf("open\n");
    fflush(stdout);
    for (int64_t until = clock_ms() + p.seconds * 1000; ended < n && clock_ms() < until;) {
        grpc_event event = grpc_completion_queue_next(
            queue, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(100, GPR_TIMESPAN)), NULL);
        bool one = event.type == GRPC_OP_COMPLETE && event.tag != NULL;
        if (one && ++ended == 1) {
            printf("the first call was refused or ended\n");
            fflush(stdout);
        }
        if (one && ended == p.least)
            until = MIN(until, clock_ms() + 1000);
    }
    printf("%zu of %zu calls were ended\n", ended, n);
    fflush(stdout);
    _exit(0); /* with all connections */
}

static int leave_unread(const char *target, size_t n, struct patience p)
{
    Trainyard__V1__DescribeReply *ps;
    AUTO_FINI(buf) head = BUF_INIT;
    look(target, &ps);
    Trainyard__V1__Header h = header_of(ps);
    Trainyard__V1__PullRequest q = TRAINYARD__V1__PULL_REQUEST__INIT;
    q.header = &h;
    codec_pack(&q.base, &head);
    grpc_slice bytes = grpc_slice_from_copied_buffer(head.data, head.len);
    return stay_open(target, ps_method_path(PS_PULL), grpc_raw_byte_buffer_create(&bytes, 1), n, p);
}

/* Its first call completes a phase, whose sums the others ask for. */
static int leave_sums_unread(const char *target, size_t n, struct patience p)
{
    AUTO_FINI(buf) head = BUF_INIT;
    struct err e = { .code = ERR_STALE, .msg = "" };
    struct step step;
    AUTO(rpc_channel) *c =
        rpc_channel_new(target, &credentials, &(struct rpc_channel_options){ .payload_max = ANSWER_MAX });
    do {
        look_at_step(target, &step);
        step.request.width = GROUP_SUMS_WIDTH_MAX;
    } while (reduce_on(c, &step.request, fitting(&step.request), &e) < 0 &&
             (err_is(&e, ERR_STALE) || err_is(&e, ERR_PENDING)));
    step.request.n_ordinals = 0;
    codec_pack(&step.request.base, &head);
    grpc_slice bytes = grpc_slice_from_copied_buffer(head.data, head.len);
    return stay_open(target, ps_method_path(PS_REDUCE), grpc_raw_byte_buffer_create(&bytes, 1), n, p);
}

static int be_silent(const char *target, size_t n, int64_t seconds)
{
    char host[32];
    int port;
    size_t made = 0;
    struct rlimit limit;
    struct sockaddr_in to = { .sin_family = AF_INET };
    if (sscanf(target, "%31[0-9.]:%d", host, &port) != 2 || inet_pton(AF_INET, host, &to.sin_addr) != 1)
        die("HOST:PORT");
    to.sin_port = htons((uint16_t)port);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)!setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (size_t i = 0; i < n; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        made += fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
    }
    printf("%zu connections\n", made);
    fflush(stdout);
    clock_sleep_ms(seconds * 1000);
    return 0;
}

static size_t number(const char *text)
{
    return strtoul(text, NULL, 10);
}

static int run(int argc, char **argv)
{
    const char *what = argv[1], *target = argv[2];
    if (str_eq(what, "half-open") && argc == 6)
        return stay_open(target, argv[3], NULL, number(argv[4]), (struct patience){ SIZE_MAX, atoll(argv[5]) });
    if (str_eq(what, "unread") && argc == 6)
        return leave_unread(target, number(argv[3]), (struct patience){ number(argv[4]), atoll(argv[5]) });
    if (str_eq(what, "pull") && argc == 3)
        return pull(target);
    if (str_eq(what, "nan") && argc == 3)
        return push_nan(target);
    if (str_eq(what, "generation") && argc == 4)
        return last_generation(target, str_eq(argv[3], "ps"));
    if (str_eq(what, "finish") && argc == 3)
        return finish(target);
    if (str_eq(what, "stop") && argc == 3)
        return stop(target);
    if (str_eq(what, "held") && argc == 4)
        return hold(target, number(argv[3]));
    if (str_eq(what, "share") && argc == 4)
        return share(target, number(argv[3]));
    if (str_eq(what, "reduce") && argc == 3)
        return reduce(target);
    if (str_eq(what, "unread-sums") && argc == 6)
        return leave_sums_unread(target, number(argv[3]), (struct patience){ number(argv[4]), atoll(argv[5]) });
    if (str_eq(what, "connections") && argc == 5)
        return be_silent(target, number(argv[3]), atoll(argv[4]));
    die("see the head of hostile_rpc.c");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        die("see the head of hostile_rpc.c");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rpc_init();
    identify();
    int status = run(argc, argv);
    rpc_shutdown();
    return status;
}
