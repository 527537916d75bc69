/* What the chief orders. An order that ends what the threads do begins a new epoch; when it is answered, no update of
 * the view before is being made or will be. */
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "collective/collective_internal.h"

/* Sums that are kept for a newcomer: at least KEPT_STEPS, and KEPT_BYTES of them. One that takes nothing for SILENT_MS
 * is given up. */
enum { KEPT_STEPS = 4, KEPT_BYTES = 256 << 20, SILENT_MS = 5000 };

/* ---- donations: under the lock ---- */

struct state_copy *state_copy_ref(struct state_copy *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void state_copy_unref(struct state_copy *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    for (size_t i = 0; i < s->n; i++)
        shard_snapshot_fini(&s->segments[i]);
    free(s);
}

static struct state_copy *state_copy_new(size_t n)
{
    struct state_copy *s = xcalloc(1, sizeof(*s) + n * sizeof(s->segments[0]));
    atomic_init(&s->refs, 1);
    s->n = n;
    return s;
}

static void donation_free(struct donation *d)
{
    state_copy_unref(d->state);
    for (size_t i = 0; i < d->nkept; i++)
        reduction_unref(d->kept[i]);
    free(d->kept);
    free(d);
}

void donations_free(struct collective *c)
{
    while (c->donations != NULL) {
        struct donation *d = c->donations;
        c->donations = d->next;
        donation_free(d);
    }
}

struct donation *donation_for(const struct collective *c, const char *name, uint64_t incarnation)
{
    struct donation *d = c->donations;
    while (d != NULL && (!str_eq(d->to.name, name) || d->to.incarnation != incarnation))
        d = d->next;
    return d;
}

static void donation_drop(struct collective *c, const char *name)
{
    for (struct donation **link = &c->donations; *link != NULL;) {
        struct donation *d = *link;
        if (!str_eq(d->to.name, name)) {
            link = &d->next;
            continue;
        }
        *link = d->next;
        donation_free(d);
    }
}

static void donation_keep(struct donation *d, struct reduction *r)
{
    if (d->nkept == d->kept_cap) {
        d->kept_cap = 2 * d->kept_cap + KEPT_STEPS;
        d->kept = xrealloc(d->kept, d->kept_cap * sizeof(struct reduction *));
    }
    d->kept[d->nkept++] = reduction_ref(r);
}

void donations_keep(struct collective *c, struct reduction *r, int64_t now_ms)
{
    for (struct donation **link = &c->donations; *link != NULL;) {
        struct donation *d = *link;
        bool trains = reduction_at(r) >= c->view.at && /* in this step it did */
                      view_find(&c->view, d->to.name, d->to.incarnation) >= 0;
        if (now_ms - d->heard_ms <= SILENT_MS && !trains) {
            donation_keep(d, r);
            link = &d->next;
            continue;
        }
        *link = d->next;
        donation_free(d);
    }
}

bool donation_drop_below(struct donation *d, int64_t at)
{
    size_t n = 0;
    while (n < d->nkept && reduction_at(d->kept[n]) < at)
        reduction_unref(d->kept[n++]);
    if (n > 0)
        memmove(d->kept, d->kept + n, (d->nkept - n) * sizeof(struct reduction *));
    d->nkept -= n;
    d->taken += n;
    d->behind = d->follows ? d->behind : d->nkept;
    d->follows = true;
    return n > 0;
}

/* A member that trains alone may be faster than the newcomer that follows it. From the first sums that it takes, this
 * member makes one step for two of the newcomer, until that one has caught up. */
static bool donation_brakes(const struct donation *d)
{
    size_t caught_up = d->taken / 2;
    return d->follows && d->nkept > (d->behind > caught_up + 1 ? d->behind - caught_up : 1);
}

bool donations_wait(const struct collective *c)
{
    size_t bytes = c->config.layout->vector * sizeof(float);
    int64_t now = clock_ms();
    for (const struct donation *d = c->donations; d != NULL; d = d->next) {
        bool full = d->nkept >= KEPT_STEPS && d->nkept * bytes >= KEPT_BYTES;
        if ((full || donation_brakes(d)) && now - d->heard_ms <= SILENT_MS)
            return true;
    }
    return false;
}

/* ---- members on the wire ---- */

static int take_member(const Trainyard__V1__ViewMember *m, struct view_member *ret, struct err *e)
{
    if (m->name[0] == '\0' || strlen(m->name) >= sizeof(ret->name) || strlen(m->address) >= sizeof(ret->address))
        return err_set(e, ERR_INPUT, "a member of a view has a name of %zu and an address of %zu bytes",
                       strlen(m->name), strlen(m->address));
    *ret = (struct view_member){ .incarnation = m->incarnation };
    str_fmt(ret->name, sizeof(ret->name), "%s", m->name);
    str_fmt(ret->address, sizeof(ret->address), "%s", m->address);
    return 0;
}

static int take_view(const Trainyard__V1__ViewRequest *q, struct view *ret, struct err *e)
{
    if (q->n_members == 0 || q->n_members > VIEW_MEMBERS_MAX || q->view == 0)
        return err_set(e, ERR_INPUT, "view %llu has %zu members", (unsigned long long)q->view, q->n_members);
    ret->number = q->view;
    ret->at = q->at;
    ret->members = xcalloc(q->n_members, sizeof(*ret->members));
    ret->n = q->n_members;
    for (size_t i = 0; i < ret->n; i++)
        if (take_member(q->members[i], &ret->members[i], e) < 0)
            return -1;
    return 0;
}

static int take_other(const Trainyard__V1__ViewRequest *q, struct view_member *ret, struct err *e)
{
    *ret = (struct view_member){ 0 };
    return q->other != NULL ? take_member(q->other, ret, e) : 0;
}

/* ---- orders: under the lock ---- */

static int order_superseded(struct err *e)
{
    return err_set(e, ERR_FENCED, "a later order of the chief has come");
}

static int order_stop(struct collective *c, const Trainyard__V1__ViewRequest *q, const struct shard_info *info,
                      struct err *e)
{
    if (q->view == 0)
        return err_set(e, ERR_INPUT, "an order to stop names no view");
    if (c->generation != info->generation)
        c->stopped = 0;
    c->stopped = MAX(c->stopped, q->view - 1);
    if (c->phase == PHASE_TRAINING && (c->generation != info->generation || c->view.number < q->view))
        (void)collective_new_epoch(c);
    if (c->phase != PHASE_JOINING)
        c->generation = info->generation;
    return 0;
}

/* The view may begin here: this member is in it, and has the state of its step, or can get the sums that it lacks. */
static int check_start(struct collective *c, const struct view *v, const struct view_member *other,
                       const struct shard_info *info, struct err *e)
{
    if (c->generation == info->generation && v->number <= c->stopped)
        return err_set(e, ERR_FENCED, "view %llu is over", (unsigned long long)v->number);
    if (view_find(v, c->config.name, c->config.incarnation) < 0)
        return err_set(e, ERR_FENCED, "this process is not a member of view %llu", (unsigned long long)v->number);
    if (info->groups.size == 0 || groups_first(&info->groups, v->at) != v->at)
        return err_set(e, ERR_INPUT, "batch %lld does not begin a step", (long long)v->at);
    if (c->phase == PHASE_JOINING && !c->joined)
        return err_set(e, ERR_NOT_READY, "it still takes the state of another worker");
    if (c->at > v->at || (c->at < v->at && other->name[0] == '\0'))
        return err_set(e, ERR_NOT_READY, "it is at batch %lld, the view begins at %lld", (long long)c->at,
                       (long long)v->at);
    return 0;
}

static void drop_reductions(struct collective *c)
{
    reduction_unref(TAKE(c->now));
    reduction_unref(TAKE(c->next));
    reduction_frame_unref(TAKE(c->frame));
}

static void begin_view(struct collective *c, struct view *v, const struct shard_info *info)
{
    size_t self = (size_t)view_find(v, c->config.name, c->config.incarnation);
    drop_reductions(c);
    view_fini(&c->view);
    c->view = *v;
    *v = (struct view){ 0 };
    c->owners = xrealloc(c->owners, c->view.n * sizeof(struct peer *));
    for (size_t i = 0; i < c->view.n; i++)
        c->owners[i] = i == self ? NULL : collective_peer(c, &c->view.members[i]);
    c->generation = info->generation;
    c->stopped = c->view.number - 1;
    memcpy(c->job_uid, info->job_uid, sizeof(c->job_uid));
    c->groups = info->groups;
    c->frame = reduction_frame_new(c->config.layout, shard_vector(c->config.shard), &info->groups, c->view.n, self);
    c->frame->generation = c->generation;
    c->frame->view = c->view.number;
}

/* Who has what this member lacks: a newcomer compares its state with that of the member that gave it, if that one is in
 * the view. */
static struct view_member start_from(const struct collective *c, const struct view *v, const struct view_member *other)
{
    if (other->name[0] != '\0' || c->phase != PHASE_JOINING)
        return *other;
    if (view_find(v, c->other.name, c->other.incarnation) >= 0)
        return c->other;
    for (size_t i = 0; i < v->n; i++)
        if (!str_eq(v->members[i].name, c->config.name))
            return v->members[i];
    return *other;
}

static int order_start(struct collective *c, const Trainyard__V1__ViewRequest *q, const struct shard_info *info,
                       struct err *e)
{
    AUTO_FINI(view) v = { 0 };
    struct view_member other;
    if (take_view(q, &v, e) < 0 || take_other(q, &other, e) < 0)
        return -1;
    if (c->phase == PHASE_TRAINING && c->generation == info->generation && c->view.number == v.number)
        return 0; /* the same call again */
    other = start_from(c, &v, &other);
    if (check_start(c, &v, &other, info, e) < 0)
        return -1;
    bool check = c->phase == PHASE_JOINING && other.name[0] != '\0';
    if (!collective_new_epoch(c))
        return order_superseded(e);
    begin_view(c, &v, info);
    c->other = other;
    c->check = check;
    c->phase = PHASE_TRAINING;
    collective_changed(c);
    return 0;
}

static int order_join(struct collective *c, const Trainyard__V1__ViewRequest *q, const struct shard_info *info,
                      struct err *e)
{
    struct view_member other;
    if (take_other(q, &other, e) < 0)
        return -1;
    if (other.name[0] == '\0')
        return err_set(e, ERR_INPUT, "the worker that has the state is not named");
    if (info->groups.size == 0)
        return err_set(e, ERR_INPUT, "this worker was initialised without groups of batches");
    if (c->phase == PHASE_TRAINING && c->generation == info->generation && c->view.number >= q->view)
        return err_set(e, ERR_FENCED, "it trains in view %llu", (unsigned long long)c->view.number);
    if (!collective_new_epoch(c))
        return order_superseded(e);
    donations_free(c);
    drop_reductions(c);
    reduction_unref(TAKE(c->last));
    c->generation = info->generation;
    memcpy(c->job_uid, info->job_uid, sizeof(c->job_uid));
    c->groups = info->groups;
    c->frame = reduction_frame_new(c->config.layout, shard_vector(c->config.shard), &c->groups, 1, 0);
    c->view.number = q->view;
    c->other = other;
    c->behind = -1;
    c->trouble[0] = '\0';
    c->phase = PHASE_JOINING;
    collective_changed(c);
    return 0;
}

/* The state of the step of now. No update is made meanwhile. The lock is released while it is copied. */
static int copy_state(struct collective *c, struct donation *d, struct err *e)
{
    int rc = 0;
    c->readers++;
    while (c->applying)
        cond_wait(&c->changed, &c->lock);
    d->at = c->at;
    mutex_unlock(&c->lock);
    d->state = state_copy_new(c->config.layout->n);
    for (size_t i = 0; i < d->state->n && rc == 0; i++)
        rc = shard_copy(c->config.shard, i, &d->state->segments[i], e);
    mutex_lock(&c->lock);
    c->readers--;
    collective_changed(c);
    return rc;
}

static int order_donate(struct collective *c, const Trainyard__V1__ViewRequest *q, const struct shard_info *info,
                        struct err *e)
{
    (void)info;
    struct view_member to;
    if (take_other(q, &to, e) < 0)
        return -1;
    if (to.name[0] == '\0')
        return err_set(e, ERR_INPUT, "the worker that needs the state is not named");
    if (c->phase == PHASE_JOINING)
        return err_set(e, ERR_NOT_READY, "it takes the state of another worker itself");
    struct donation *d = xcalloc(1, sizeof(*d));
    d->to = to;
    d->heard_ms = clock_ms();
    if (copy_state(c, d, e) < 0) {
        donation_free(d);
        return -1;
    }
    donation_drop(c, to.name);
    d->next = c->donations;
    c->donations = d;
    collective_changed(c);
    return 0;
}

static int order_forget(struct collective *c, const Trainyard__V1__ViewRequest *q, const struct shard_info *info,
                        struct err *e)
{
    (void)info;
    struct view_member to;
    if (take_other(q, &to, e) < 0)
        return -1;
    donation_drop(c, to.name);
    collective_changed(c);
    return 0;
}

/* Only the chief to which the generation of the state belongs, in that generation. */
static int check_chief(const struct shard_info *info, const struct rpc_caller *chief, struct err *e)
{
    if (info->state == SHARD_UNINITIALISED)
        return err_set(e, ERR_NOT_READY, "it waits for the chief to initialise it");
    if (info->state == SHARD_FINISHED)
        return err_set(e, ERR_REFUSED, "the job has finished");
    if (!str_eq(info->job_uid, chief->job_uid))
        return err_set(e, ERR_REFUSED, "this worker belongs to job %s, not to %s", info->job_uid, chief->job_uid);
    if (chief->generation < info->generation ||
        (chief->generation == info->generation && chief->incarnation != info->chief))
        return err_set(e, ERR_FENCED, "generation %llu of another chief has begun",
                       (unsigned long long)info->generation);
    if (chief->generation > info->generation)
        return err_set(e, ERR_NOT_READY, "it is in generation %llu, the chief in %llu",
                       (unsigned long long)info->generation, (unsigned long long)chief->generation);
    return 0;
}

static const struct order {
    int (*carry_out)(struct collective *c, const Trainyard__V1__ViewRequest *q, const struct shard_info *info,
                     struct err *e);
    bool needs_state;
} ORDERS[] = {
    [TRAINYARD__V1__VIEW_ACTION__VIEW_STOP] = { order_stop, false },
    [TRAINYARD__V1__VIEW_ACTION__VIEW_START] = { order_start, true },
    [TRAINYARD__V1__VIEW_ACTION__VIEW_JOIN] = { order_join, false },
    [TRAINYARD__V1__VIEW_ACTION__VIEW_DONATE] = { order_donate, true },
    [TRAINYARD__V1__VIEW_ACTION__VIEW_FORGET] = { order_forget, false },
};

/* A chief has taken over the state, or filled it again: the view of before is over. */
static void end_old_generation(struct collective *c)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_brief(c->config.shard, &info);
    if (c->phase != PHASE_IDLE && c->generation != info.generation)
        (void)collective_new_epoch(c);
}

int collective_order(struct collective *c, const struct rpc_caller *chief, const Trainyard__V1__ViewRequest *q,
                     struct err *e)
{
    AUTO_FINI(shard_info) info = { 0 };
    MUTEX_GUARD(&c->lock);
    end_old_generation(c);
    shard_service_note(c->service);
    if (q->action == TRAINYARD__V1__VIEW_ACTION__VIEW_ASK && chief->generation == c->generation)
        c->led_view = q->view;
    bool has_state = collective_locate(c, &info);
    if (q->action == TRAINYARD__V1__VIEW_ACTION__VIEW_ASK)
        return 0;
    if (check_chief(&info, chief, e) < 0)
        return -1;
    if ((size_t)q->action >= COUNT_OF(ORDERS) || ORDERS[q->action].carry_out == NULL)
        return err_set(e, ERR_REFUSED, "order %d is of a later release", (int)q->action);
    if (ORDERS[q->action].needs_state && !has_state)
        return err_set(e, ERR_NOT_READY, "this worker has no state");
    return ORDERS[q->action].carry_out(c, q, &info, e);
}
