#include "coord/coordinator_service.h"

#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "params/wire.h"
#include "rpc/coordinator.pb-c.h"

typedef Trainyard__V1__WorkerRequest request_message;
typedef Trainyard__V1__WorkerReply reply_message;

static const char *const PATHS[COORD_KINDS] = {
    [COORD_REGISTER] = "/trainyard.v1.Coordinator/Register",
    [COORD_HEARTBEAT] = "/trainyard.v1.Coordinator/Heartbeat",
    [COORD_LEASE] = "/trainyard.v1.Coordinator/Lease",
    [COORD_LEAVE] = "/trainyard.v1.Coordinator/Leave",
    [COORD_EVALUATION] = "/trainyard.v1.Coordinator/ReportEvaluation",
    [COORD_STOP] = "/trainyard.v1.Coordinator/RequestStop",
};

const char *coord_method_path(enum coord_kind kind)
{
    return PATHS[kind];
}

/* protobuf-c's structs want pointers to non-const; packing only reads them. */
static char *text(const char *s)
{
    union {
        const char *from;
        char *to;
    } u = { .from = s != NULL ? s : "" };
    return u.to;
}

static int64_t *ints(const int64_t *v)
{
    union {
        const int64_t *from;
        int64_t *to;
    } u = { .from = v };
    return u.to;
}

static double *doubles(const double *v)
{
    union {
        const double *from;
        double *to;
    } u = { .from = v };
    return u.to;
}

static char **texts(const char *const *v)
{
    union {
        const char *const *from;
        char **to;
    } u = { .from = v };
    return u.to;
}

static void message_append(const ProtobufCMessage *m, struct buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    buf_reserve(out, n);
    protobuf_c_message_pack(m, (uint8_t *)out->data + out->len);
    out->len += n;
    out->data[out->len] = 0;
}

/* ---- client side ---- */

void coord_pack_request(const struct coord_request *q, struct buf *out)
{
    Trainyard__V1__Header header;
    trainyard__v1__header__init(&header);
    header.job_uid = text(q->job_uid);
    header.generation = q->generation;
    header.sender = text(q->sender);
    header.incarnation = q->incarnation;

    Trainyard__V1__OrdinalSpace space;
    trainyard__v1__ordinal_space__init(&space);
    space.fingerprint = q->space.fingerprint;
    space.examples = q->space.examples;
    space.batch_size = q->space.batch_size;
    space.seed = q->space.seed;
    space.shuffle = q->space.shuffle;
    space.shuffle_version = q->shuffle_version;

    Trainyard__V1__Report report;
    trainyard__v1__report__init(&report);
    const struct coord_report *r = &q->report;
    report.ordinals = ints(r->ordinals);
    report.n_ordinals = r->n;
    report.sums = doubles(r->sums);
    report.n_sums = r->nsums;
    report.compute_ns = r->compute_ns;
    report.network_ns = r->network_ns;
    report.data_ns = r->data_ns;
    report.wait_ns = r->wait_ns;
    report.steps = r->steps;
    report.staleness_sum = r->staleness_sum;

    request_message m;
    trainyard__v1__worker_request__init(&m);
    m.header = &header;
    m.report = &report;
    m.held = ints(q->held.r);
    m.n_held = q->held.n;
    m.role = text(role_name(q->role));
    m.index = (uint32_t)q->index;
    m.space = &space;
    m.layout_hash = q->layout_hash;
    m.ps_count = q->ps_count;
    m.address = text(q->address);
    m.want = (uint32_t)MIN(q->want, UINT32_MAX);
    m.diverged = q->diverged;
    m.diverged_ordinal = q->diverged_ordinal;
    m.text = text(q->text);
    m.step = q->step;
    m.announce = q->announce;
    m.names = texts(q->names);
    m.n_names = q->nvalues;
    m.values = doubles(q->values);
    m.n_values = q->nvalues;
    message_append(&m.base, out);
}

int coord_unpack_reply(const void *data, size_t n, struct coord_reply *ret, struct err *e)
{
    reply_message *m = trainyard__v1__worker_reply__unpack(NULL, n, data);
    if (m == NULL)
        return err_set(e, ERR_INTERNAL, "the chief's answer is malformed");
    if (m->first < 0 || m->count < 0 || m->count > INT64_MAX - m->first) {
        trainyard__v1__worker_reply__free_unpacked(m, NULL);
        return err_set(e, ERR_INTERNAL, "the chief's answer lends a range that is none");
    }
    *ret = (struct coord_reply){ .generation = m->generation,
                                 .chief_incarnation = m->chief_incarnation,
                                 .state = (unsigned)m->state <= JOB_STOPPING ? (enum job_state)m->state : JOB_STOPPING,
                                 .wait_ms = m->wait_ms,
                                 .heartbeat_ms = m->heartbeat_ms,
                                 .valid_ms = m->valid_ms,
                                 .first = m->first,
                                 .count = m->count };
    str_fmt(ret->message, sizeof(ret->message), "%s", m->message);
    str_fmt(ret->job_uid, sizeof(ret->job_uid), "%s", m->job_uid);
    trainyard__v1__worker_reply__free_unpacked(m, NULL);
    return 0;
}

/* ---- server side ---- */

static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return n > 0 && n <= COORD_NAME_MAX && s[n] == '\0';
}

/* They are shown to people, and go into logs and JSON. */
static bool is_text(const char *s)
{
    size_t n = strnlen(s, COORD_TEXT_MAX + 1);
    json_auto_t *valid = n <= COORD_TEXT_MAX ? json_stringn(s, n) : NULL; /* NULL unless it is UTF-8 */
    return valid != NULL;
}

static int texts_check(const request_message *m, struct err *e)
{
    bool good = is_text(m->header->job_uid) && is_text(m->role) && is_text(m->address) && is_text(m->text);
    for (size_t i = 0; good && i < MIN(m->n_names, (size_t)EVALUATION_MAX); i++)
        good = is_text(m->names[i]);
    return good
               ? 0
               : err_set(e, ERR_INPUT, "a text of the request is not UTF-8, or has more than %d bytes", COORD_TEXT_MAX);
}

static int numbers_check(const request_message *m, struct err *e)
{
    size_t reported = m->report != NULL ? m->report->n_ordinals : 0;
    if (m->header->generation > GENERATION_MAX)
        return err_set(e, ERR_INPUT, "generation %llu is out of range: at most %llu",
                       (unsigned long long)m->header->generation, (unsigned long long)GENERATION_MAX);
    if (m->n_held > COORD_HELD_MAX || reported > COORD_REPORT_MAX || m->index > COORD_INDEX_MAX)
        return err_set(e, ERR_INPUT, "%zu held ranges, %zu reported ordinals, index %u: at most %d, %d, %d",
                       m->n_held / 2, reported, m->index, COORD_HELD_MAX / 2, COORD_REPORT_MAX, COORD_INDEX_MAX);
    return 0;
}

static int request_check(const request_message *m, struct err *e)
{
    if (m->header == NULL || !is_name(m->header->sender))
        return err_set(e, ERR_INPUT,
                       "the request has no header with a sender: a name such as worker-3, at most %d bytes",
                       COORD_NAME_MAX);
    if (texts_check(m, e) < 0 || numbers_check(m, e) < 0)
        return -1;
    if (m->n_held % 2 != 0 || m->n_names != m->n_values)
        return err_set(e, ERR_INPUT, "lists of the request do not fit each other");
    for (size_t i = 0; i < m->n_held; i++)
        if (m->held[i] < 0 || (i > 0 && m->held[i] < m->held[i - 1]))
            return err_set(e, ERR_INPUT, "ranges of the request are not ascending");
    return 0;
}

static int request_of(enum coord_kind kind, const request_message *m, struct coord_request *ret, struct err *e)
{
    static const Trainyard__V1__OrdinalSpace no_space = TRAINYARD__V1__ORDINAL_SPACE__INIT;
    static const Trainyard__V1__Report no_report = TRAINYARD__V1__REPORT__INIT;
    const Trainyard__V1__OrdinalSpace *space = m->space != NULL ? m->space : &no_space;
    const Trainyard__V1__Report *r = m->report != NULL ? m->report : &no_report;
    enum role role = ROLE_WORKER;
    if (request_check(m, e) < 0 || (m->role[0] != 0 && role_parse(m->role, &role, e) < 0))
        return -1;
    *ret = (struct coord_request){
        .kind = kind,
        .job_uid = m->header->job_uid,
        .sender = m->header->sender,
        .generation = m->header->generation,
        .incarnation = m->header->incarnation,
        .held = { .r = m->held, .n = m->n_held },
        .report = { .ordinals = r->ordinals,
                    .n = r->n_ordinals,
                    .sums = r->sums,
                    .nsums = r->n_sums,
                    .compute_ns = r->compute_ns,
                    .network_ns = r->network_ns,
                    .data_ns = r->data_ns,
                    .wait_ns = r->wait_ns,
                    .steps = r->steps,
                    .staleness_sum = r->staleness_sum },
        .role = role,
        .index = (int)m->index,
        .space = { .fingerprint = space->fingerprint,
                   .seed = space->seed,
                   .examples = space->examples,
                   .batch_size = space->batch_size,
                   .shuffle = space->shuffle },
        .shuffle_version = space->shuffle_version,
        .layout_hash = m->layout_hash,
        .ps_count = m->ps_count,
        .address = m->address,
        .want = m->want,
        .diverged = m->diverged,
        .diverged_ordinal = m->diverged_ordinal,
        .text = m->text,
        .step = m->step,
        .announce = m->announce,
        .names = (const char *const *)m->names,
        .values = m->values,
        .nvalues = m->n_values,
    };
    return 0;
}

static void reply_pack(const struct coord_reply *r, struct buf *out)
{
    reply_message m;
    trainyard__v1__worker_reply__init(&m);
    m.generation = r->generation;
    m.chief_incarnation = r->chief_incarnation;
    m.state = (Trainyard__V1__JobState)r->state;
    m.message = text(r->message);
    m.job_uid = text(r->job_uid);
    m.wait_ms = r->wait_ms;
    m.heartbeat_ms = r->heartbeat_ms;
    m.valid_ms = r->valid_ms;
    m.first = r->first;
    m.count = r->count;
    message_append(&m.base, out);
}

static int serve(enum coord_kind kind, struct coordinator *c, const struct rpc_message *request,
                 struct rpc_reply *reply, struct err *e)
{
    WIRE_AUTO *m = NULL;
    struct coord_request q;
    struct coord_reply r;
    if (wire_unpack(&trainyard__v1__worker_request__descriptor, request, &m, e) < 0 ||
        request_of(kind, (const request_message *)(const void *)m, &q, e) < 0 ||
        coordinator_handle(c, &q, clock_ms(), &r, e) < 0)
        return -1;
    reply_pack(&r, &reply->head);
    return 0;
}

/* One handler a method: rpc tells a handler its user, not its path. */
#define SERVE(name, kind)                                                                                              \
    static int serve_##name(void *user, const struct rpc_message *q, struct rpc_reply *r, struct err *e)               \
    {                                                                                                                  \
        return serve(kind, user, q, r, e);                                                                             \
    }
SERVE(register, COORD_REGISTER)
SERVE(heartbeat, COORD_HEARTBEAT)
SERVE(lease, COORD_LEASE)
SERVE(leave, COORD_LEAVE)
SERVE(evaluation, COORD_EVALUATION)
SERVE(stop, COORD_STOP)

void coordinator_service_methods(struct coordinator *c, struct rpc_method ret[COORD_KINDS])
{
    static int (*const handlers[COORD_KINDS])(void *, const struct rpc_message *, struct rpc_reply *, struct err *) = {
        [COORD_REGISTER] = serve_register, [COORD_HEARTBEAT] = serve_heartbeat,   [COORD_LEASE] = serve_lease,
        [COORD_LEAVE] = serve_leave,       [COORD_EVALUATION] = serve_evaluation, [COORD_STOP] = serve_stop,
    };
    for (int i = 0; i < COORD_KINDS; i++)
        ret[i] = (struct rpc_method){ .path = PATHS[i], .handle = handlers[i], .user = c };
}
