/* Synchronous updates: the gradients of a group are added in the order of their ordinals, whenever they come, and are
 * one update of the segment when all are there. So the result does not depend on who computed them, or when. */
#include <string.h>

#include "base/clock.h"
#include "shard/update_kernel.h"
#include "shard/update_policy.h"

enum { CHUNK = 1024 }; /* floats that are added or applied while they are in the first cache */

/* ---- the sum ---- */

/* A gradient whose turn it is, and which is not the last of its group. */
static void sum_range(struct segment *g, const struct push *push, int64_t ordinal, size_t at, const void *x, size_t n)
{
    struct segment_group *p = &g->group;
    bool first = ordinal == p->first;
    float w = groups_weight(push->groups, ordinal), *sum = p->sum + at;
    if (g->spec.kind == VAR_MOVING) /* the next values: each batch of the group counts by itself */
        update_average((first ? g->values : p->sum) + at, x, g->spec.momentum, sum, n);
    else if (first)
        update_weigh(x, w, sum, n);
    else
        update_add(x, w, sum, n);
}

/* Those that have come before their turn. */
static void sum_waiting(struct segment *g, const struct push *push)
{
    struct segment_group *p = &g->group;
    for (; p->next < p->end - 1 && p->waiting[p->next - p->first] != NULL; p->next++) {
        auto_free float *gradient = TAKE(p->waiting[p->next - p->first]);
        sum_range(g, push, p->next, 0, gradient, g->spec.count);
    }
}

/* ---- the update, with the last gradient of the group ---- */

static void apply_range(struct segment *g, const struct push *p, const struct opt_step *step, size_t at, const void *x,
                        size_t n)
{
    struct segment_group *group = &g->group;
    int64_t k = group->end - group->first;
    float mean[CHUNK], *sum = group->sum + at, *values = g->values + at, *slots[OPTIMIZER_MAX_SLOTS] = { NULL };
    if (group->previous != NULL)
        memcpy(group->previous + at, values, n * sizeof(*values));
    if (step == NULL) {
        update_average(k == 1 ? values : sum, x, g->spec.momentum, values, n);
        return;
    }
    float w = groups_weight(p->groups, group->end - 1);
    if (k == 1)
        update_mean_of_one(x, w, 1, mean, n);
    else
        update_mean(sum, x, w, (float)k, mean, n);
    optimizer_clip_values(p->optimizer, mean, n);
    for (int i = 0; i < g->nslots; i++)
        slots[i] = g->slots[i] + at;
    optimizer_apply(p->optimizer, step, values, slots, mean, n);
}

/* last: the gradient; NULL: it is the push's. */
static int apply_all(struct segment *g, struct push *p, const float *last, struct err *e)
{
    const struct opt_step *step = g->spec.kind == VAR_TRAINABLE ? push_step(p, g, g->group.end - g->group.first) : NULL;
    for (size_t at = 0, n; at < g->spec.count; at += n) {
        const void *x = last != NULL ? last + at : NULL;
        n = MIN(g->spec.count - at, (size_t)CHUNK);
        if (x == NULL && (n = push_grads(p, g, at, n, &x)) == 0)
            return err_set(e, ERR_INTERNAL, "a push ended within segment %u", g->spec.id);
        apply_range(g, p, step, at, x, n);
    }
    return 0;
}

/* The values are those of the next step. */
static int begin_next(struct segment *g, struct push *p, struct err *e)
{
    struct segment_group *group = &g->group;
    int64_t begun = group->first, end = group->end;
    if (g->spec.kind == VAR_TRAINABLE)
        optimizer_end(p->optimizer, &g->state);
    else
        g->state.t++;
    ordinal_set_fini(&g->applied);
    g->applied = (struct ordinal_set){ .low = end, .high = end };
    group->previous_at = begun;
    p->updates++;
    if (group_begin(g, p->groups, e) < 0)
        return -1;
    if (atomic_load(p->announced) == end)
        segment_keep_copy(g, end);
    return 0;
}

/* All ordinals of the group are there, and all but the last one are in the sum. */
static int sync_commit(struct segment *g, struct push *p, struct err *e)
{
    auto_free float *last = TAKE(g->group.waiting[g->group.end - 1 - g->group.first]);
    if (g->spec.kind != VAR_CONST && apply_all(g, p, last, e) < 0)
        return -1;
    return begin_next(g, p, e);
}

int sync_apply_sum(struct segment *g, struct push *p, const float *sum, struct err *e)
{
    float k = (float)(g->group.end - g->group.first), mean[CHUNK], *slots[OPTIMIZER_MAX_SLOTS] = { NULL };
    const struct opt_step *step = g->spec.kind == VAR_TRAINABLE ? push_step(p, g, g->group.end - g->group.first) : NULL;
    if (g->spec.kind == VAR_MOVING)
        memcpy(g->values, sum, segment_bytes(g));
    for (size_t at = 0, n; step != NULL && at < g->spec.count; at += n) {
        n = MIN(g->spec.count - at, (size_t)CHUNK);
        update_mean_of_one(sum + at, 1, k, mean, n);
        optimizer_clip_values(p->optimizer, mean, n);
        for (int i = 0; i < g->nslots; i++)
            slots[i] = g->slots[i] + at;
        optimizer_apply(p->optimizer, step, g->values + at, slots, mean, n);
    }
    return begin_next(g, p, e);
}

/* ---- one gradient ---- */

/* In its turn it is added where it was received; else it is copied. */
static int take_gradient(struct segment *g, struct push *p, struct err *e)
{
    struct segment_group *group = &g->group;
    bool in_turn = p->ordinal == group->next && p->ordinal < group->end - 1;
    void *memory = NULL;
    if (!in_turn && mem_alloc(segment_bytes(g), "a gradient that waits for its group", &memory, e) < 0)
        return -1;
    auto_free float *copy = memory;
    const void *x = NULL;
    for (size_t at = 0, n; at < g->spec.count; at += n) {
        n = push_grads(p, g, at, MIN(g->spec.count - at, (size_t)CHUNK), &x);
        if (n == 0)
            return err_set(e, ERR_INTERNAL, "a push ended within segment %u", g->spec.id);
        if (in_turn)
            sum_range(g, p, p->ordinal, at, x, n);
        else
            memcpy(copy + at, x, n * sizeof(*copy));
    }
    if (!in_turn)
        group->waiting[p->ordinal - group->first] = TAKE(copy);
    else
        group->next++;
    sum_waiting(g, p);
    return 0;
}

/* All that is left to add and to apply is done in segment_settle, by all threads that wait for the step. */
static void lend_gradient(struct segment *g, struct push *p)
{
    struct segment_group *group = &g->group;
    group->waiting[p->ordinal - group->first] = (float *)(uintptr_t)(p->vectors.grads + g->spec.offset);
    group->lent = p->ordinal;
    group->due = true;
    group->handed = 0;
    group->open = g->spec.count;
    p->due++;
}

static int sync_take(struct segment *g, struct push *p, struct err *e)
{
    struct segment_group *group = &g->group;
    if (group->sum == NULL && g->spec.kind != VAR_CONST)
        return err_set(e, ERR_REFUSED, "gradients are added elsewhere: no push is taken");
    if (p->ordinal >= group->end)
        return err_set(e, ERR_PENDING, "batch %lld belongs to a later step: batches %lld to %lld are not applied yet",
                       (long long)p->ordinal, (long long)group->first, (long long)group->end - 1);
    if (p->ordinal < group->first || group->has[p->ordinal - group->first])
        return g->spec.kind == VAR_CONST ? 0 : push_skip(p, g, e);
    bool completes = group->received + 1 == group->end - group->first;
    bool lends = completes && g->in_place && p->vectors.grads != NULL && g->spec.kind != VAR_CONST;
    bool last = completes && p->ordinal == group->end - 1; /* goes into the update where it was received */
    if (lends)
        lend_gradient(g, p);
    else if (g->spec.kind != VAR_CONST && !last && take_gradient(g, p, e) < 0)
        return -1;
    group->has[p->ordinal - group->first] = true;
    group->received++;
    if (!completes || lends)
        return 1;
    return sync_commit(g, p, e) < 0 ? -1 : 1;
}

const struct update_policy UPDATE_SYNC = { .take = sync_take };

/* ---- updates by several threads of this process ---- */

enum { PIECE = 16 * CHUNK }; /* floats that a thread takes at a time */

struct update_piece {
    struct push push;
    const struct opt_step *step; /* NULL: of an average */
    size_t at, n;
};

/* Under the lock. False: all pieces are given to threads. */
static bool piece_take(struct shard *s, struct segment *g, struct update_piece *p)
{
    struct segment_group *group = &g->group;
    if (!group->due || group->handed == g->spec.count)
        return false;
    *p = (struct update_piece){ .push.ordinal = group->first, .at = group->handed };
    p->n = MIN(g->spec.count - p->at, (size_t)PIECE);
    push_begin(s, &p->push);
    if (g->spec.kind == VAR_TRAINABLE)
        p->step = push_step(&p->push, g, group->end - group->first);
    group->handed += p->n;
    return true;
}

/* Without the lock: no other thread reads or writes these floats before the update is made. */
static void piece_apply(struct segment *g, const struct update_piece *p)
{
    const struct segment_group *group = &g->group;
    for (size_t at = p->at, n; at < p->at + p->n; at += n) {
        n = MIN(p->at + p->n - at, (size_t)CHUNK);
        for (int64_t i = group->next; i < group->end - 1; i++)
            sum_range(g, &p->push, i, at, group->waiting[i - group->first] + at, n);
        apply_range(g, &p->push, p->step, at, group->waiting[group->end - 1 - group->first] + at, n);
    }
}

/* Under the lock. True: it was the last piece. A group begins here without new memory, so that cannot fail. */
static bool piece_end(struct segment *g, struct update_piece *p)
{
    struct err never;
    g->group.open -= p->n;
    return g->group.open == 0 && begin_next(g, &p->push, &never) == 0;
}

/* Makes a piece of the update that is due. False: there is none to make. */
static bool segment_help(struct shard *s, struct segment *g)
{
    struct update_piece p;
    bool made;
    {
        MUTEX_GUARD(&g->lock);
        if (!piece_take(s, g, &p))
            return false;
    }
    piece_apply(g, &p);
    {
        MUTEX_GUARD(&g->lock);
        made = piece_end(g, &p);
    }
    if (made)
        shard_updated(s);
    return true;
}

static bool segment_due(struct segment *g)
{
    MUTEX_GUARD(&g->lock);
    return g->group.due;
}

void segment_settle(struct shard *s, struct segment *g)
{
    enum { LOOK_MS = 1000 };
    if (!g->in_place)
        return;
    while (segment_help(s, g))
        continue;
    while (segment_due(g)) {
        uint64_t seen = shard_updates(s);
        if (!segment_help(s, g) && segment_due(g))
            shard_await_update(s, seen, clock_ms() + LOOK_MS);
    }
}

void shard_settle(struct shard *s)
{
    if (s->vector == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        while (segment_help(s, &s->segments[i]))
            continue;
    for (size_t i = 0; i < s->n; i++)
        segment_settle(s, &s->segments[i]);
}

struct mutex *segment_lock_settled(struct shard *s, struct segment *g)
{
    for (;;) {
        segment_settle(s, g);
        mutex_lock(&g->lock);
        if (!g->group.due)
            return &g->lock;
        mutex_unlock(&g->lock);
    }
}
