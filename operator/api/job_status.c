/* Conditions by training-operator's rules: a changed one moves to the end, and Succeeded or Failed makes the others
 * false. */
#include <string.h>

#include "api/job_status_internal.h"

static const char *const NAMES[COND_COUNT] = {
    [COND_CREATED] = "Created",
    [COND_RUNNING] = "Running",
    [COND_RESTARTING] = "Restarting",
    [COND_SUCCEEDED] = "Succeeded",
    [COND_FAILED] = "Failed",
    [COND_SUSPENDED] = "Suspended",
    [COND_STALLED] = "Stalled",
    [COND_REFUSED] = "SpecChangeRefused",
    [COND_REPLICA_FAILURE] = "ReplicaFailure",
    [COND_TENSORBOARD_FAILURE] = "TensorBoardFailure",
    [COND_INSECURE] = "Insecure",
};

const char *condition_name(enum condition_type t)
{
    return NAMES[t];
}

bool condition_is_auxiliary(enum condition_type t)
{
    return t == COND_REFUSED || t == COND_REPLICA_FAILURE || t == COND_TENSORBOARD_FAILURE || t == COND_INSECURE;
}

/* ---- ownership ---- */

static void condition_fini(struct condition *c)
{
    free(c->reason);
    free(c->message);
    *c = (struct condition){ 0 };
}

void job_status_fini(struct job_status *s)
{
    for (size_t i = 0; i < s->nconds; i++)
        condition_fini(&s->conds[i]);
    free(s->conds);
    json_decref(s->foreign);
    for (int r = 0; r < ROLE_COUNT; r++) {
        index_set_fini(&s->roles[r].completed);
        free(s->roles[r].again.items);
    }
    job_identity_fini(&s->identity);
    free(s->progress.metrics);
    *s = (struct job_status){ 0 };
}

void job_status_copy(const struct job_status *s, struct job_status *ret)
{
    *ret = *s;
    ret->conds = s->nconds > 0 ? xmemdup(s->conds, s->nconds * sizeof(*s->conds)) : NULL;
    for (size_t i = 0; i < s->nconds; i++) {
        ret->conds[i].reason = xstrdup(s->conds[i].reason);
        ret->conds[i].message = xstrdup(s->conds[i].message);
    }
    json_incref(ret->foreign);
    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct role_status *role = &s->roles[r];
        if (role->completed.n > 0)
            ret->roles[r].completed.ranges =
                xmemdup(role->completed.ranges, role->completed.n * sizeof(*role->completed.ranges));
        else
            ret->roles[r].completed.ranges = NULL;
        ret->roles[r].again.items =
            role->again.n > 0 ? xmemdup(role->again.items, role->again.n * sizeof(*role->again.items)) : NULL;
    }
    job_identity_copy(&s->identity, &ret->identity);
    if (s->progress.metrics != NULL)
        ret->progress.metrics = xstrdup(s->progress.metrics);
}

/* ---- conditions ---- */

static size_t find(const struct job_status *s, enum condition_type t)
{
    size_t i = 0;
    while (i < s->nconds && s->conds[i].type != t)
        i++;
    return i;
}

const struct condition *job_status_find(const struct job_status *s, enum condition_type t)
{
    size_t i = find(s, t);
    return i < s->nconds ? &s->conds[i] : NULL;
}

bool job_status_is(const struct job_status *s, enum condition_type t)
{
    const struct condition *c = job_status_find(s, t);
    return c != NULL && c->is_true;
}

bool job_status_finished(const struct job_status *s)
{
    return job_status_is(s, COND_SUCCEEDED) || job_status_is(s, COND_FAILED);
}

static struct condition take_out(struct job_status *s, size_t at)
{
    struct condition c = s->conds[at];
    memmove(s->conds + at, s->conds + at + 1, (s->nconds - at - 1) * sizeof(*s->conds));
    s->nconds--;
    return c;
}

void job_status_put(struct job_status *s, size_t at, struct condition c)
{
    s->conds = xrealloc(s->conds, (s->nconds + 1) * sizeof(*s->conds));
    memmove(s->conds + at + 1, s->conds + at, (s->nconds - at) * sizeof(*s->conds));
    s->conds[at] = c;
    s->nconds++;
}

void job_status_drop(struct job_status *s, enum condition_type t)
{
    size_t at = find(s, t);
    if (at == s->nconds)
        return;
    struct condition c = take_out(s, at);
    condition_fini(&c);
}

static void make_false(struct job_status *s, enum condition_type t, int64_t now_ms)
{
    size_t at = find(s, t);
    if (at == s->nconds || !s->conds[at].is_true)
        return;
    s->conds[at].is_true = false;
    s->conds[at].changed_ms = s->conds[at].updated_ms = now_ms;
}

/* The effect of a condition on the others. */
static void touch_others(struct job_status *s, enum condition_type t, bool is_true, int64_t now_ms)
{
    if (t == COND_RUNNING)
        job_status_drop(s, COND_RESTARTING);
    if (t == COND_RESTARTING)
        job_status_drop(s, COND_RUNNING);
    if ((t != COND_SUCCEEDED && t != COND_FAILED) || !is_true)
        return;
    make_false(s, COND_RUNNING, now_ms);
    make_false(s, COND_RESTARTING, now_ms);
    make_false(s, COND_STALLED, now_ms);
}

static bool set_message(struct condition *c, const char *message, int64_t generation, int64_t now_ms)
{
    if (str_eq(c->message, message))
        return false;
    free(c->message);
    c->message = xstrdup(message);
    c->updated_ms = now_ms;
    c->generation = generation;
    return true;
}

bool job_status_set(struct job_status *s, enum condition_type t, bool is_true, const char *reason, const char *message,
                    int64_t generation, int64_t now_ms)
{
    size_t at = find(s, t);
    bool there = at < s->nconds;

    if (job_status_is(s, COND_FAILED) && (t != COND_FAILED || !is_true))
        return false;
    if (there && s->conds[at].is_true == is_true && (str_eq(s->conds[at].reason, reason) || t == COND_FAILED))
        return set_message(&s->conds[at], message, generation, now_ms);

    struct condition fresh = { .type = t,
                               .is_true = is_true,
                               .reason = xstrdup(reason),
                               .message = xstrdup(message),
                               .updated_ms = now_ms,
                               .changed_ms = now_ms,
                               .generation = generation };
    if (there) {
        struct condition old = take_out(s, at);
        if (old.is_true == is_true)
            fresh.changed_ms = old.changed_ms;
        condition_fini(&old);
    }
    touch_others(s, t, is_true, now_ms);
    job_status_put(s, condition_is_auxiliary(t) ? 0 : s->nconds, fresh);
    return true;
}
