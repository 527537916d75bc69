/* Members, leases and reports of a job, under one lock. A request is checked against the member table first: only the
 * newest process of a name may act for it. Ordinals become done only by coordinator_observe, from the ps. */
#include "coord/coordinator.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

struct member {
    char name[64];
    uint64_t incarnation;
    enum role role;
    int number; /* the ledger's name of this process */
    int64_t seen_ms;
    bool alive;
    uint64_t steps;
};

struct coordinator {
    struct coordinator_config config;
    struct mutex lock;
    struct cond changed;
    bool woken;
    struct ledger *ledger;
    struct epoch_metrics *metrics;
    struct member *members;
    size_t nmembers;
    int next_number;
    enum job_state state;
    uint64_t generation;
    char message[COORDINATOR_TEXT_MAX], waits_for[COORDINATOR_TEXT_MAX];
    int64_t limit; /* ordinals below may be leased */
    struct coordinator_view view;
};

struct coordinator *coordinator_new(const struct coordinator_config *config)
{
    struct coordinator *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    mutex_init(&c->lock);
    cond_init(&c->changed);
    c->ledger = ledger_new(config->total);
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
    free(c->members);
    cond_fini(&c->changed);
    mutex_fini(&c->lock);
    free(c);
}

static void wake(struct coordinator *c)
{
    c->woken = true;
    cond_broadcast(&c->changed);
}

static struct member *member_find(struct coordinator *c, const char *name)
{
    for (size_t i = 0; i < c->nmembers; i++)
        if (strcmp(c->members[i].name, name) == 0)
            return &c->members[i];
    return NULL;
}

/* The entry of a member that has left, whose leases are free. */
static struct member *member_reuse(const struct coordinator *c)
{
    for (size_t i = 0; i < c->nmembers; i++)
        if (!c->members[i].alive)
            return &c->members[i];
    return NULL;
}

/* NULL: there are too many. */
static struct member *member_add(struct coordinator *c, const char *name)
{
    struct member *m = c->nmembers >= COORDINATOR_MEMBERS_MAX ? member_reuse(c) : NULL;
    if (m == NULL && c->nmembers >= COORDINATOR_MEMBERS_MAX)
        return NULL;
    if (m == NULL) {
        c->members = xrealloc(c->members, (c->nmembers + 1) * sizeof(*c->members));
        m = &c->members[c->nmembers++];
    }
    *m = (struct member){ .number = -1 };
    str_fmt(m->name, sizeof(m->name), "%s", name);
    return m;
}

/* ---- Register ---- */

static int space_check(const struct coordinator *c, const struct register_request *q, struct err *e)
{
    const struct ordinal_space *own = &c->config.space, *its = &q->space;
    if (its->batch_size != own->batch_size)
        return err_set(e, ERR_REFUSED, "%s trains with fit.batchSize %lld, the job with %lld", q->sender.name,
                       (long long)its->batch_size, (long long)own->batch_size);
    if (its->seed != own->seed)
        return err_set(e, ERR_REFUSED, "%s trains with fit.seed %llu, the job with %llu", q->sender.name,
                       (unsigned long long)its->seed, (unsigned long long)own->seed);
    if (its->examples != own->examples)
        return err_set(e, ERR_REFUSED, "%s sees %lld training examples in data.train, the chief %lld", q->sender.name,
                       (long long)its->examples, (long long)own->examples);
    if (its->fingerprint != own->fingerprint || its->shuffle != own->shuffle)
        return err_set(e, ERR_REFUSED,
                       "%s reads other training data (data.train) than the chief: fingerprint %016llx, not %016llx",
                       q->sender.name, (unsigned long long)its->fingerprint, (unsigned long long)own->fingerprint);
    if (q->shuffle_version != SHUFFLE_VERSION)
        return err_set(e, ERR_REFUSED, "%s shuffles by version %u, the chief by %d: use the same release",
                       q->sender.name, q->shuffle_version, SHUFFLE_VERSION);
    return 0;
}

static int register_check(const struct coordinator *c, const struct register_request *q, struct err *e)
{
    if (q->layout_hash != c->config.layout_hash)
        return err_set(e, ERR_REFUSED,
                       "%s has another spec.model or spec.compile than the chief: give all the same manifest",
                       q->sender.name);
    if (q->sender.role == ROLE_EVALUATOR)
        return 0;
    if (q->ps_count != c->config.ps_count)
        return err_set(e, ERR_REFUSED, "%s knows %u ps, the chief %u", q->sender.name, q->ps_count, c->config.ps_count);
    return space_check(c, q, e);
}

/* Batches are not processed while ps are initialised, so a batch is not the cause of a worker's death then. */
static bool blames(const struct coordinator *c)
{
    return c->state == JOB_TRAINING;
}

/* A worker may hold ordinals that this chief never leased to it: the previous chief did, or the lease expired while
 * the worker was paused. */
static void renew(struct coordinator *c, const struct member *m, struct ordinal_ranges held, int64_t now_ms)
{
    if (c->state == JOB_TRAINING)
        ledger_reclaim(c->ledger, m->number, held, now_ms, c->config.lease_ms);
    ledger_renew(c->ledger, m->number, held, now_ms, c->config.lease_ms);
}

/* ---- begin and end of each call ---- */

static int job_check(const struct coordinator *c, const struct coordinator_sender *from, struct err *e)
{
    if (strcmp(from->job_uid, c->config.job_uid) == 0)
        return 0;
    return err_set(e, ERR_REFUSED, "%s belongs to job %s, this is the chief of job %s", from->name, from->job_uid,
                   c->config.job_uid);
}

/* The calling member: registered, and its newest process. */
static int find_sender(struct coordinator *c, const struct coordinator_sender *from, int64_t now_ms,
                       struct member **ret, struct err *e)
{
    struct member *m = member_find(c, from->name);
    if (job_check(c, from, e) < 0)
        return -1;
    if (m == NULL || !m->alive)
        return err_set(e, ERR_NOT_READY, "%s is not registered", from->name);
    if (m->incarnation != from->incarnation)
        return err_set(e, ERR_FENCED, "another process has registered as %s since", from->name);
    m->seen_ms = now_ms;
    *ret = m;
    return 0;
}

static struct coordinator_reply reply_of(const struct coordinator *c)
{
    struct coordinator_reply r = { .heartbeat_ms = c->config.heartbeat_ms,
                                   .wait_ms = 20,
                                   .generation = c->generation,
                                   .chief_incarnation = c->config.incarnation,
                                   .state = c->state };
    str_fmt(r.message, sizeof(r.message), "%s", c->message);
    return r;
}

int coordinator_register(struct coordinator *c, const struct register_request *q, int64_t now_ms,
                         struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    const struct coordinator_sender *from = &q->sender;
    struct member *m = member_find(c, from->name);
    if ((from->job_uid[0] != '\0' && job_check(c, from, e) < 0) || register_check(c, q, e) < 0)
        return -1;
    bool other = m == NULL || m->incarnation != from->incarnation || !m->alive;
    if (m == NULL && (m = member_add(c, from->name)) == NULL)
        return err_set(e, ERR_REFUSED, "this job has %d members already", COORDINATOR_MEMBERS_MAX);
    if (other && m->number >= 0)
        ledger_drop(c->ledger, m->number, blames(c)); /* a new process: the leases of the old one are free */
    if (other)
        m->number = c->next_number++;
    m->incarnation = from->incarnation;
    m->role = from->role;
    m->alive = true;
    m->seen_ms = now_ms;
    renew(c, m, q->held, now_ms);
    c->view.highest_generation = MAX(c->view.highest_generation, from->generation);
    wake(c);
    *ret = reply_of(c);
    str_fmt(ret->job_uid, sizeof(ret->job_uid), "%s", c->config.job_uid);
    return 0;
}

/* ---- the other calls ---- */

static bool is_ordinal(const struct coordinator *c, int64_t ordinal)
{
    return ordinal >= 0 && ordinal < c->config.total;
}

static void note_divergence(struct coordinator *c, const struct member *m, int64_t ordinal, const char *what)
{
    if (c->view.diverged)
        return;
    c->view.diverged = true;
    c->view.diverged_ordinal = ordinal;
    str_fmt(c->view.diverged_by, sizeof(c->view.diverged_by), "%s", m->name);
    str_fmt(c->view.diverged_what, sizeof(c->view.diverged_what), "%s", what);
    wake(c);
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
static void add_report(struct coordinator *c, struct member *m, const struct coordinator_report *r)
{
    size_t width = metrics_width(c->config.model);
    for (size_t i = 0; i < r->n && (i + 1) * width <= r->nsums; i++) {
        const double *sums = r->sums + i * width;
        char what[96];
        epoch_metrics_add(c->metrics, r->ordinals[i], sums);
        if (is_ordinal(c, r->ordinals[i]) && !sums_finite(sums, width) &&
            find_nonfinite_metric(c, sums, what, sizeof(what)))
            note_divergence(c, m, r->ordinals[i], what);
    }
    m->steps += r->steps;
    c->view.steps += r->steps;
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
    add_report(c, m, &q->report);
    renew(c, m, q->held, now_ms);
    str_fmt(c->view.waiting, sizeof(c->view.waiting), "%s", q->waiting_for != NULL ? q->waiting_for : "");
    if (q->diverged)
        note_divergence(c, m, q->diverged_ordinal, "");
    *ret = reply_of(c);
    return 0;
}

static int workers_alive(const struct coordinator *c)
{
    int n = 0;
    for (size_t i = 0; i < c->nmembers; i++)
        n += c->members[i].alive && c->members[i].role != ROLE_EVALUATOR;
    return n;
}

/* Leases shrink towards the limit so that all workers reach it together. */
static int64_t lease_size(const struct coordinator *c, int64_t want)
{
    int64_t workers = workers_alive(c);
    return workers > 1 ? MAX(1, MIN(want, ledger_free_below(c->ledger, c->limit) / (2 * workers))) : want;
}

static const char *wait_reason(const struct coordinator *c)
{
    if (ledger_leased_below(c->ledger, c->limit))
        return "other workers to finish their batches";
    return c->waits_for[0] != 0 ? c->waits_for : "the chief to see what the parameter servers have applied";
}

int coordinator_lease(struct coordinator *c, const struct lease_request *q, int64_t now_ms,
                      struct coordinator_reply *ret, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    struct member *m;
    if (find_sender(c, &q->sender, now_ms, &m, e) < 0)
        return -1;
    add_report(c, m, &q->report);
    renew(c, m, q->held, now_ms);
    c->view.waiting[0] = 0;
    struct coordinator_reply r = reply_of(c);
    r.valid_ms = c->config.lease_ms;
    if (c->state == JOB_TRAINING)
        r.count =
            ledger_lease(c->ledger, m->number, lease_size(c, q->want), c->limit, now_ms, c->config.lease_ms, &r.first);
    if (c->state == JOB_TRAINING && r.count == 0) {
        str_fmt(r.message, sizeof(r.message), "%s", wait_reason(c));
        r.wait_ms = (uint32_t)MIN(1 + workers_alive(c) / 8, 50); /* soon, but not all of many at once */
        if (ledger_drained(c->ledger, c->limit))
            wake(c);
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
    add_report(c, m, &q->report);
    ledger_drop(c->ledger, m->number, false);
    if (m->role == ROLE_EVALUATOR)
        c->view.evaluating_step = -1;
    m->alive = false;
    wake(c);
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
    wake(c);
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
    wake(c);
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

void coordinator_observe(struct coordinator *c, const struct ordinal_set *done, int64_t begun_ms)
{
    MUTEX_GUARD(&c->lock);
    ledger_observe(c->ledger, done, begun_ms);
}

void coordinator_tick(struct coordinator *c, int64_t now_ms)
{
    MUTEX_GUARD(&c->lock);
    int expired = 0;
    ledger_expire(c->ledger, now_ms, &expired);
    for (size_t i = 0; i < c->nmembers; i++) {
        struct member *m = &c->members[i];
        if (m->alive && now_ms - m->seen_ms > c->config.lease_ms) {
            m->alive = false;
            ledger_drop(c->ledger, m->number, blames(c));
        }
    }
}

void coordinator_allow_below(struct coordinator *c, int64_t limit)
{
    MUTEX_GUARD(&c->lock);
    c->limit = limit;
}

void coordinator_set_wait_reason(struct coordinator *c, const char *text)
{
    MUTEX_GUARD(&c->lock);
    str_fmt(c->waits_for, sizeof(c->waits_for), "%s", text);
}

void coordinator_metrics(struct coordinator *c, void (*use)(void *user, struct epoch_metrics *t), void *user)
{
    MUTEX_GUARD(&c->lock);
    use(user, c->metrics);
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
    ret->workers = workers_alive(c);
    for (size_t i = 0; i < c->nmembers; i++)
        ret->members += c->members[i].alive;
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
    wake(c);
}
