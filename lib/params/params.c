/* What both forms of params have in common: memory, the rule of one push in flight, and the calls through the table. */
#include "params/params.h"

#include <string.h>

#include "params/params_internal.h"

enum { VECTOR_ALIGNMENT = 64 };

static const struct rates NO_RATES = RATES_INIT;
static const struct wanted_step NO_STEP = { .at = -1 };

void params_setup(struct params *p, const struct params_ops *ops, const struct params_admin_ops *admin,
                  const struct layout *l, size_t nps, const struct params_identity *id)
{
    p->ops = ops;
    p->admin = admin;
    p->layout = l;
    p->id = *id;
    p->nps = nps;
    p->rates = &NO_RATES;
    p->wanted = NO_STEP;
}

void params_make_vector(struct params *p)
{
    size_t bytes = (p->layout->vector * sizeof(float) + VECTOR_ALIGNMENT - 1) / VECTOR_ALIGNMENT * VECTOR_ALIGNMENT;
    p->vector = aligned_alloc(VECTOR_ALIGNMENT, MAX(bytes, VECTOR_ALIGNMENT));
    if (p->vector == NULL)
        abort(); /* as xmalloc: the size is that of a checked model */
    memset(p->vector, 0, bytes);
}

void params_release(struct params *p)
{
    free(p->vector);
    free(p->optimizer);
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        free(p->gradients[i]);
    free(p);
}

void params_free(struct params *p)
{
    if (p != NULL)
        p->ops->free(p);
}

float *params_vector(struct params *p)
{
    return p->vector;
}

int params_own_gradients(struct params *p, int which, float **ret, struct err *e)
{
    void *memory;
    if (p->gradients[which] == NULL) {
        if (mem_alloc(MAX(p->layout->vector, (size_t)1) * sizeof(float), "gradients", &memory, e) < 0)
            return -1;
        p->gradients[which] = memory;
    }
    *ret = p->gradients[which];
    return 0;
}

int params_gradients(struct params *p, int which, float **ret, struct err *e)
{
    return p->ops->gradients(p, which, ret, e);
}

void params_set_generation(struct params *p, uint64_t generation)
{
    if (p->generation != generation)
        p->ops->forget(p);
    p->generation = generation;
}

uint64_t params_generation(const struct params *p)
{
    return p->generation;
}

uint64_t params_incarnation(const struct params *p)
{
    return p->id.incarnation;
}

int params_pull(struct params *p, int64_t deadline_ms, struct err *e)
{
    return p->ops->pull(p, false, deadline_ms, e);
}

int params_pull_rest(struct params *p, int64_t deadline_ms, struct err *e)
{
    return p->ops->pull(p, true, deadline_ms, e);
}

void params_set_synchronous(struct params *p)
{
    p->synchronous = true;
}

int params_pull_at(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e)
{
    return p->ops->pull_at(p, at, wait_ms, deadline_ms, e);
}

int params_reduce(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e)
{
    return p->ops->reduce(p, q, deadline_ms, e);
}

void params_want_step(struct params *p, int64_t at, int64_t wait_ms)
{
    p->wanted = (struct wanted_step){ .at = at, .wait_ms = wait_ms };
}

uint64_t params_moved(const struct params *p)
{
    return p->moved;
}

void params_watch(struct params *p, int64_t after_ms, params_watch_fn *watch, void *user)
{
    p->watch_after_ms = after_ms;
    p->watch = watch;
    p->watch_user = user;
}

void params_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max)
{
    p->ops->versions(p, ret_min, ret_max);
}

int params_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                      struct err *e)
{
    if (p->in_flight)
        return err_set(e, ERR_INTERNAL, "a push of ordinal %lld while another is in flight", (long long)ordinal);
    int rc = p->ops->push_start(p, ordinal, grads, direct, deadline_ms, e);
    p->wanted = NO_STEP;
    if (rc < 0)
        return -1;
    p->in_flight = true;
    return 0;
}

int params_push_finish(struct params *p, struct push_result *ret, struct err *e)
{
    if (!p->in_flight)
        return err_set(e, ERR_INTERNAL, "no push is in flight");
    p->in_flight = false;
    return p->ops->push_finish(p, ret, e);
}

void params_push_early(struct params *p, int64_t ordinal, const float *grads, size_t from, int64_t deadline_ms)
{
    if (!p->in_flight && p->ops->push_early != NULL)
        p->ops->push_early(p, ordinal, grads, from, deadline_ms);
}

void params_mark(struct params *p)
{
    p->ops->mark(p);
}

int params_push(struct params *p, int64_t ordinal, const float *grads, int64_t deadline_ms, struct push_result *ret,
                struct err *e)
{
    if (params_push_start(p, ordinal, grads, true, deadline_ms, e) < 0)
        return -1;
    return params_push_finish(p, ret, e);
}
