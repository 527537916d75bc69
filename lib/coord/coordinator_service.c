/* A coordinator's calls as protobuf messages. What comes over the wire is checked here - counts, texts, order of ranges
 * - before the coordinator takes its lock; the caller is the one that rpc established, not one that the message names.
 */
#include "coord/coordinator_service.h"

#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "params/parameters_codec.h"
#include "rpc/coordinator.pb-c.h"

static char *text(const char *s)
{
    return unconst(s != NULL ? s : "");
}

/* ---- client side ---- */

static Trainyard__V1__Header header_of(const struct coordinator_sender *from)
{
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    h.job_uid = text(from->job_uid);
    h.generation = from->generation;
    h.sender = text(from->name);
    h.incarnation = from->incarnation;
    return h;
}

static Trainyard__V1__Report report_of(const struct coordinator_report *r)
{
    Trainyard__V1__Report m;
    trainyard__v1__report__init(&m);
    m.ordinals = unconst(r->ordinals);
    m.n_ordinals = r->n;
    m.sums = unconst(r->sums);
    m.n_sums = r->nsums;
    m.compute_ns = r->compute_ns;
    m.network_ns = r->network_ns;
    m.data_ns = r->data_ns;
    m.wait_ns = r->wait_ns;
    m.steps = r->steps;
    m.staleness_sum = r->staleness_sum;
    return m;
}

void coordinator_pack_register(const struct register_request *q, struct buf *out)
{
    Trainyard__V1__Header header = header_of(&q->sender);
    Trainyard__V1__OrdinalSpace space;
    trainyard__v1__ordinal_space__init(&space);
    space.fingerprint = q->space.fingerprint;
    space.examples = q->space.examples;
    space.batch_size = q->space.batch_size;
    space.seed = q->space.seed;
    space.shuffle = q->space.shuffle;
    space.shuffle_version = q->shuffle_version;
    Trainyard__V1__RegisterRequest m;
    trainyard__v1__register_request__init(&m);
    m.header = &header;
    m.held = unconst(q->held.r);
    m.n_held = q->held.n;
    m.space = &space;
    m.layout_hash = q->layout_hash;
    m.ps_count = q->ps_count;
    m.placement_hash = q->placement_hash;
    m.arithmetic = text(q->arithmetic);
    m.address = text(q->address);
    protobuf_append(&m.base, out);
}

void coordinator_pack_heartbeat(const struct heartbeat_request *q, struct buf *out)
{
    Trainyard__V1__Header header = header_of(&q->sender);
    Trainyard__V1__Report report = report_of(&q->report);
    Trainyard__V1__HeartbeatRequest m;
    trainyard__v1__heartbeat_request__init(&m);
    m.header = &header;
    m.report = &report;
    m.held = unconst(q->held.r);
    m.n_held = q->held.n;
    m.waiting_for = text(q->waiting_for);
    m.diverged = q->diverged;
    m.diverged_ordinal = q->diverged_ordinal;
    protobuf_append(&m.base, out);
}

void coordinator_pack_lease(const struct lease_request *q, struct buf *out)
{
    Trainyard__V1__Header header = header_of(&q->sender);
    Trainyard__V1__Report report = report_of(&q->report);
    Trainyard__V1__LeaseRequest m;
    trainyard__v1__lease_request__init(&m);
    m.header = &header;
    m.report = &report;
    m.held = unconst(q->held.r);
    m.n_held = q->held.n;
    m.want = (uint32_t)MIN(q->want, UINT32_MAX);
    m.lower_only = q->lower_only;
    m.below = q->below;
    protobuf_append(&m.base, out);
}

void coordinator_pack_leave(const struct leave_request *q, struct buf *out)
{
    Trainyard__V1__Header header = header_of(&q->sender);
    Trainyard__V1__Report report = report_of(&q->report);
    Trainyard__V1__LeaveRequest m;
    trainyard__v1__leave_request__init(&m);
    m.header = &header;
    m.report = &report;
    m.reason = text(q->reason);
    protobuf_append(&m.base, out);
}

void coordinator_pack_report_evaluation(const struct evaluation_request *q, struct buf *out)
{
    Trainyard__V1__Header header = header_of(&q->sender);
    Trainyard__V1__EvaluationRequest m;
    trainyard__v1__evaluation_request__init(&m);
    m.header = &header;
    m.step = q->step;
    m.announce = q->announce;
    m.names = unconst(q->names);
    m.n_names = q->nvalues;
    m.values = unconst(q->values);
    m.n_values = q->nvalues;
    protobuf_append(&m.base, out);
}

/* The ranges of a lease in synchronous training. */
static int read_more(const Trainyard__V1__CoordinatorReply *m, struct coordinator_reply *ret, struct err *e)
{
    if (m->group_size < 0 || m->group_size > GROUP_MAX)
        return err_set(e, ERR_INTERNAL, "the chief's answer has groups of %lld batches", (long long)m->group_size);
    if (m->n_more > COUNT_OF(ret->more) || m->n_more % 2 != 0)
        return err_set(e, ERR_INTERNAL, "the chief's answer leases %zu more ranges", m->n_more / 2);
    for (size_t i = 0; i < m->n_more; i += 2) {
        if (m->more[i] < 0 || m->more[i + 1] <= m->more[i])
            return err_set(e, ERR_INTERNAL, "the chief's answer leases batches that are not a valid range");
        ret->more[i] = m->more[i];
        ret->more[i + 1] = m->more[i + 1];
    }
    ret->nmore = m->n_more;
    return 0;
}

static int read_reply(const Trainyard__V1__CoordinatorReply *m, struct coordinator_reply *ret, struct err *e)
{
    if (m->first < 0 || m->count < 0 || m->count > INT64_MAX - m->first)
        return err_set(e, ERR_INTERNAL, "the chief's answer leases batches that are not a valid range");
    *ret = (struct coordinator_reply){ .generation = m->generation,
                                       .chief_incarnation = m->chief_incarnation,
                                       .state =
                                           (unsigned)m->state <= JOB_STOPPING ? (enum job_state)m->state : JOB_STOPPING,
                                       .wait_ms = m->wait_ms,
                                       .heartbeat_ms = m->heartbeat_ms,
                                       .first = m->first,
                                       .count = m->count,
                                       .group_size = m->group_size };
    str_fmt(ret->message, sizeof(ret->message), "%s", m->message);
    str_fmt(ret->job_uid, sizeof(ret->job_uid), "%s", m->job_uid);
    return read_more(m, ret, e);
}

int coordinator_unpack_reply(const void *data, size_t n, struct coordinator_reply *ret, struct err *e)
{
    Trainyard__V1__CoordinatorReply *m = trainyard__v1__coordinator_reply__unpack(NULL, n, data);
    if (m == NULL)
        return err_set(e, ERR_INTERNAL, "the chief's answer is malformed");
    int rc = read_reply(m, ret, e);
    trainyard__v1__coordinator_reply__free_unpacked(m, NULL);
    return rc;
}

/* ---- server side: what came ---- */

/* Texts are shown to people, and go into logs and JSON. */
static int text_check(const char *s, size_t max, struct err *e)
{
    size_t n = strnlen(s, max + 1);
    json_auto_t *valid = n <= max ? json_stringn(s, n) : NULL; /* NULL unless it is UTF-8 */
    if (valid != NULL)
        return 0;
    return err_set(e, ERR_INPUT, "a text of the request is not UTF-8, or has more than %zu bytes", max);
}

static int read_sender(const struct rpc_caller *caller, struct coordinator_sender *ret, struct err *e)
{
    if (caller->role == ROLE_COUNT)
        return err_set(e, ERR_INPUT,
                       "the request has no header with a sender: the name of a replica, such as worker-3, not '%s'",
                       caller->name);
    if (caller->generation > GENERATION_MAX)
        return err_set(e, ERR_INPUT, "generation %llu is out of range: at most %llu",
                       (unsigned long long)caller->generation, (unsigned long long)GENERATION_MAX);
    *ret = (struct coordinator_sender){ .job_uid = caller->job_uid,
                                        .name = caller->name,
                                        .role = caller->role,
                                        .generation = caller->generation,
                                        .incarnation = caller->incarnation };
    return 0;
}

static int read_held(const int64_t *held, size_t n, struct ordinal_ranges *ret, struct err *e)
{
    if (n > COORDINATOR_HELD_MAX)
        return err_set(e, ERR_INPUT, "%zu held ranges, at most %d", n / 2, COORDINATOR_HELD_MAX / 2);
    if (n % 2 != 0)
        return err_set(e, ERR_INPUT, "the last held range of the request has no end");
    for (size_t i = 0; i < n; i++)
        if (held[i] < 0 || (i > 0 && held[i] < held[i - 1]))
            return err_set(e, ERR_INPUT, "the held ranges of the request are not ascending");
    int64_t batches = 0;
    for (size_t i = 0; i < n; i += 2)
        batches += MIN(held[i + 1] - held[i], COORDINATOR_HELD_BATCHES + 1);
    if (batches > COORDINATOR_HELD_BATCHES)
        return err_set(e, ERR_INPUT, "the held ranges of the request have more than %d batches",
                       COORDINATOR_HELD_BATCHES);
    *ret = (struct ordinal_ranges){ .r = held, .n = n };
    return 0;
}

static int read_report(const Trainyard__V1__Report *m, struct coordinator_report *ret, struct err *e)
{
    if (m == NULL) {
        *ret = (struct coordinator_report){ .n = 0 };
        return 0;
    }
    if (m->n_ordinals > COORDINATOR_REPORT_MAX)
        return err_set(e, ERR_INPUT, "%zu reported ordinals, at most %d", m->n_ordinals, COORDINATOR_REPORT_MAX);
    *ret = (struct coordinator_report){ .ordinals = m->ordinals,
                                        .n = m->n_ordinals,
                                        .sums = m->sums,
                                        .nsums = m->n_sums,
                                        .compute_ns = m->compute_ns,
                                        .network_ns = m->network_ns,
                                        .data_ns = m->data_ns,
                                        .wait_ns = m->wait_ns,
                                        .steps = m->steps,
                                        .staleness_sum = m->staleness_sum };
    return 0;
}

static int read_names(const Trainyard__V1__EvaluationRequest *m, struct err *e)
{
    if (m->n_names != m->n_values)
        return err_set(e, ERR_INPUT, "an evaluation of %zu names and %zu values", m->n_names, m->n_values);
    for (size_t i = 0; i < MIN(m->n_names, (size_t)EVALUATION_MAX); i++)
        if (text_check(m->names[i], COORDINATOR_REQUEST_TEXT_MAX, e) < 0)
            return -1;
    return 0;
}

static void write_reply(const struct coordinator_reply *r, struct buf *out)
{
    Trainyard__V1__CoordinatorReply m;
    trainyard__v1__coordinator_reply__init(&m);
    m.generation = r->generation;
    m.chief_incarnation = r->chief_incarnation;
    m.state = (Trainyard__V1__JobState)r->state;
    m.message = text(r->message);
    m.job_uid = text(r->job_uid);
    m.wait_ms = r->wait_ms;
    m.heartbeat_ms = r->heartbeat_ms;
    m.first = r->first;
    m.count = r->count;
    m.more = unconst(r->more);
    m.n_more = r->nmore;
    m.group_size = r->group_size;
    protobuf_append(&m.base, out);
}

/* ---- server side: the handlers ---- */

struct coordinator_call { /* one call */
    struct coordinator *coordinator;
    const struct rpc_caller *caller;
    const ProtobufCMessage *message;
};
#define MESSAGE(x, type) ((const type *)(const void *)(x)->message)

static int on_register(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e)
{
    static const Trainyard__V1__OrdinalSpace no_space = TRAINYARD__V1__ORDINAL_SPACE__INIT;
    const Trainyard__V1__RegisterRequest *m = MESSAGE(x, Trainyard__V1__RegisterRequest);
    const Trainyard__V1__OrdinalSpace *space = m->space != NULL ? m->space : &no_space;
    struct register_request q = { .space = { .fingerprint = space->fingerprint,
                                             .seed = space->seed,
                                             .examples = space->examples,
                                             .batch_size = space->batch_size,
                                             .shuffle = space->shuffle },
                                  .shuffle_version = space->shuffle_version,
                                  .layout_hash = m->layout_hash,
                                  .ps_count = m->ps_count,
                                  .placement_hash = m->placement_hash,
                                  .arithmetic = m->arithmetic,
                                  .address = m->address };
    if (read_sender(x->caller, &q.sender, e) < 0 || read_held(m->held, m->n_held, &q.held, e) < 0 ||
        text_check(m->arithmetic, ARITHMETIC_MAX - 1, e) < 0 || text_check(m->address, VIEW_ADDRESS_SIZE - 1, e) < 0)
        return -1;
    return coordinator_register(x->coordinator, &q, clock_ms(), ret, e);
}

static int on_heartbeat(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e)
{
    const Trainyard__V1__HeartbeatRequest *m = MESSAGE(x, Trainyard__V1__HeartbeatRequest);
    struct heartbeat_request q = { .waiting_for = m->waiting_for,
                                   .diverged = m->diverged,
                                   .diverged_ordinal = m->diverged_ordinal };
    if (read_sender(x->caller, &q.sender, e) < 0 || read_report(m->report, &q.report, e) < 0 ||
        read_held(m->held, m->n_held, &q.held, e) < 0 ||
        text_check(m->waiting_for, COORDINATOR_REQUEST_TEXT_MAX, e) < 0)
        return -1;
    return coordinator_heartbeat(x->coordinator, &q, clock_ms(), ret, e);
}

static int on_lease(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e)
{
    const Trainyard__V1__LeaseRequest *m = MESSAGE(x, Trainyard__V1__LeaseRequest);
    struct lease_request q = { .want = m->want, .lower_only = m->lower_only, .below = m->below };
    if (read_sender(x->caller, &q.sender, e) < 0 || read_report(m->report, &q.report, e) < 0 ||
        read_held(m->held, m->n_held, &q.held, e) < 0)
        return -1;
    return coordinator_lease(x->coordinator, &q, clock_ms(), ret, e);
}

static int on_leave(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e)
{
    const Trainyard__V1__LeaveRequest *m = MESSAGE(x, Trainyard__V1__LeaveRequest);
    struct leave_request q = { .reason = m->reason };
    if (read_sender(x->caller, &q.sender, e) < 0 || read_report(m->report, &q.report, e) < 0 ||
        text_check(m->reason, COORDINATOR_REQUEST_TEXT_MAX, e) < 0)
        return -1;
    return coordinator_leave(x->coordinator, &q, clock_ms(), ret, e);
}

static int on_report_evaluation(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e)
{
    const Trainyard__V1__EvaluationRequest *m = MESSAGE(x, Trainyard__V1__EvaluationRequest);
    struct evaluation_request q = { .step = m->step,
                                    .announce = m->announce,
                                    .names = (const char *const *)m->names,
                                    .values = m->values,
                                    .nvalues = m->n_values };
    if (read_sender(x->caller, &q.sender, e) < 0 || read_names(m, e) < 0)
        return -1;
    return coordinator_report_evaluation(x->coordinator, &q, clock_ms(), ret, e);
}

static int on_request_stop(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e)
{
    const Trainyard__V1__StopRequest *m = MESSAGE(x, Trainyard__V1__StopRequest);
    const struct rpc_caller *caller = x->caller;
    struct stop_job_request q = { .reason = m->reason };
    q.from_launcher = caller->authenticated && caller->identity.role == IDENTITY_LAUNCHER;
    if (q.from_launcher)
        q.sender = (struct coordinator_sender){ .job_uid = caller->job_uid, .name = "launcher", .role = ROLE_COUNT };
    else if (read_sender(caller, &q.sender, e) < 0)
        return -1;
    if (text_check(m->reason, COORDINATOR_REQUEST_TEXT_MAX, e) < 0)
        return -1;
    return coordinator_request_stop(x->coordinator, &q, clock_ms(), ret, e);
}

/* ---- the table ---- */

/* Who may call a method (rpc_method.callers). A leader that trains asks its own coordinator without a call. */
enum {
    REPORTERS = IDENTITY_BIT(ROLE_WORKER) | IDENTITY_BIT(ROLE_EVALUATOR),
    EVALUATORS = IDENTITY_BIT(ROLE_EVALUATOR),
    STOPPERS = IDENTITY_BIT(ROLE_EVALUATOR) | IDENTITY_BIT(IDENTITY_LAUNCHER),
};

#define ROW(id, name, callers, type, fn)                                                                               \
    [id] = { "/trainyard.v1.Coordinator/" name, callers, &trainyard__v1__##type##__descriptor, fn }
static const struct coordinator_row {
    const char *path;
    unsigned callers;
    const ProtobufCMessageDescriptor *request;
    int (*handle)(const struct coordinator_call *x, struct coordinator_reply *ret, struct err *e);
} METHODS[COORDINATOR_METHODS] = {
    ROW(COORDINATOR_REGISTER, "Register", REPORTERS, register_request, on_register),
    ROW(COORDINATOR_HEARTBEAT, "Heartbeat", REPORTERS, heartbeat_request, on_heartbeat),
    ROW(COORDINATOR_LEASE, "Lease", REPORTERS, lease_request, on_lease),
    ROW(COORDINATOR_LEAVE, "Leave", REPORTERS, leave_request, on_leave),
    ROW(COORDINATOR_REPORT_EVALUATION, "ReportEvaluation", EVALUATORS, evaluation_request, on_report_evaluation),
    ROW(COORDINATOR_REQUEST_STOP, "RequestStop", STOPPERS, stop_request, on_request_stop),
};

const char *coordinator_method_path(enum coordinator_method m)
{
    return METHODS[m].path;
}

static int serve(const struct coordinator_row *method, const struct coordinator_call *call,
                 const struct rpc_message *request, struct rpc_reply *reply, struct err *e)
{
    PROTOBUF_AUTO *m = NULL;
    struct coordinator_reply r;
    struct coordinator_call x = *call;
    if (codec_unpack(method->request, request, &m, e) < 0)
        return -1;
    x.message = m;
    if (method->handle(&x, &r, e) < 0)
        return -1;
    write_reply(&r, &reply->head);
    return 0;
}

/* One function a method, because a handler gets the coordinator as its user and not its row. */
#define SERVE(name, id)                                                                                                \
    static int serve_##name(void *user, const struct rpc_caller *caller, const struct rpc_message *q,                  \
                            struct rpc_reply *r, struct err *e)                                                        \
    {                                                                                                                  \
        return serve(&METHODS[id], &(struct coordinator_call){ .coordinator = user, .caller = caller }, q, r, e);      \
    }
SERVE(register, COORDINATOR_REGISTER)
SERVE(heartbeat, COORDINATOR_HEARTBEAT)
SERVE(lease, COORDINATOR_LEASE)
SERVE(leave, COORDINATOR_LEAVE)
SERVE(report_evaluation, COORDINATOR_REPORT_EVALUATION)
SERVE(request_stop, COORDINATOR_REQUEST_STOP)

void coordinator_service_methods(struct coordinator *c, struct rpc_method ret[COORDINATOR_METHODS])
{
    static int (*const HANDLERS[COORDINATOR_METHODS])(void *, const struct rpc_caller *, const struct rpc_message *,
                                                      struct rpc_reply *, struct err *) = {
        [COORDINATOR_REGISTER] = serve_register,
        [COORDINATOR_HEARTBEAT] = serve_heartbeat,
        [COORDINATOR_LEASE] = serve_lease,
        [COORDINATOR_LEAVE] = serve_leave,
        [COORDINATOR_REPORT_EVALUATION] = serve_report_evaluation,
        [COORDINATOR_REQUEST_STOP] = serve_request_stop,
    };
    for (int i = 0; i < COORDINATOR_METHODS; i++)
        ret[i] = (struct rpc_method){
            .path = METHODS[i].path, .handle = HANDLERS[i], .user = c, .callers = METHODS[i].callers
        };
}
