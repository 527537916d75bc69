/* Members, leases and reports of a job, under one lock. A request is checked against the member table first: only the
 * newest process of a name may act for it. Ordinals become done only by coordinator_observe, from the ps. */
#include "coord/coordinator.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "coord/coordinator_internal.h"
#include "coord/register_check.h"

enum { PACE_MEMBERS = 100 };

struct coordinator *coordinator_new(const struct coordinator_config *config)
{
    struct coordinator *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    mutex_init(&c->lock);
    cond_init(&c->changed);
    c->ledger = ledger_new(config->total);
    c->members.max = config->members_max > 0 ? config->members_max : COORDINATOR_MEMBERS_MAX;
    c->metrics = epoch_metrics_new(config->model, config->batches_per_epoch, config->total, config->window);
    c->view.poisoned = c->view.diverged_ordinal = c->view.evaluating_step = c->view.evaluated_step = -1;
    return c;
}

void coordinator_free(struct coordinator *c)
{
    if (c == NULL)
        return;
    ledger_free(c->ledger);
    epoch_metrics_free(c->metrics);
    members_fini(&c->members);
    view_fini(&c->running);
    cond_fini(&c->changed);
    mutex_fini(&c->lock);
    free(c);
}

int64_t coordinator_pace(const struct coordinator *c, int64_t ms)
{
    return c->config.groups.size > 0 ? ms * (1 + (int64_t)members_alive(&c->members, false) / PACE_MEMBERS) : ms;
}

void coordinator_changed(struct coordinator *c)
{
    c->woken = true;
    cond_broadcast(&c->changed);
}

/* ---- Register ---- */

/* A batch is not the cause of a worker's death while none is computed: the ps are initialised, or it waits for others.
 */
static bool blames(const struct coordinator *c, const struct member *m)
{
    return c->state == JOB_TRAINING && !m->waits;
}

/* What it holds of the batches that were leased to it here, and are free again. */
static void claim_own(struct coordinator *c, struct member *m, struct ordinal_ranges held)
{
    for (size_t i = 0; i + 1 < held.n; i += 2)
        for (size_t k = 0; k < LEASED_RANGES; k++) {
            const int64_t both[] = { MAX(held.r[i], m->leased.range[k].first),
                                     MIN(held.r[i + 1], m->leased.range[k].end) };
            if (both[0] < both[1])
                ledger_reclaim(c->ledger, m->number, (struct ordinal_ranges){ .r = both, .n = 2 });
        }
}

/* Also what an earlier chief may have leased to it. From now on it is leased here. */
static void claim_any(struct coordinator *c, struct member *m, struct ordinal_ranges held)
{
    struct held_batches own;
    ledger_reclaim(c->ledger, m->number, held);
    for (int64_t from = 0; ledger_next_of(c->ledger, m->number, from, &own); from = own.end)
        leased_ranges_add(&m->leased, own.first, own.end);
}

/* A worker may hold ordinals that this chief does not have as its leases: an earlier chief leased them, or the worker
 * was paused and taken for lost. */
static void claim(struct coordinator *c, struct member *m, struct ordinal_ranges held)
{
    if (coordinator_left_out(c, m))
        return;
    (m->claims_any ? claim_any : claim_own)(c, m, held);
    m->claims_any = false;
}

static bool holds(struct ordinal_ranges held, int64_t ordinal)
{
    for (size_t i = 0; i + 1 < held.n; i += 2)
        if (held.r[i] <= ordinal && ordinal < held.r[i + 1])
            return true;
    return false;
}

static void note_held(struct coordinator *c, struct member *m, struct ordinal_ranges held, int64_t now_ms)
{
    ledger_complete(c->ledger, m->number, held, now_ms);
    if (!holds(held, m->suspect))
        m->suspect = -1;
}

/* ---- begin and end of each call ---- */

static int job_check(const struct coordinator *c, const struct coordinator_sender *from, struct err *e)
{
    if (strcmp(from->job_uid, c->config.job_uid) == 0)
        return 0;
    return err_set(e, ERR_REFUSED, "%s belongs to job %s, this is the chief of job %s", from->name, from->job_uid,
                   c->config.job_uid);
}

/* The member calls. If its batches were given to others because it was not heard, it gets some again: others may have
 * computed all that it holds, and what it holds may wait for a batch that is free. */
static void hear(struct member *m, int64_t now_ms)
{
    m->seen_ms = now_ms;
    if (m->silent)
        m->stalled = m->silent = false;
}

/* The calling member: registered, and its newest process. */
static int find_sender(struct coordinator *c, const struct coordinator_sender *from, int64_t now_ms,
                       struct member **ret, struct err *e)
{
    struct member *m = members_find(&c->members, from->name);
    if (job_check(c, from, e) < 0)
        return -1;
    if (m == NULL || !m->alive)
        return err_set(e, ERR_NOT_READY, "%s is not registered", from->name);
    if (m->incarnation != from->incarnation)
        return err_set(e, ERR_FENCED, "another process has registered as %s since", from->name);
    hear(m, now_ms);
    *ret = m;
    return 0;
}

static struct coordinator_reply reply_of(const struct coordinator *c)
{
    struct coordinator_reply r = { .heartbeat_ms = (uint32_t)coordinator_pace(c, c->config.heartbeat_ms),
                                   .wait_ms = 20,
                                   .generation = c->generation,
                                   .chief_incarnation = c->config.incarnation,
                                   .state = c->state };
    str_fmt(r.message, sizeof(r.message), "%s", c->message);
    return r;
}

/* The member's process is gone. */
static void lose(struct coordinator *c, struct member *m)
{
    coordinator_take_from(c, m);
    if (m->suspect >= 0 && blames(c, m))
        ledger_count_death(c->ledger, m->suspect);
    m->suspect = -1;
}

/* The member is this process from now on. */
static void enter(struct coordinator *c, struct member *m, const struct coordinator_sender *from, int64_t now_ms)
{
    bool restarted = m->number >= 0 && m->incarnation != from->incarnation;
    if (restarted || (m->number >= 0 && !m->alive))
        lose(c, m); /* the leases of the earlier process are free */
    if (restarted) {
        m->leased = (struct leased_ranges){ 0 };
        m->claims_any = m->reports_any = false; /* it begins with nothing */
    }
    if (m->number < 0 || restarted || !m->alive) {
        m->number = c->next_number++;
        m->stalled = m->silent = m->waits = false;
        m->progress_ms = now_ms;
    }
    m->incarnation = from->incarnation;
    m->in_view = view_find(&c->running, m->name, m->incarnation) >= 0;
    m->role = from->role;
    m->alive = true;
    hear(m, now_ms);
}

/* That of the first worker is the job's. */
static void take_arithmetic(struct coordinator *c, const struct register_request *q)
{
    if (c->config.one_arithmetic && c->arithmetic[0] == '\0' && q->sender.role != ROLE_EVALUATOR &&
        q->arithmetic != NULL)
        str_fmt(c->arithmetic, sizeof(c->arithmetic), "%s", q->arithmetic);
}

int coordinator_register(struct coordinator *c, const struct register_request *q, int64_t now_ms,
                         struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    const struct coordinator_sender *from = &q->sender;
    struct member *m = members_find(&c->members, from->name);
    if ((from->job_uid[0] != '\0' && job_check(c, from, e) < 0) || register_check(&c->config, c->arithmetic, q, e) < 0)
        return -1;
    if (m != NULL && m->alive && from->incarnation < m->incarnation)
        return err_set(e, ERR_NOT_READY, "a process that started later is %s, and it is alive", from->name);
    if (m == NULL && (m = members_add(&c->members, from->name)) == NULL)
        return err_set(e, ERR_REFUSED, "this job has %zu members already", c->members.max);
    enter(c, m, from, now_ms);
    take_arithmetic(c, q);
    str_fmt(m->address, sizeof(m->address), "%s", q->address != NULL ? q->address : "");
    claim(c, m, q->held);
    note_held(c, m, q->held, now_ms);
    c->view.highest_generation = MAX(c->view.highest_generation, MIN(from->generation, c->generation + 1));
    coordinator_changed(c);
    *ret = reply_of(c);
    str_fmt(ret->job_uid, sizeof(ret->job_uid), "%s", c->config.job_uid);
    ret->group_size = c->config.groups.size;
    return 0;
}

/* ---- the other calls ---- */

static bool is_ordinal(const struct coordinator *c, int64_t ordinal)
{
    return ordinal >= 0 && ordinal < c->config.total;
}

/* It is leased to the member, or was lately. In synchronous training a worker may hold a batch for long, and be leased
 * many others meanwhile. */
static bool was_leased(const struct coordinator *c, const struct member *m, int64_t ordinal)
{
    return leased_ranges_has(&m->leased, ordinal) || ledger_holder(c->ledger, ordinal) == m->number;
}

/* The member has computed this batch, or may have: it was leased to it, here or by an earlier chief. */
static bool may_report(const struct coordinator *c, const struct member *m, int64_t ordinal)
{
    if (was_leased(c, m, ordinal))
        return true;
    return m->reports_any && is_ordinal(c, ordinal) && ledger_holder(c->ledger, ordinal) < 0;
}

static void note_divergence(struct coordinator *c, const struct member *m, int64_t ordinal, const char *what)
{
    if (c->view.diverged)
        return;
    c->view.diverged = true;
    c->view.diverged_ordinal = ordinal;
    str_fmt(c->view.diverged_by, sizeof(c->view.diverged_by), "%s", m->name);
    str_fmt(c->view.diverged_what, sizeof(c->view.diverged_what), "%s", what);
    coordinator_changed(c);
}

/* Which of the metrics of a batch is not finite, and what it is. A sum that counts for none of them does not matter. */
static bool find_nonfinite_metric(const struct coordinator *c, const double *sums, char *out, size_t n)
{
    const struct model *model = c->config.model;
    auto_free double *values = xcalloc(model_metrics(model) + 1, sizeof(*values));
    metrics_result(model, sums, values);
    for (size_t i = 0; i < model_metrics(model); i++)
        if (!isfinite(values[i])) {
            str_fmt(out, n, "%s %f", model_metric_name(model, i), values[i]);
            return true;
        }
    return false;
}

static bool sums_finite(const double *sums, size_t width)
{
    for (size_t i = 0; i < width; i++)
        if (!isfinite(sums[i]))
            return false;
    return true;
}

/* Sums that are not finite count, too, so that people see them. They also end the job. */
static void add_sums(struct coordinator *c, const struct member *m, int64_t ordinal, const double *sums)
{
    char what[96];
    epoch_metrics_add(c->metrics, ordinal, sums);
    if (!sums_finite(sums, metrics_width(c->config.model)) && was_leased(c, m, ordinal) &&
        find_nonfinite_metric(c, sums, what, sizeof(what)))
        note_divergence(c, m, ordinal, what);
}

/* What the member reports of batches of others is ignored. */
static void add_report(struct coordinator *c, struct member *m, const struct coordinator_report *r, int64_t now_ms)
{
    size_t width = metrics_width(c->config.model), own = 0;
    for (size_t i = 0; i < r->n && (i + 1) * width <= r->nsums; i++) {
        if (!may_report(c, m, r->ordinals[i]))
            continue;
        add_sums(c, m, r->ordinals[i], r->sums + i * width);
        own++;
    }
    if (c->state == JOB_TRAINING)
        m->reports_any = false;
    if (own == 0)
        return;
    m->progress_ms = now_ms;
    m->batch_ms = (int64_t)((r->compute_ns + r->network_ns + r->data_ns) / own / 1000000);
    m->stalled = false;
    m->steps += own;
    c->view.steps += own;
    c->view.staleness_sum += r->staleness_sum;
    c->view.compute_ns += r->compute_ns;
    c->view.network_ns += r->network_ns;
    c->view.data_ns += r->data_ns;
    c->view.wait_ns += r->wait_ns;
}

static int ordinal_check(const struct coordinator *c, const struct heartbeat_request *q, struct err *e)
{
    if (q->diverged && !is_ordinal(c, q->diverged_ordinal))
        return err_set(e, ERR_INPUT, "%s names batch %lld of a job of %lld", q->sender.name,
                       (long long)q->diverged_ordinal, (long long)c->config.total);
    return 0;
}

int coordinator_heartbeat(struct coordinator *c, const struct heartbeat_request *q, int64_t now_ms,
                          struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    struct member *m;
    if (find_sender(c, &q->sender, now_ms, &m, e) < 0 || ordinal_check(c, q, e) < 0)
        return -1;
    add_report(c, m, &q->report, now_ms);
    note_held(c, m, q->held, now_ms);
    str_fmt(c->view.waiting, sizeof(c->view.waiting), "%s", q->waiting_for != NULL ? q->waiting_for : "");
    m->waits = c->view.waiting[0] != '\0';
    if (q->diverged && was_leased(c, m, q->diverged_ordinal))
        note_divergence(c, m, q->diverged_ordinal, "");
    *ret = reply_of(c);
    return 0;
}

int coordinator_lease(struct coordinator *c, const struct lease_request *q, int64_t now_ms,
                      struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    struct member *m;
    if (find_sender(c, &q->sender, now_ms, &m, e) < 0)
        return -1;
    add_report(c, m, &q->report, now_ms);
    note_held(c, m, q->held, now_ms);
    c->view.waiting[0] = 0;
    struct coordinator_reply r = reply_of(c);
    if (c->state == JOB_TRAINING)
        coordinator_give_leases(c, m, q, now_ms, &r);
    m->waits = q->lower_only && r.count == 0;
    if (c->state == JOB_TRAINING && r.count == 0) {
        coordinator_wait_reason(c, m, r.message, sizeof(r.message));
        coordinator_take_back(c, m, coordinator_lease_limit(c, q), now_ms);
        if (coordinator_trains(c, m)) /* soon, but not all of many at once */
            r.wait_ms = (uint32_t)MIN(1 + members_alive(&c->members, true) / 8, 50);
        if (ledger_drained(c->ledger, c->limit))
            coordinator_changed(c);
    }
    *ret = r;
    return 0;
}

int coordinator_leave(struct coordinator *c, const struct leave_request *q, int64_t now_ms,
                      struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    struct member *m;
    if (find_sender(c, &q->sender, now_ms, &m, e) < 0)
        return -1;
    add_report(c, m, &q->report, now_ms);
    ledger_drop(c->ledger, m->number);
    if (m->role == ROLE_EVALUATOR)
        c->view.evaluating_step = -1;
    m->alive = false;
    m->suspect = -1;
    coordinator_changed(c);
    *ret = reply_of(c);
    return 0;
}

static void add_evaluation(struct coordinator *c, const struct evaluation_request *q)
{
    struct coordinator_view *v = &c->view;
    v->evaluating_step = -1;
    v->evaluated_step = q->step;
    v->nevaluation = MIN(q->nvalues, (size_t)EVALUATION_MAX);
    for (size_t i = 0; i < v->nevaluation; i++) {
        str_fmt(v->evaluation_names[i], sizeof(v->evaluation_names[i]), "%s", q->names[i]);
        v->evaluation[i] = q->values[i];
    }
    coordinator_changed(c);
}

int coordinator_report_evaluation(struct coordinator *c, const struct evaluation_request *q, int64_t now_ms,
                                  struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    struct member *m;
    if (find_sender(c, &q->sender, now_ms, &m, e) < 0)
        return -1;
    if (q->announce)
        c->view.evaluating_step = q->step;
    else
        add_evaluation(c, q);
    *ret = reply_of(c);
    return 0;
}

int coordinator_request_stop(struct coordinator *c, const struct stop_job_request *q, int64_t now_ms,
                             struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    const struct coordinator_sender *from = &q->sender;
    struct member *m;
    if (q->from_launcher ? from->job_uid[0] != '\0' && job_check(c, from, e) < 0
                         : find_sender(c, from, now_ms, &m, e) < 0)
        return -1;
    c->view.stop_requested = true;
    str_fmt(c->view.stop_reason, sizeof(c->view.stop_reason), "%s: %s", from->name, q->reason != NULL ? q->reason : "");
    coordinator_changed(c);
    *ret = reply_of(c);
    return 0;
}

/* ---- the chief's side ---- */

void coordinator_set(struct coordinator *c, enum job_state state, uint64_t generation, const char *message)
{
    MUTEX_GUARD(&c->lock);
    c->state = state;
    c->generation = generation;
    str_fmt(c->message, sizeof(c->message), "%s", message);
}

void coordinator_stop(struct coordinator *c, const char *message)
{
    MUTEX_GUARD(&c->lock);
    if (c->state == JOB_FINISHED)
        return;
    c->state = JOB_STOPPING;
    str_fmt(c->message, sizeof(c->message), "%s", message);
}

void coordinator_observe(struct coordinator *c, const struct ordinal_set *done, int64_t begun_ms)
{
    MUTEX_GUARD(&c->lock);
    ledger_observe(c->ledger, done, begun_ms);
}

void coordinator_tick(struct coordinator *c, int64_t now_ms)
{
    MUTEX_GUARD(&c->lock);
    for (size_t i = 0; i < c->members.n; i++) {
        struct member *m = &c->members.items[i];
        if (c->state != JOB_TRAINING)
            m->progress_ms = now_ms; /* nothing can be computed */
        if (m->alive)
            coordinator_take_back_of_silent(c, m, now_ms);
        if (m->alive && now_ms - m->seen_ms > c->config.lease_ms) {
            m->alive = false;
            lose(c, m);
        }
    }
}

void coordinator_allow_below(struct coordinator *c, int64_t limit)
{
    MUTEX_GUARD(&c->lock);
    c->limit = limit;
}

int64_t coordinator_hold(struct coordinator *c)
{
    MUTEX_GUARD(&c->lock);
    int64_t top = ledger_top(c->ledger);
    if (top > groups_first(&c->config.groups, top))
        top = groups_end(&c->config.groups, top);
    c->limit = MIN(top, c->config.total);
    return c->limit;
}

void coordinator_set_wait_reason(struct coordinator *c, const char *text)
{
    MUTEX_GUARD(&c->lock);
    str_fmt(c->waits_for, sizeof(c->waits_for), "%s", text);
}

void coordinator_set_arithmetic(struct coordinator *c, const char *text)
{
    MUTEX_GUARD(&c->lock);
    str_fmt(c->arithmetic, sizeof(c->arithmetic), "%s", text);
}

void coordinator_arithmetic(struct coordinator *c, char ret[ARITHMETIC_MAX])
{
    MUTEX_GUARD(&c->lock);
    memcpy(ret, c->arithmetic, sizeof(c->arithmetic));
}

void coordinator_metrics(struct coordinator *c, void (*use)(void *user, struct epoch_metrics *t), void *user)
{
    MUTEX_GUARD(&c->lock);
    use(user, c->metrics);
}

static int count_training(const struct coordinator *c)
{
    int n = 0;
    for (size_t i = 0; i < c->members.n; i++)
        n += coordinator_trains(c, &c->members.items[i]);
    return n;
}

void coordinator_view(struct coordinator *c, struct coordinator_view *ret)
{
    MUTEX_GUARD(&c->lock);
    *ret = c->view;
    ret->done = ledger_done(c->ledger);
    ret->done_low = ledger_done_set(c->ledger)->low;
    ret->total = ledger_total(c->ledger);
    ret->finished = ledger_finished(c->ledger);
    ret->drained = ledger_drained(c->ledger, c->limit);
    ret->working = ledger_leased_below(c->ledger, INT64_MAX);
    ret->poisoned = ledger_poisoned(c->ledger);
    ret->workers = (int)members_alive(&c->members, true);
    ret->members = (int)members_alive(&c->members, false);
    ret->training = c->running.n > 0 ? count_training(c) : ret->workers;
}

/* The caller looks several times in silence_ms. If it did not, this process itself was stopped, and no worker could be
 * heard: all are alive until they had time to call. */
static void note_own_pause(struct coordinator *c, int64_t now_ms)
{
    int64_t silence = coordinator_pace(c, c->config.silence_ms);
    if (c->looked_ms > 0 && now_ms - c->looked_ms > silence / 2)
        c->trust_until_ms = now_ms + silence;
    c->looked_ms = now_ms;
}

static bool coordinator_hears(const struct coordinator *c, const struct member *m, int64_t now_ms)
{
    return m->alive && (now_ms < c->trust_until_ms || now_ms - m->seen_ms <= coordinator_pace(c, c->config.silence_ms));
}

size_t coordinator_workers(struct coordinator *c, int64_t now_ms, struct known_member **ret)
{
    MUTEX_GUARD(&c->lock);
    struct known_member *all = xcalloc(c->members.n + 1, sizeof(*all));
    size_t n = 0;
    note_own_pause(c, now_ms);
    for (size_t i = 0; i < c->members.n; i++) {
        const struct member *m = &c->members.items[i];
        if (m->role == ROLE_EVALUATOR || m->number < 0)
            continue;
        struct known_member *w = &all[n++];
        *w = (struct known_member){ .incarnation = m->incarnation, .alive = coordinator_hears(c, m, now_ms) };
        memcpy(w->name, m->name, sizeof(w->name));
        memcpy(w->address, m->address, sizeof(w->address));
    }
    *ret = all;
    return n;
}

void coordinator_wait(struct coordinator *c, int64_t deadline_ms)
{
    MUTEX_GUARD(&c->lock);
    while (!c->woken && cond_wait_until(&c->changed, &c->lock, deadline_ms))
        continue;
    c->woken = false;
}

void coordinator_wake(struct coordinator *c)
{
    MUTEX_GUARD(&c->lock);
    coordinator_changed(c);
}
