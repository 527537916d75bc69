/* The local form of params: the parameter vector in a shard of this process. The shard uses the vector of the first
 * params object, so a pull copies nothing and a push is the optimizer. Further objects (the chief's beside the
 * trainer's) copy, or share that vector. */
#include <string.h>

#include "base/clock.h"

#include "params/params_internal.h"

struct local {
    struct params p;
    struct shard *shard;
    bool in_place;            /* the shard uses this vector */
    bool borrows;             /* and another object owns it */
    int64_t *seen, *versions; /* [segment]: of the values in the vector; what a push answers */
    bool has_seen;
    struct push_result result;
};

static struct local *local_of(struct params *p)
{
    return (struct local *)(void *)p;
}

static struct shard_caller caller_of(const struct params *p)
{
    return (struct shard_caller){
        .job_uid = p->id.job_uid, .sender = p->id.sender, .generation = p->generation, .incarnation = p->id.incarnation
    };
}

static void local_free(struct params *p)
{
    struct local *l = local_of(p);
    free(l->seen);
    free(l->versions);
    if (l->borrows)
        p->vector = NULL;
    params_release(p);
}

static void local_forget(struct params *p)
{
    local_of(p)->has_seen = false;
}

static void local_mark(struct params *p)
{
    (void)p; /* a push is over when params_push_start returns: the newest values are meant */
}

static int local_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e)
{
    (void)rest, (void)deadline_ms;
    struct local *l = local_of(p);
    struct shard_caller caller = caller_of(p);
    struct shard_out out = { .element = DT_FLOAT, .versions = l->seen, .nversions = p->layout->n };
    struct shard_sizes sizes;
    auto_free float *values = NULL;

    if (!l->in_place) {
        if (shard_measure(l->shard, (struct shard_part){ 0 }, &sizes, e) < 0)
            return -1;
        out.size = sizes.pull;
        out.values = values = xmalloc(sizes.pull);
    }
    if (shard_pull(l->shard, &caller, (struct shard_part){ 0 }, &out, e) < 0)
        return -1;
    l->has_seen = true;
    for (size_t i = 0, at = 0; values != NULL && i < p->layout->n; at += p->layout->segments[i++].count)
        memcpy(p->vector + p->layout->segments[i].offset, values + at, p->layout->segments[i].count * sizeof(float));
    return 0;
}

/* In place nothing is copied: the values are there when every segment is at the step. */
static int local_pull_step(struct local *l, int64_t at, struct err *e)
{
    const struct layout *layout = l->p.layout;
    struct shard_caller caller = caller_of(&l->p);
    struct shard_out out = { .versions = l->seen, .nversions = layout->n };
    struct shard_vectors vectors = { .values = l->p.vector, .floats = layout->vector };
    if (l->in_place)
        return shard_pull_at(l->shard, &caller, (struct shard_part){ 0 }, at, &out, e);
    return shard_pull_vectors_at(l->shard, &caller, (struct shard_part){ 0 }, at, &vectors, l->seen, layout->n, e);
}

/* Other threads of this process may push what is missing. */
static int local_pull_at(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e)
{
    (void)deadline_ms;
    struct local *l = local_of(p);
    for (int64_t until = clock_ms() + wait_ms;;) {
        struct err cause = { 0 };
        uint64_t seen = shard_updates(l->shard);
        if (local_pull_step(l, at, &cause) == 0) {
            l->has_seen = true;
            return 0;
        }
        if (!err_is(&cause, ERR_PENDING) || clock_ms() >= until)
            return err_set(e, cause.code, "%s", cause.msg);
        shard_await_update(l->shard, seen, until);
    }
}

/* Other threads of this process may give what is missing. */
static int local_reduce(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e)
{
    (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    return shard_reduce_wait(local_of(p)->shard, &caller, q, e);
}

static void local_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max)
{
    const int64_t *v = ((const struct local *)(const void *)p)->seen;
    *ret_min = *ret_max = p->layout->n > 0 ? v[0] : 0;
    for (size_t i = 1; i < p->layout->n; i++) {
        *ret_min = MIN(*ret_min, v[i]);
        *ret_max = MAX(*ret_max, v[i]);
    }
}

static struct push_result result_of(const struct local *l, bool duplicate)
{
    struct push_result r = { .duplicate = duplicate };
    for (size_t i = 0; i < l->p.layout->n; i++) {
        r.version_min = i == 0 ? l->versions[i] : MIN(r.version_min, l->versions[i]);
        if (!duplicate && l->has_seen)
            r.staleness = MAX(r.staleness, l->versions[i] - 1 - l->seen[i]);
    }
    return r;
}

static int local_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                            struct err *e)
{
    struct local *l = local_of(p);
    struct shard_caller caller = caller_of(p);
    struct shard_vectors vectors = {
        .grads = grads, .values = l->in_place ? NULL : p->vector, .floats = p->layout->vector, .trusted = true
    };
    bool duplicate;
    (void)deadline_ms, (void)direct;
    if (shard_push_vectors(l->shard, &caller, (struct shard_part){ 0 }, ordinal, l->has_seen ? l->seen : NULL, &vectors,
                           l->versions, p->layout->n, &duplicate, e) < 0)
        return -1;
    l->result = result_of(l, duplicate);
    memcpy(l->seen, l->versions, p->layout->n * sizeof(*l->seen));
    l->has_seen = true;
    return 0;
}

static int local_push_finish(struct params *p, struct push_result *ret, struct err *e)
{
    (void)e;
    *ret = local_of(p)->result;
    return 0;
}

/* ---- control plane ---- */

static void local_describe(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors)
{
    (void)deadline_ms;
    errors[0] = (struct err){ 0 };
    shard_describe(local_of(p)->shard, &rets[0]);
}

static int local_init(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    struct shard *shard = local_of(p)->shard;
    if (shard_init(shard, &caller, optimizer_json, p->layout->segments, p->layout->n, p->layout->hash, e) < 0 ||
        (p->groups.size > 0 && shard_set_groups(shard, &caller, &p->groups, e) < 0))
        return -1;
    return shard_set_rates(shard, &caller, p->rates, e);
}

static int local_adopt(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    if (shard_adopt(local_of(p)->shard, &caller, e) < 0)
        return -1;
    return shard_set_rates(local_of(p)->shard, &caller, p->rates, e);
}

static int local_restore(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                         const struct ordinal_set *applied, const float *data, size_t floats, int64_t deadline_ms,
                         struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    struct one_range range = { .data = data, .size = floats * sizeof(float) };
    struct bytes_in in = one_range(&range);
    return shard_restore(local_of(p)->shard, &caller, segment, with_slots, version, applied, &in, e);
}

static int local_serve(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    return shard_serve(local_of(p)->shard, &caller, e);
}

static int local_announce_snapshot(struct params *p, size_t ps, int64_t at, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    return shard_announce_snapshot(local_of(p)->shard, &caller, at, e);
}

static int local_snapshot(struct params *p, size_t ps, uint32_t segment, const int64_t *at, int64_t deadline_ms,
                          struct shard_snapshot *ret, struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    if (at != NULL)
        return shard_snapshot_at(local_of(p)->shard, &caller, segment, *at, ret, e);
    return shard_snapshot(local_of(p)->shard, &caller, segment, ret, e);
}

static int local_confirm_snapshots(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    return shard_confirm_snapshots(local_of(p)->shard, &caller, e);
}

static int local_finish(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)step, (void)deadline_ms;
    struct shard_caller caller = caller_of(p);
    return shard_finish(local_of(p)->shard, &caller, e);
}

static const struct params_ops LOCAL = {
    .free = local_free,
    .forget = local_forget,
    .mark = local_mark,
    .gradients = params_own_gradients,
    .pull = local_pull,
    .pull_at = local_pull_at,
    .reduce = local_reduce,
    .versions = local_versions,
    .push_start = local_push_start,
    .push_finish = local_push_finish,
};
static const struct params_admin_ops LOCAL_ADMIN = {
    .describe = local_describe,
    .init = local_init,
    .adopt = local_adopt,
    .restore = local_restore,
    .serve = local_serve,
    .announce_snapshot = local_announce_snapshot,
    .snapshot = local_snapshot,
    .confirm_snapshots = local_confirm_snapshots,
    .finish = local_finish,
};

static struct local *local_new(const struct layout *layout, struct shard *shard, const struct params_identity *id)
{
    struct local *l = xcalloc(1, sizeof(*l));
    params_setup(&l->p, &LOCAL, &LOCAL_ADMIN, layout, 1, id);
    l->shard = shard;
    l->seen = xcalloc(layout->n, sizeof(*l->seen));
    l->versions = xcalloc(layout->n, sizeof(*l->versions));
    return l;
}

struct params *params_new_local(const struct layout *layout, struct shard *shard, const struct params_identity *id)
{
    struct local *l = local_new(layout, shard, id);
    params_make_vector(&l->p);
    l->in_place = shard_vector(shard) == NULL;
    if (l->in_place)
        shard_use_vector(shard, l->p.vector);
    return &l->p;
}

struct params *params_new_in_place(const struct layout *layout, struct shard *shard, const struct params_identity *id)
{
    struct local *l = local_new(layout, shard, id);
    l->p.vector = shard_vector(shard);
    l->in_place = l->borrows = true;
    return &l->p;
}
