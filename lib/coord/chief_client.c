/* The worker's thread that talks to the chief. It keeps a queue of leased batches filled ahead of need, and reports
 * what was done; the training loop only takes from the queue. A report stays here until a call that carried it
 * succeeded, so a chief that restarts loses none, and counts none twice because sums count once for each ordinal. */
#include "coord/chief_client.h"

#include <string.h>

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "base/wait.h"
#include "coord/lease_queue.h"
#include "nn/metrics/metrics.h"

enum {
    CALL_MS = 5000, /* deadline of a call to the chief */
    LEAVE_MS = 1000,
    AHEAD_MS = 100, /* work to hold in advance; with much more the others wait for it where epochs are short */
    WANT_MIN = 4,
    WANT_MAX = 4096,
    RETRY_MS = 100,
    STARTING_MS = 20, /* pause between calls while the chief initialises */
    HEARTBEAT_MIN_MS = 10,
};

_Static_assert(8 * WANT_MAX + LEASE_QUEUE_TAKEN <= COORDINATOR_HELD_BATCHES, "the coordinator takes so many batches");

enum chief_call { CALL_REGISTER, CALL_HEARTBEAT, CALL_LEASE, CALL_LEAVE };

/* A report under construction, and the one that is on its way. */
struct pending {
    int64_t *ordinals;
    double *sums;
    size_t n, cap;
    uint64_t compute_ns, network_ns, data_ns, wait_ns, steps, staleness_sum;
};

struct chief_client {
    struct chief_client_config config;
    struct mutex lock;
    struct cond changed; /* for the training loop */
    struct cond work;    /* for the thread */
    struct thread thread;
    bool leaving, registered, resync, poked;
    bool alone; /* the job has finished, and no chief is there to take leave of */
    struct err fatal;
    enum job_state state;
    uint64_t generation, chief;
    char job_uid[128], message[240], waiting[240];
    struct lease_queue queue;
    struct pending report, sending;
    int64_t want, leased, heartbeat_ms; /* leased: by the last lease that was not empty */
    int64_t rate_ms;                    /* when steps were counted last */
    uint64_t rate_steps, steps;
    int64_t diverged;
    int64_t deferred; /* a batch was put back: the chief is asked for those below `below` first; -1: none */
    int64_t below;
    int64_t group_size;
    bool lease_empty; /* the last Lease gave nothing: wait a little */
    int64_t lease_wait_ms;
};

/* ---- reports ---- */

static void pending_fini(struct pending *p)
{
    free(p->ordinals);
    free(p->sums);
}

static void pending_grow(struct pending *p, size_t n, size_t width)
{
    if (n <= p->cap)
        return;
    p->cap = MAX(n, 2 * p->cap);
    p->ordinals = xrealloc(p->ordinals, p->cap * sizeof(*p->ordinals));
    p->sums = xrealloc(p->sums, p->cap * width * sizeof(*p->sums));
}

/* Appends `from` to `to` and empties it. */
static void pending_move(struct pending *to, struct pending *from, size_t width)
{
    pending_grow(to, to->n + from->n, width);
    if (from->n > 0) {
        memcpy(to->ordinals + to->n, from->ordinals, from->n * sizeof(*to->ordinals));
        memcpy(to->sums + to->n * width, from->sums, from->n * width * sizeof(*to->sums));
    }
    to->n += from->n;
    to->compute_ns += from->compute_ns;
    to->network_ns += from->network_ns;
    to->data_ns += from->data_ns;
    to->wait_ns += from->wait_ns;
    to->steps += from->steps;
    to->staleness_sum += from->staleness_sum;
    *from = (struct pending){ .ordinals = from->ordinals, .sums = from->sums, .cap = from->cap };
}

static struct coordinator_report pending_report(const struct pending *p, size_t width)
{
    return (struct coordinator_report){ .ordinals = p->ordinals,
                                        .n = p->n,
                                        .sums = p->sums,
                                        .nsums = p->n * width,
                                        .compute_ns = p->compute_ns,
                                        .network_ns = p->network_ns,
                                        .data_ns = p->data_ns,
                                        .wait_ns = p->wait_ns,
                                        .steps = p->steps,
                                        .staleness_sum = p->staleness_sum };
}

/* ---- the thread's calls ---- */

/* Small leases mean that all workers will soon wait for the last batch: hold no more than that in advance. */
static bool needs_refill(const struct chief_client *m)
{
    return m->deferred >= 0 ||
           (lease_queue_has_room(&m->queue) && lease_queue_left(&m->queue) <= MIN(m->want, m->leased) / 2);
}

/* How many batches to ask for: AHEAD_MS of work at the pace of now. */
static void want_update(struct chief_client *m, int64_t now_ms)
{
    if (now_ms - m->rate_ms >= 100) {
        double per_ms = (double)(m->steps - m->rate_steps) / (double)(now_ms - m->rate_ms);
        if (m->rate_ms > 0)
            m->want = MAX((int64_t)WANT_MIN, MIN((int64_t)WANT_MAX, (int64_t)(per_ms * AHEAD_MS)));
        m->rate_ms = now_ms;
        m->rate_steps = m->steps;
    }
}

static enum chief_call next_call(struct chief_client *m, int64_t now_ms)
{
    if (!m->registered || m->resync)
        return CALL_REGISTER;
    if (m->diverged >= 0 || m->state != JOB_TRAINING)
        return CALL_HEARTBEAT;
    want_update(m, now_ms);
    return needs_refill(m) ? CALL_LEASE : CALL_HEARTBEAT;
}

/* Takes a reply in; called with the lock held. */
static void apply_reply(struct chief_client *m, enum chief_call call, const struct coordinator_reply *r)
{
    if (call == CALL_REGISTER) {
        m->registered = true;
        m->resync = false;
        m->chief = r->chief_incarnation;
        m->group_size = r->group_size;
        if (m->job_uid[0] == 0) /* written once: others read it without the lock */
            str_fmt(m->job_uid, sizeof(m->job_uid), "%s", r->job_uid);
        if (r->state == JOB_FINISHED && m->steps == 0 && m->config.has_finished != NULL) /* it came too late */
            report_info(m->config.report, "%s", r->message);
    } else if (r->chief_incarnation != m->chief) {
        m->registered = false; /* a new chief: introduce ourselves, keep our leases */
    }
    m->state = r->state;
    if (m->generation != r->generation && m->group_size > 0)
        lease_queue_clear(&m->queue); /* training may go on from an earlier step */
    m->generation = r->generation;
    m->heartbeat_ms = MAX(r->heartbeat_ms, HEARTBEAT_MIN_MS);
    str_fmt(m->message, sizeof(m->message), "%s", r->message);
    if (call != CALL_LEASE)
        return;
    m->lease_empty = r->count == 0;
    m->lease_wait_ms = MAX(r->wait_ms, 1);
    if (r->count <= 0)
        return;
    lease_queue_add(&m->queue, r->first, r->first + r->count);
    int64_t leased = r->count;
    for (size_t i = 0; i < r->nmore; i += 2) {
        lease_queue_add(&m->queue, r->more[i], r->more[i + 1]);
        leased += r->more[i + 1] - r->more[i];
    }
    if (m->deferred < 0)
        m->leased = leased;
}

static void note_error(struct chief_client *m, const struct err *e)
{
    if (err_is(e, ERR_REFUSED) || err_is(e, ERR_FENCED) || err_is(e, ERR_INPUT))
        m->fatal = *e;
    else if (err_is(e, ERR_NOT_READY))
        m->registered = false;
    str_fmt(m->message, sizeof(m->message), "%s", e->msg);
}

/* What a call says, copied under the lock. */
struct call_state {
    struct coordinator_sender sender;
    int64_t held[LEASE_QUEUE_HELD];
    size_t nheld;
    int64_t want, deferred, below, diverged;
    char waiting[240], job_uid[128];
};

static void copy_state(struct chief_client *m, struct call_state *ret)
{
    MUTEX_GUARD(&m->lock);
    pending_move(&m->sending, &m->report, m->config.width);
    ret->sender = m->config.identity.sender;
    ret->sender.generation = m->generation;
    ret->nheld = lease_queue_held(&m->queue, ret->held);
    ret->want = m->want;
    ret->deferred = m->deferred;
    ret->below = m->below;
    ret->diverged = m->diverged;
    str_fmt(ret->waiting, sizeof(ret->waiting), "%s", m->waiting);
    str_fmt(ret->job_uid, sizeof(ret->job_uid), "%s", m->job_uid);
    ret->sender.job_uid = ret->job_uid;
}

static int send_call(struct chief_client *m, enum chief_call call, const struct call_state *s, int64_t deadline_ms,
                     struct coordinator_reply *ret, struct err *e)
{
    struct coordinator_client *c = m->config.coordinator;
    struct ordinal_ranges held = { .r = s->held, .n = s->nheld };
    struct coordinator_report report = pending_report(&m->sending, m->config.width);
    struct register_request registration = m->config.identity;
    switch (call) {
    case CALL_REGISTER:
        registration.sender = s->sender;
        registration.held = held;
        return coordinator_client_register(c, &registration, deadline_ms, ret, e);
    case CALL_HEARTBEAT:
        return coordinator_client_heartbeat(c,
                                            &(struct heartbeat_request){ .sender = s->sender,
                                                                         .report = report,
                                                                         .held = held,
                                                                         .waiting_for = s->waiting,
                                                                         .diverged = s->diverged >= 0,
                                                                         .diverged_ordinal = s->diverged },
                                            deadline_ms, ret, e);
    case CALL_LEASE:
        return coordinator_client_lease(c,
                                        &(struct lease_request){ .sender = s->sender,
                                                                 .report = report,
                                                                 .held = held,
                                                                 .want = s->want,
                                                                 .lower_only = s->deferred >= 0,
                                                                 .below = s->deferred >= 0 ? s->below : 0 },
                                        deadline_ms, ret, e);
    case CALL_LEAVE:
        return coordinator_client_leave(
            c, &(struct leave_request){ .sender = s->sender, .report = report, .reason = s->waiting }, deadline_ms, ret,
            e);
    }
    return err_set(e, ERR_INTERNAL, "unknown call");
}

/* One call. False when the chief did not answer, or cannot register this worker yet. */
static bool chief_client_call(struct chief_client *m, enum chief_call call, int64_t deadline_ms)
{
    struct call_state state;
    struct coordinator_reply reply;
    struct err e = { 0 };
    copy_state(m, &state);
    bool ok = send_call(m, call, &state, deadline_ms, &reply, &e) == 0;
    MUTEX_GUARD(&m->lock);
    if (ok && call != CALL_REGISTER) /* the report has arrived */
        m->sending =
            (struct pending){ .ordinals = m->sending.ordinals, .sums = m->sending.sums, .cap = m->sending.cap };
    if (ok)
        apply_reply(m, call, &reply);
    else
        note_error(m, &e);
    if (!ok || (call == CALL_LEASE && state.deferred == m->deferred)) /* a batch may have been deferred meanwhile */
        m->deferred = -1;
    cond_broadcast(&m->changed);
    return ok || m->fatal.code != ERR_NONE || (err_is(&e, ERR_NOT_READY) && call != CALL_REGISTER);
}

/* Waits for a reason to call: little work left, a resync, divergence, leaving, or the next heartbeat. */
static void wait_for_reason(struct chief_client *m, int64_t called_ms)
{
    MUTEX_GUARD(&m->lock);
    for (;;) {
        int64_t now = clock_ms();
        int64_t pause = m->heartbeat_ms;
        if (m->state != JOB_TRAINING)
            pause = STARTING_MS;
        else if (needs_refill(m))
            pause = m->lease_empty && m->deferred < 0 ? m->lease_wait_ms : 0;
        if (m->leaving || m->resync || m->poked || !m->registered || now >= called_ms + pause)
            break;
        cond_wait_until(&m->work, &m->lock, called_ms + pause);
    }
    m->poked = false;
}

static void explain_absence(struct chief_client *m, struct wait_state *away)
{
    int64_t now = clock_ms(), waited_ms = wait_ms(away, now);
    MUTEX_GUARD(&m->lock);
    if (waited_ms > m->config.max_wait_ms) {
        err_put(&m->fatal, ERR_LOST, "no chief for %lld s: %s", (long long)waited_ms / 1000, m->message);
        cond_broadcast(&m->changed);
    } else if (wait_due(away, now)) {
        report_info(m->config.report, "waiting %lld s for the chief: %s", (long long)waited_ms / 1000, m->message);
    }
}

/* Has the chief gone because the job has finished? Then no chief comes that could say so. */
static bool has_ended(struct chief_client *m)
{
    int64_t step = 0;
    if (m->config.has_finished == NULL || !m->config.has_finished(m->config.user, m->job_uid, &step))
        return false;
    report_info(m->config.report, "the job has finished, at step %lld", (long long)step);
    MUTEX_GUARD(&m->lock);
    m->state = JOB_FINISHED;
    m->registered = m->alone = true;
    cond_broadcast(&m->changed);
    return true;
}

static void chief_client_thread(void *user)
{
    struct chief_client *m = user;
    struct wait_state away = { 0 };
    for (;;) {
        enum chief_call call;
        int64_t now = clock_ms();
        {
            MUTEX_GUARD(&m->lock);
            if (m->leaving || m->fatal.code != ERR_NONE)
                return;
            call = next_call(m, now);
        }
        if (chief_client_call(m, call, CALL_MS)) {
            if (wait_end(&away, clock_ms(), NULL))
                report_info(m->config.report, "the chief is back");
            wait_for_reason(m, now);
            continue;
        }
        if (has_ended(m))
            return;
        wait_begin(&away, now, WAIT_EXPLAIN_MS);
        explain_absence(m, &away);
        MUTEX_GUARD(&m->lock);
        if (!m->leaving)
            cond_wait_until(&m->work, &m->lock, clock_ms() + RETRY_MS);
    }
}

/* ---- the training loop's side ---- */

int chief_client_start(const struct chief_client_config *config, struct chief_client **ret, struct err *e)
{
    AUTO(chief_client) *m = xcalloc(1, sizeof(*m));
    m->deferred = -1;
    m->config = *config;
    mutex_init(&m->lock);
    cond_init(&m->changed);
    cond_init(&m->work);
    m->want = m->leased = 2 * WANT_MIN;
    m->heartbeat_ms = 1000;
    m->diverged = -1;
    str_fmt(m->job_uid, sizeof(m->job_uid), "%s", config->identity.sender.job_uid);
    if (thread_start(&m->thread, "chief client", chief_client_thread, m, e) < 0)
        return -1;
    *ret = TAKE(m);
    return 0;
}

void chief_client_leave(struct chief_client *m, const char *reason)
{
    if (m == NULL || !m->thread.started)
        return;
    {
        MUTEX_GUARD(&m->lock);
        m->leaving = true;
        m->queue = (struct lease_queue){ 0 };
        str_fmt(m->waiting, sizeof(m->waiting), "%s", reason);
        cond_broadcast(&m->work);
    }
    thread_join(&m->thread);
    m->thread.started = false;
    if (m->registered && !m->alone && m->fatal.code == ERR_NONE)
        (void)chief_client_call(m, CALL_LEAVE, LEAVE_MS);
}

void chief_client_free(struct chief_client *m)
{
    if (m == NULL)
        return;
    chief_client_leave(m, "exit");
    pending_fini(&m->report);
    pending_fini(&m->sending);
    cond_fini(&m->work);
    cond_fini(&m->changed);
    mutex_fini(&m->lock);
    free(m);
}

/* Waits up to 100 ms (so that signals are noticed) for a change; explains long waits. Lock held. */
static void wait_change(struct chief_client *m, struct wait_state *wait)
{
    int64_t now = clock_ms();
    if (m->message[0] != 0 && m->registered)
        wait_report(wait, now, m->config.report, m->message);
    cond_wait_until(&m->changed, &m->lock, now + 100);
}

static int fatal_copy(const struct chief_client *m, struct err *e)
{
    return err_set(e, m->fatal.code, "%s", m->fatal.msg);
}

static bool chief_client_stops(const struct chief_client *m)
{
    return (stop_count() > 0 && !m->config.ignores_signals) || m->state == JOB_STOPPING;
}

int chief_client_next(struct chief_client *m, enum chief_client_next *ret, int64_t *ret_ordinal, struct err *e)
{
    struct wait_state wait = { 0 };
    wait_begin(&wait, clock_ms(), WAIT_EXPLAIN_MS);
    MUTEX_GUARD(&m->lock);
    for (;; wait_change(m, &wait)) {
        if (m->fatal.code != ERR_NONE)
            return fatal_copy(m, e);
        if (chief_client_stops(m) || m->diverged >= 0) {
            *ret = CHIEF_CLIENT_STOPPING;
            return 0;
        }
        if (lease_queue_has_work(&m->queue) && m->deferred < 0) {
            *ret = CHIEF_CLIENT_ORDINAL;
            *ret_ordinal = lease_queue_take(&m->queue);
            if (needs_refill(m))
                cond_signal(&m->work);
            return 0;
        }
        if (m->registered && m->state == JOB_FINISHED) {
            *ret = CHIEF_CLIENT_FINISHED;
            return 0;
        }
    }
}

int64_t chief_client_peek(struct chief_client *m)
{
    MUTEX_GUARD(&m->lock);
    return lease_queue_first(&m->queue);
}

bool chief_client_has_work(struct chief_client *m)
{
    MUTEX_GUARD(&m->lock);
    return lease_queue_has_work(&m->queue);
}

void chief_client_done(struct chief_client *m, const struct chief_client_step *s)
{
    MUTEX_GUARD(&m->lock);
    struct pending *p = &m->report;
    size_t width = m->config.width;
    pending_grow(p, MAX(p->n + 1, (size_t)64), width);
    p->ordinals[p->n] = s->ordinal;
    memcpy(p->sums + p->n * width, s->sums, width * sizeof(*p->sums));
    p->n++;
    p->steps++;
    p->compute_ns += s->compute_ns;
    p->network_ns += s->network_ns;
    p->data_ns += s->data_ns;
    p->wait_ns += s->wait_ns;
    p->staleness_sum += s->staleness;
    m->steps++;
    lease_queue_end(&m->queue, s->ordinal);
    if (m->queue.ntaken == 0 && m->queue.n == 0) {
        m->poked = true; /* the last leased batch: report it at once */
        cond_signal(&m->work);
    }
}

void chief_client_drop(struct chief_client *m, int64_t ordinal)
{
    MUTEX_GUARD(&m->lock);
    lease_queue_end(&m->queue, ordinal);
}

void chief_client_defer(struct chief_client *m, int64_t ordinal, int64_t below)
{
    MUTEX_GUARD(&m->lock);
    lease_queue_put_back(&m->queue, ordinal);
    m->deferred = lease_queue_first(&m->queue);
    m->below = below;
    cond_signal(&m->work);
}

int64_t chief_client_group_size(struct chief_client *m)
{
    MUTEX_GUARD(&m->lock);
    return m->group_size;
}

void chief_client_diverged(struct chief_client *m, int64_t ordinal)
{
    MUTEX_GUARD(&m->lock);
    m->diverged = ordinal;
    m->poked = true;
    cond_signal(&m->work);
}

int chief_client_generation(struct chief_client *m, uint64_t stale, uint64_t *ret, struct err *e)
{
    struct wait_state wait = { 0 };
    wait_begin(&wait, clock_ms(), WAIT_EXPLAIN_MS);
    MUTEX_GUARD(&m->lock);
    for (;; wait_change(m, &wait)) {
        if (m->fatal.code != ERR_NONE)
            return fatal_copy(m, e);
        if (chief_client_stops(m))
            return err_set(e, ERR_STOPPED, "stopped while waiting for the job to train");
        if (m->registered && m->state == JOB_FINISHED)
            return err_set(e, ERR_STOPPED, "the job has finished");
        int64_t waited_ms = wait_ms(&wait, clock_ms());
        if (waited_ms > m->config.max_wait_ms)
            return err_set(e, ERR_TIMEOUT, "waited %lld s for %s", (long long)waited_ms / 1000,
                           m->message[0] != 0 ? m->message : "the chief to begin a new generation");
        if (m->registered && m->state == JOB_TRAINING && m->generation != stale && !m->resync) {
            *ret = m->generation;
            return 0;
        }
        m->resync |= stale != 0 && m->generation == stale;
        cond_signal(&m->work);
    }
}

void chief_client_resync(struct chief_client *m)
{
    MUTEX_GUARD(&m->lock);
    m->resync = true;
    cond_signal(&m->work);
}

bool chief_client_finished(struct chief_client *m)
{
    MUTEX_GUARD(&m->lock);
    return m->registered && m->state == JOB_FINISHED;
}

bool chief_client_await_stop(struct chief_client *m)
{
    int64_t deadline = clock_ms() + CALL_MS;
    MUTEX_GUARD(&m->lock);
    while (m->state == JOB_TRAINING && m->fatal.code == ERR_NONE && cond_wait_until(&m->changed, &m->lock, deadline))
        continue;
    return m->state != JOB_TRAINING;
}

const char *chief_client_job_uid(const struct chief_client *m)
{
    return m->job_uid;
}

void chief_client_waiting(struct chief_client *m, const char *text)
{
    MUTEX_GUARD(&m->lock);
    str_fmt(m->waiting, sizeof(m->waiting), "%s", text != NULL ? text : "");
}
