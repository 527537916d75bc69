/* The statistics of layers that are computed over all batches of a group. They belong to a step, and the first segment
 * says which one is computed now. */
#include <string.h>

#include "base/clock.h"
#include "shard/shard_internal.h"

void shard_forget_sums(struct shard *s)
{
    MUTEX_GUARD(&s->sums_lock);
    group_sums_begin(s->sums, -1, -1);
}

/* The first ordinal of the step that is computed from the values of now. */
static int64_t step_of_now(struct shard *s)
{
    SETTLED_GUARD(s, &s->segments[0]);
    return s->segments[0].group.first;
}

/* The step before the one of now counts as long as no sums of that one are asked for: other ps may lack gradients of
 * it. */
static int begin_sums(struct shard *s, int64_t at, struct err *e)
{
    if (group_sums_at(s->sums) == at)
        return 0;
    int64_t now = step_of_now(s);
    if (at < MAX(now, group_sums_at(s->sums)))
        return err_set(e, ERR_STALE, "the step of batch %lld is over", (long long)at);
    if (at > now)
        return err_set(e, ERR_PENDING, "the step of batch %lld", (long long)at);
    group_sums_begin(s->sums, at, groups_end(&s->groups, at));
    return 0;
}

static int check_groups(const struct shard *s, const struct group_part *part, struct err *e)
{
    if (s->groups.size == 0)
        return err_set(e, ERR_REFUSED, "training is asynchronous: batches have no common statistics");
    if (s->n == 0)
        return err_set(e, ERR_REFUSED, "this ps has no segments: it does not know which step is computed");
    if (part->at < 0 || groups_first(&s->groups, part->at) != part->at)
        return err_set(e, ERR_INPUT, "batch %lld is not the first of a group of %lld", (long long)part->at,
                       (long long)s->groups.size);
    return 0;
}

static int reduce(struct shard *s, struct group_request *q, bool *ret_new, struct err *e)
{
    const double *sums = NULL;
    MUTEX_GUARD(&s->sums_lock);
    if (begin_sums(s, q->part.at, e) < 0 || group_sums_add(s->sums, &q->part, &q->answer, &sums, ret_new, e) < 0)
        return -1;
    if (q->answer == GROUP_TOTALS)
        memcpy(q->totals, sums, q->part.width * sizeof(*sums));
    return 0;
}

int shard_reduce(struct shard *s, const struct shard_caller *who, struct group_request *q, struct err *e)
{
    GATE_SHARED(s);
    bool complete = false;
    if (shard_admit(s, who, SHARD_SERVING, e) < 0 || check_groups(s, &q->part, e) < 0 || reduce(s, q, &complete, e) < 0)
        return -1;
    if (complete)
        shard_updated(s);
    return 0;
}

int shard_reduce_wait(struct shard *s, const struct shard_caller *who, struct group_request *q, struct err *e)
{
    for (int64_t until = clock_ms() + q->wait_ms;;) {
        struct err cause = { 0 };
        uint64_t seen = shard_updates(s);
        if (shard_reduce(s, who, q, &cause) == 0)
            return 0;
        if (!err_is(&cause, ERR_PENDING) || clock_ms() >= until)
            return err_set(e, cause.code, "%s", cause.msg);
        shard_await_update(s, seen, until);
    }
}
